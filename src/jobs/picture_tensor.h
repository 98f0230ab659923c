// SPDX-License-Identifier: Apache-2.0
// From a picture to the values of an input: size, colours, mean and scale, layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jobs/picture.h"
#include "jobs/sample_lint.h"
#include "leadline/samples.h"

namespace leadline::jobs {

/// How the input of a model holds a picture.
struct PictureForm {
  int64_t height = 0;  ///< 0: the picture's own
  int64_t width = 0;
  int channels = 3;     ///< 1 or 3
  bool planes = false;  ///< channels before rows (NCHW)
  int batch_axes = 1;   ///< 1: a batch of one picture before the rest; 0: none
  bool has_channels = true;
  /// float32 where there is a mean or a scale, else uint8, or int8 for an int8 input.
  DType dtype = DType::kUInt8;

  Shape shape(int64_t picture_height, int64_t picture_width) const;
  int64_t bytes(int64_t picture_height, int64_t picture_width) const;
};

/// Throws Error(kInvalidArgument) that names the input when it cannot hold a picture or the options do not fit it.
PictureForm picture_form(const SampleInput& input, const PictureOptions& options);

/// Writes `picture`, which has form.channels, as `form` has it. Bilinear is tf.image.resize's without antialiasing:
/// output pixel i lies at (i + 0.5) * in / out - 0.5 of the input; nearest takes the input pixel that holds the centre.
void write_picture(const Picture& picture, const PictureForm& form, const PictureOptions& options,
                   std::span<std::byte> out);

}  // namespace leadline::jobs
