// SPDX-License-Identifier: Apache-2.0
#include "cli/summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>

#include "cli/printing.h"
#include "cli/tensor_io.h"
#include "core/join.h"

namespace leadline::cli {
namespace {

constexpr size_t kTop = 5;

template <typename T>
T load(const std::byte* data, int64_t i) {
  T value;
  std::memcpy(&value, data + static_cast<size_t>(i) * sizeof(T), sizeof(T));
  return value;
}

double from_half(uint16_t bits) {
  const int exponent = (bits >> 10U) & 0x1F;
  const int mantissa = bits & 0x3FF;
  double value = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
  if (exponent == 31) value = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
  return (bits & 0x8000U) != 0 ? -value : value;
}

double from_bfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16U;
  float value = 0;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

using Reader = std::function<double(int64_t)>;

/// Returns the elements of a tensor as numbers; empty for types that are not numeric.
Reader reader(DType type, const std::byte* data) {
  switch (type) {
    case DType::kFloat32:
      return [data](int64_t i) { return static_cast<double>(load<float>(data, i)); };
    case DType::kFloat64:
      return [data](int64_t i) { return load<double>(data, i); };
    case DType::kFloat16:
      return [data](int64_t i) { return from_half(load<uint16_t>(data, i)); };
    case DType::kBFloat16:
      return [data](int64_t i) { return from_bfloat16(load<uint16_t>(data, i)); };
    case DType::kInt8:
    case DType::kInt4:
    case DType::kInt2:
      return [data](int64_t i) { return static_cast<double>(load<int8_t>(data, i)); };
    case DType::kUInt8:
    case DType::kUInt4:
    case DType::kBool:
      return [data](int64_t i) { return static_cast<double>(load<uint8_t>(data, i)); };
    case DType::kInt16:
      return [data](int64_t i) { return static_cast<double>(load<int16_t>(data, i)); };
    case DType::kUInt16:
      return [data](int64_t i) { return static_cast<double>(load<uint16_t>(data, i)); };
    case DType::kInt32:
      return [data](int64_t i) { return static_cast<double>(load<int32_t>(data, i)); };
    case DType::kUInt32:
      return [data](int64_t i) { return static_cast<double>(load<uint32_t>(data, i)); };
    case DType::kInt64:
      return [data](int64_t i) { return static_cast<double>(load<int64_t>(data, i)); };
    case DType::kUInt64:
      return [data](int64_t i) { return static_cast<double>(load<uint64_t>(data, i)); };
    default:
      return {};
  }
}

std::vector<int64_t> index_of(int64_t position, const Shape& shape) {
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[static_cast<size_t>(axis)] = position % shape[axis];
    position /= shape[axis];
  }
  return index;
}

void add_figures(const Reader& read, int64_t count, TensorSummary& summary) {
  std::vector<std::pair<double, int64_t>> top;  // largest first
  double sum = 0;
  int64_t finite = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = read(i);
    if (!std::isfinite(value)) {
      ++summary.not_finite;
      continue;
    }
    if (finite == 0) summary.min = summary.max = value;
    summary.min = std::min(summary.min, value);
    summary.max = std::max(summary.max, value);
    sum += value;
    ++finite;
    if (top.size() == kTop && value <= top.back().first) continue;
    const auto place = std::find_if(top.begin(), top.end(), [&](const auto& t) { return value > t.first; });
    top.insert(place, {value, i});
    if (top.size() > kTop) top.pop_back();
  }
  if (finite == 0) return;
  summary.numeric = true;
  summary.mean = sum / static_cast<double>(finite);
  for (const auto& [value, position] : top) summary.top.push_back({index_of(position, summary.shape), value});
}

std::string number(const TensorSummary& summary, double value) {
  if (summary.scale == 0) return fmt::format("{:.6g}", value);
  return fmt::format("{:.6g} ({:.4g})", value, summary.scale * (value - static_cast<double>(summary.zero_point)));
}

}  // namespace

TensorSummary summarize(const NamedTensor& tensor, const Interpreter& interpreter) {
  const TensorInfo info = interpreter.tensor_info(tensor.index);
  const TensorMemory memory = interpreter.tensor(tensor.index);
  TensorSummary summary;
  summary.tensor = tensor;
  summary.dtype = memory.dtype;
  summary.shape = memory.shape;
  summary.bytes = memory.bytes;
  if (info.scales.size() == 1) {
    summary.scale = info.scales[0];
    summary.zero_point = info.zero_points.empty() ? 0 : info.zero_points[0];
  }
  if (memory.dtype == DType::kString) {
    summary.strings = tensor_strings(memory);
    return summary;
  }
  const int bits = dtype_bits(memory.dtype);
  std::vector<std::byte> unpacked;
  const std::byte* data = memory.data;
  if (bits > 0 && bits < 8) {
    unpacked = unpack_bits(memory);
    data = unpacked.data();
  }
  if (const Reader read = reader(memory.dtype, data)) add_figures(read, memory.shape.elements(), summary);
  return summary;
}

std::string summary_text(const TensorSummary& s) {
  std::string text = fmt::format("  '{}'  {} {}\n", printable(s.tensor.name), dtype_name(s.dtype), s.shape.to_string());
  const auto out = std::back_inserter(text);
  if (s.numeric) {
    fmt::format_to(out, "    min {}  max {}  mean {}\n", number(s, s.min), number(s, s.max), number(s, s.mean));
    text += "    top";
    for (const TensorSummary::Element& e : s.top) {
      fmt::format_to(out, "{} {} at [{}]", &e == s.top.data() ? "" : ",", number(s, e.value), join(e.index, ", "));
    }
    text += '\n';
  }
  if (s.not_finite > 0) fmt::format_to(out, "    {} values are NaN or infinite\n", s.not_finite);
  for (size_t i = 0; i < std::min(kTop, s.strings.size()); ++i) {
    fmt::format_to(out, "    [{}] \"{}\"\n", i, printable(s.strings[i].substr(0, 100)));
  }
  return text;
}

Json summary_json(const TensorSummary& s) {
  Json json = {{"name", s.tensor.name}, {"index", s.tensor.index}, {"dtype", dtype_name(s.dtype)}};
  json["shape"] = shape_json(s.shape);
  json["bytes"] = s.bytes;
  if (s.numeric) {
    json["min"] = s.min;
    json["max"] = s.max;
    json["mean"] = s.mean;
    json["top"] = Json::array();
    for (const TensorSummary::Element& e : s.top) json["top"].push_back({{"index", e.index}, {"value", e.value}});
  }
  json["not_finite"] = s.not_finite;
  if (s.scale != 0) json["quantization"] = {{"scale", s.scale}, {"zero_point", s.zero_point}};
  if (!s.strings.empty()) json["strings"] = s.strings;
  return json;
}

}  // namespace leadline::cli
