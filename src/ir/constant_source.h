// SPDX-License-Identifier: Apache-2.0
// Bytes of a constant that are read when they are needed, not before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace leadline::ir {

/// Where a constant's bytes come from. Immutable, so it may be shared between values.
class ConstantSource {
 public:
  virtual ~ConstantSource() = default;
  /// Size of the constant.
  virtual int64_t bytes() const = 0;
  /// Writes all bytes; `out` has exactly bytes() of them. Throws Error when they cannot be had.
  virtual void read(std::span<std::byte> out) const = 0;
};

}  // namespace leadline::ir
