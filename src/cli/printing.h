// SPDX-License-Identifier: Apache-2.0
// Tables and small texts for the terminal. Text from a model is passed through printable() first.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "leadline/model.h"

namespace leadline::cli {

using Clock = std::chrono::steady_clock;
double milliseconds_since(Clock::time_point start);

/// Rows of cells, each column as wide as its widest cell. Cells are made printable.
class Table {
 public:
  /// One character for each column: 'l' or 'r'.
  explicit Table(std::string alignment) : alignment_(std::move(alignment)) {}
  void add(std::vector<std::string> cells);
  /// Two spaces between columns, `indent` before the first.
  std::string text(int indent = 2) const;

 private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

/// "[1, ?, 3]": the shape with what may change.
std::string shape_text(const TensorInfo& tensor);
/// "scale 0.5 zero point 3", "64 scales along dimension 0", or nothing.
std::string quantization_text(const TensorInfo& tensor);
Json tensor_json(const TensorInfo& tensor);
Json shape_json(const Shape& shape);

}  // namespace leadline::cli
