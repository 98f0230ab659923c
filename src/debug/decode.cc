// SPDX-License-Identifier: Apache-2.0
#include "debug/decode.h"

#include <cstring>

#include "core/half.h"

namespace leadline::debug {

Decoder::Decoder(DType dtype, const Shape& shape, const std::byte* data, const Quantization& quantization)
    : dtype_(dtype), data_(data), quantization_(quantization) {
  for (int axis = quantization.axis + 1; quantization.per_channel() && axis < shape.rank(); ++axis) {
    inner_ *= shape[axis];
  }
  if (inner_ < 1) inner_ = 1;
}

bool Decoder::readable(DType dtype, const Quantization& quantization) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat16:
      return true;
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kInt4:
      return !quantization.scale.empty() && quantization.scale.size() == quantization.zero_point.size();
    default:
      return false;
  }
}

template <typename T>
void Decoder::read_levels(int64_t first, int64_t count, float* out) const {
  const auto* levels = reinterpret_cast<const T*>(data_) + first;
  const auto channels = static_cast<int64_t>(quantization_.scale.size());
  if (channels == 1) {
    const float scale = quantization_.scale[0];
    if constexpr (sizeof(T) <= 2) {
      const auto zero = static_cast<int32_t>(quantization_.zero_point[0]);
      for (int64_t i = 0; i < count; ++i) out[i] = scale * static_cast<float>(static_cast<int32_t>(levels[i]) - zero);
    } else {
      const auto zero = static_cast<double>(quantization_.zero_point[0]);
      for (int64_t i = 0; i < count; ++i) {
        out[i] = static_cast<float>(static_cast<double>(scale) * (static_cast<double>(levels[i]) - zero));
      }
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const auto k = static_cast<size_t>((first + i) / inner_ % channels);
    const double offset = static_cast<double>(levels[i]) - static_cast<double>(quantization_.zero_point[k]);
    out[i] = static_cast<float>(static_cast<double>(quantization_.scale[k]) * offset);
  }
}

/// Two's complement, the first of two in the low half of a byte.
void Decoder::read_packed(int64_t first, int64_t count, float* out) const {
  const auto channels = static_cast<int64_t>(quantization_.scale.size());
  for (int64_t i = 0; i < count; ++i) {
    const int64_t element = first + i;
    const int bits = std::to_integer<int>(data_[element / 2]) >> (element % 2 * 4) & 0xF;
    const int level = bits >= 8 ? bits - 16 : bits;
    const auto k = static_cast<size_t>(channels == 1 ? 0 : element / inner_ % channels);
    out[i] = quantization_.scale[k] * static_cast<float>(level - static_cast<int>(quantization_.zero_point[k]));
  }
}

void Decoder::read(int64_t first, int64_t count, float* out) const {
  switch (dtype_) {
    case DType::kFloat32:
      std::memcpy(out, data_ + first * 4, static_cast<size_t>(count) * sizeof(float));
      break;
    case DType::kFloat16: {
      const auto* halves = reinterpret_cast<const uint16_t*>(data_) + first;
      for (int64_t i = 0; i < count; ++i) out[i] = half_to_float(halves[i]);
      break;
    }
    case DType::kInt8:
      return read_levels<int8_t>(first, count, out);
    case DType::kUInt8:
      return read_levels<uint8_t>(first, count, out);
    case DType::kInt16:
      return read_levels<int16_t>(first, count, out);
    case DType::kInt32:
      return read_levels<int32_t>(first, count, out);
    case DType::kInt64:
      return read_levels<int64_t>(first, count, out);
    case DType::kInt4:
      return read_packed(first, count, out);
    default:
      std::memset(out, 0, static_cast<size_t>(count) * sizeof(float));
  }
}

}  // namespace leadline::debug
