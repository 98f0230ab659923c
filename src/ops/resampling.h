// SPDX-License-Identifier: Apache-2.0
// One axis of TensorFlow's ScaleAndTranslate (tf.image.resize with antialias, lanczos, gaussian, ...): which places of
// the input, with which weights, a place of the output is made of.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace leadline::ops {

enum class ResamplingFilter : uint8_t { kLanczos1, kLanczos3, kLanczos5, kGaussian, kBox, kTriangle, kKeys, kMitchell };

/// TensorFlow's name of a filter ("lanczos3"); nothing when it is none.
std::optional<ResamplingFilter> resampling_filter(std::string_view name);

class Resampling {
 public:
  /// An output's place x is the input's (x - translation) / scale; `scale` > 0, `input_size` > 0. With `antialias` the
  /// filter widens with a scale below 1.
  Resampling(ResamplingFilter filter, bool antialias, int64_t input_size, float scale, float translation);

  struct Span {
    int64_t first = 0;
    int64_t count = 0;
  };
  /// The places that make place `at` of the output, and their weights, which sum to 1. `weights` has room for the
  /// input's size. None where the place lies outside.
  Span weights(int64_t at, std::span<float> weights) const;

 private:
  ResamplingFilter filter_;
  int64_t input_size_;
  float inverse_scale_;
  float offset_;
  float widening_;
};

}  // namespace leadline::ops
