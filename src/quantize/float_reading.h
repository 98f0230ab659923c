// SPDX-License-Identifier: Apache-2.0
// How the floats of a constant are read, slice by slice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "quantize/constants.h"

namespace leadline::quantize {

/// A tensor seen as [outer][slices][inner], with a scale for each slice.
struct SliceView {
  int64_t outer = 1;
  int64_t slices = 1;
  int64_t inner = 1;
};

inline SliceView slice_view(const Shape& shape, int axis) {
  SliceView view;
  if (axis < 0) {
    view.inner = shape.elements();
    return view;
  }
  for (int i = 0; i < shape.rank(); ++i) (i < axis ? view.outer : i == axis ? view.slices : view.inner) *= shape[i];
  return view;
}

/// Puts an integer of 2 or 4 bits where there are zeros.
inline void put_packed(std::span<std::byte> out, DType type, int64_t i, int64_t level) {
  const int bits = dtype_bits(type);
  const int64_t bit = i * bits;
  out[static_cast<size_t>(bit / 8)] |= static_cast<std::byte>((level & ((1 << bits) - 1)) << (bit % 8));
}

inline float load(const std::byte* data, int64_t i) {
  float value;
  std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(float)), sizeof(float));
  return value;
}

/// Calls body with the floats, read into memory of its own when they are in a source.
template <typename Body>
void with_floats(const FloatConstant& constant, Body&& body) {
  if (constant.source == nullptr) {
    body(constant.data.data());
    return;
  }
  const auto bytes = static_cast<size_t>(constant.source->bytes());
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  constant.source->read({memory.get(), bytes});
  body(static_cast<const std::byte*>(memory.get()));
}

/// What reading the floats takes: nothing when they are in memory.
inline int64_t reading_bytes(const FloatConstant& constant) {
  return constant.source == nullptr ? 0 : constant.source->bytes() + ir::extra_bytes(*constant.source);
}

}  // namespace leadline::quantize
