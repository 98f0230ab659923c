// SPDX-License-Identifier: Apache-2.0
#include "fill.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace leadline::fuzz {
namespace {

enum class Style { kZeros, kSmall, kOrdinary, kExtremes, kOdd, kNoise };

double any_value(Style style, bool floating, Random& random) {
  switch (style) {
    case Style::kZeros:
      return 0.0;
    case Style::kSmall:
      return static_cast<double>(random.between(0, 3));
    case Style::kOrdinary:
      return floating ? 6.0 * random.unit() - 3.0 : static_cast<double>(random.between(-100, 100));
    case Style::kExtremes:
      return random.pick({-1e300, 1e300, 3e38, -3e38, 2147483647.0, -2147483648.0, 9.2e18, -9.3e18, 127.0, 128.0});
    default:
      if (!random.once_in(3)) return floating ? 2.0 * random.unit() - 1.0 : static_cast<double>(random.between(-2, 5));
      return floating ? random.pick({std::nan(""), HUGE_VAL, -HUGE_VAL, -0.0, 1e-45, 1e-310, 65504.0, 1e38})
                      : random.pick({-1.0, 32768.0, 65536.0, 2147483647.0, -2147483648.0, 9.3e18, 1e6});
  }
}

template <typename T>
T narrowed(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isfinite(value) && std::abs(value) > static_cast<double>(std::numeric_limits<T>::max())) {
      return std::copysign(std::numeric_limits<T>::max(), static_cast<T>(value < 0 ? -1 : 1));
    }
    return static_cast<T>(value);
  } else {
    if (!(value > static_cast<double>(std::numeric_limits<T>::min()))) return std::numeric_limits<T>::min();
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(value);
  }
}

template <typename T>
void fill_as(std::vector<std::byte>& bytes, Style style, Random& random) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    const T value = narrowed<T>(any_value(style, std::is_floating_point_v<T>, random));
    std::memcpy(bytes.data() + at, &value, sizeof(T));
  }
}

std::vector<std::byte> strings(int64_t count, Random& random) {
  static const std::vector<std::string> words = {"",           "a",  "lead", "line", std::string("\xff\0z", 3),
                                                 "deep water", "-1", "3.5"};
  std::string text;
  std::vector<int32_t> header = {static_cast<int32_t>(count)};
  const auto start = static_cast<int32_t>(4 * (count + 2));
  for (int64_t i = 0; i < count; ++i) {
    header.push_back(start + static_cast<int32_t>(text.size()));
    text += random.pick(words);
  }
  header.push_back(start + static_cast<int32_t>(text.size()));
  if (random.once_in(8))
    header[random.below(header.size())] = random.pick<int32_t>({-1, 0, 1, INT32_MAX, 7, INT32_MIN});
  std::vector<std::byte> bytes(4 * header.size() + text.size());
  std::memcpy(bytes.data(), header.data(), 4 * header.size());
  if (!text.empty()) std::memcpy(bytes.data() + 4 * header.size(), text.data(), text.size());
  return bytes;
}

}  // namespace

void fill_inputs(Interpreter& interpreter, Random random) {
  const auto main_style = static_cast<Style>(random.below(6));
  for (const int index : interpreter.inputs()) {
    const TensorInfo info = interpreter.tensor_info(index);
    if (info.constant) continue;
    if (info.dtype == DType::kString) {
      interpreter.set_tensor(index, strings(std::min<int64_t>(info.shape.elements(), 1 << 16), random));
      continue;
    }
    const auto style = random.once_in(3) ? static_cast<Style>(random.below(6)) : main_style;
    std::vector<std::byte> bytes(static_cast<size_t>(storage_bytes(info.dtype, info.shape).value_or(0)));
    if (style == Style::kNoise) {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
    } else if (info.dtype == DType::kFloat32 || info.dtype == DType::kComplex64) {
      fill_as<float>(bytes, style, random);
    } else if (info.dtype == DType::kFloat64 || info.dtype == DType::kComplex128) {
      fill_as<double>(bytes, style, random);
    } else if (info.dtype == DType::kInt32 || info.dtype == DType::kResource) {
      fill_as<int32_t>(bytes, style, random);
    } else if (info.dtype == DType::kUInt32) {
      fill_as<uint32_t>(bytes, style, random);
    } else if (info.dtype == DType::kInt64) {
      fill_as<int64_t>(bytes, style, random);
    } else if (info.dtype == DType::kUInt64) {
      fill_as<uint64_t>(bytes, style, random);
    } else if (info.dtype == DType::kInt16 || info.dtype == DType::kUInt16) {
      fill_as<int16_t>(bytes, style, random);
    } else if (info.dtype == DType::kBool) {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(style == Style::kOdd ? 256 : 2));
    } else if (info.dtype == DType::kInt8) {
      fill_as<int8_t>(bytes, style, random);
    } else {
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
    }
    interpreter.set_tensor(index, bytes);
  }
}

Shape odd_shape(const Shape& shape, Random& random) {
  std::vector<int64_t> dims(shape.begin(), shape.end());
  if (random.once_in(6) || dims.empty()) {
    if (random.once_in(2) && !dims.empty()) {
      dims.pop_back();
    } else if (dims.size() < kMaxRank) {
      dims.push_back(random.between(0, 3));
    }
  } else {
    int64_t& size = dims[random.below(dims.size())];
    size = random.pick<int64_t>(
        {size + 1, std::max<int64_t>(size - 1, 0), 2 * size, 0, 1, 3, 7, 64, 1 << 14, 1 << 24, INT32_MAX, INT64_MAX});
  }
  return Shape(std::span<const int64_t>(dims));
}

}  // namespace leadline::fuzz
