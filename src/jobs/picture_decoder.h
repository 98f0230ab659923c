// SPDX-License-Identifier: Apache-2.0
// What a decoder of pictures is: one file for each format, or one (picture_none.cc) that has none. CMake chooses.
#pragma once

#include <memory>

#include "io/input_file.h"
#include "jobs/picture.h"

namespace leadline {

class PictureDecoder {
 public:
  virtual ~PictureDecoder() = default;
  virtual const PictureHeader& header() const = 0;
  /// Fills `pixels` (header().width * height * channels bytes). Can be called once.
  virtual void decode(int channels, std::byte* pixels) = 0;
};

/// Reads the header. Throws Error(kIo) when the file is damaged, Error(kUnsupported) when this build has no decoder.
std::unique_ptr<PictureDecoder> open_png(std::shared_ptr<const InputFile> file);
std::unique_ptr<PictureDecoder> open_jpeg(std::shared_ptr<const InputFile> file);

}  // namespace leadline
