// SPDX-License-Identifier: Apache-2.0
#include "cli/printing.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/join.h"

namespace leadline::cli {
namespace {

/// Characters of UTF-8 text, which is close enough to columns.
size_t width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void Table::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = printable(cell);
  cells.resize(alignment_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(int indent) const {
  std::vector<size_t> widths(alignment_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
  }
  std::string result;
  for (const auto& row : rows_) {
    std::string line(static_cast<size_t>(indent), ' ');
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - width(row[c]), ' ');
      line += alignment_[c] == 'r' ? padding + row[c] : row[c] + padding;
      line += "  ";
    }
    line.resize(line.find_last_not_of(' ') + 1);
    result += line + '\n';
  }
  return result;
}

std::string shape_text(const TensorInfo& tensor) {
  const auto& signature = tensor.shape_signature;
  if (std::none_of(signature.begin(), signature.end(), [](int32_t size) { return size < 0; })) {
    return tensor.shape.to_string();
  }
  std::vector<std::string> sizes;
  for (const int32_t size : signature) sizes.push_back(size < 0 ? "?" : std::to_string(size));
  return fmt::format("[{}]", join(sizes, ", "));
}

std::string quantization_text(const TensorInfo& tensor) {
  if (tensor.scales.empty()) return {};
  if (tensor.scales.size() > 1) {
    return fmt::format("{} scales along dimension {}", tensor.scales.size(), tensor.quantized_dimension);
  }
  return fmt::format("scale {:.6g} zero point {}", tensor.scales[0],
                     tensor.zero_points.empty() ? 0 : tensor.zero_points[0]);
}

Json shape_json(const Shape& shape) {
  Json result = Json::array();
  for (const int64_t size : shape) result.push_back(size);
  return result;
}

Json tensor_json(const TensorInfo& tensor) {
  Json json = {{"index", tensor.index}, {"name", tensor.name}, {"dtype", dtype_name(tensor.dtype)}};
  json["shape"] = shape_json(tensor.shape);
  json["shape_signature"] = tensor.shape_signature;
  json["bytes"] = tensor.bytes;
  json["constant"] = tensor.constant;
  json["variable"] = tensor.variable;
  json["sparse"] = tensor.sparse;
  if (!tensor.scales.empty()) {
    json["quantization"] = {{"scales", tensor.scales},
                            {"zero_points", tensor.zero_points},
                            {"quantized_dimension", tensor.quantized_dimension}};
  }
  return json;
}

}  // namespace leadline::cli
