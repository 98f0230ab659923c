// SPDX-License-Identifier: Apache-2.0
// Custom options that are a C struct of 32-bit numbers, as MediaPipe's converter writes them.
#pragma once

#include <array>
#include <cstring>

#include "ops/op.h"

namespace leadline::ops {

/// The first `count` numbers; bytes after them do not matter. Throws when there are fewer.
template <size_t count>
std::array<int32_t, count> read_struct_options(const OpContext& c) {
  const auto bytes = c.node().custom_options;
  std::array<int32_t, count> fields{};
  c.require(bytes.size() >= sizeof(fields), "the custom options have {} bytes, expected {} or more", bytes.size(),
            sizeof(fields));
  std::memcpy(fields.data(), bytes.data(), sizeof(fields));
  return fields;
}

/// TFLite's C enumeration: 0 unknown, 1 same, 2 valid.
inline ir::Padding padding_option(const OpContext& c, int32_t value) {
  c.require(value == 1 || value == 2, "the padding is {}, expected 1 (same) or 2 (valid)", value);
  return value == 1 ? ir::Padding::kSame : ir::Padding::kValid;
}

}  // namespace leadline::ops
