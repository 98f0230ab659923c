// SPDX-License-Identifier: Apache-2.0
// A few numbers that summarize the contents of a tensor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/opened_model.h"
#include "leadline/interpreter.h"

namespace leadline::cli {

struct TensorSummary {
  struct Element {
    std::vector<int64_t> index;
    double value = 0;
  };
  NamedTensor tensor;
  DType dtype = DType::kFloat32;
  Shape shape;
  int64_t bytes = 0;
  bool numeric = false;  ///< min, max, mean and top are there
  double min = 0;
  double max = 0;
  double mean = 0;
  int64_t not_finite = 0;    ///< NaN and infinities: not counted in the above
  std::vector<Element> top;  ///< the largest values, largest first
  std::vector<std::string> strings;
  double scale = 0;  ///< of quantized tensors: real value = scale * (value - zero_point)
  int64_t zero_point = 0;
};

TensorSummary summarize(const NamedTensor& tensor, const Interpreter& interpreter);
/// Some lines, indented by two spaces.
std::string summary_text(const TensorSummary& summary);
Json summary_json(const TensorSummary& summary);

}  // namespace leadline::cli
