// SPDX-License-Identifier: Apache-2.0
// String tensors for the tests beside the op families.
#pragma once

#include <string>
#include <vector>

#include "core/string_tensor.h"
#include "ops/op_testing.h"

namespace leadline::ops {

inline std::vector<std::byte> string_buffer(const std::vector<std::string>& texts) {
  int64_t characters = 0;
  for (const std::string& text : texts) characters += static_cast<int64_t>(text.size());
  const auto count = static_cast<int64_t>(texts.size());
  std::vector<std::byte> bytes(static_cast<size_t>(string_tensor_bytes(count, characters).value()));
  StringTensorWriter writer(bytes, count);
  for (const std::string& text : texts) writer.add(text);
  return bytes;
}

inline OpTester& string_input(OpTester& t, const Shape& shape, const std::vector<std::string>& texts,
                              bool known = false) {
  return t.raw_input(DType::kString, shape, string_buffer(texts), {}, known);
}

/// The strings of output `i`; one text that says what is wrong when its buffer is damaged.
inline std::vector<std::string> string_result(const OpTester& t, int i) {
  const auto bytes = t.result<std::byte>(i);
  if (const std::string problem = string_tensor_problem(bytes, t.shape(i).elements()); !problem.empty())
    return {problem};
  const StringTensorReader reader(bytes);
  std::vector<std::string> texts;
  for (int64_t k = 0; k < reader.size(); ++k) texts.emplace_back(reader[k]);
  return texts;
}

}  // namespace leadline::ops
