// SPDX-License-Identifier: Apache-2.0
// FarmHash Fingerprint64: a hash of bytes whose values never change, so that models may depend on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/index_range.h"

namespace leadline::kernels {

uint64_t fingerprint64(std::span<const std::byte> bytes) noexcept;

/// The same for more than 64 bytes, block by block: add() in ascending ranges that cover all blocks, then value().
class LongFingerprint {
 public:
  explicit LongFingerprint(std::span<const std::byte> bytes) noexcept;
  int64_t blocks() const noexcept { return (static_cast<int64_t>(bytes_.size()) - 1) / 64; }
  void add(IndexRange blocks) noexcept;
  uint64_t value() noexcept;

 private:
  std::span<const std::byte> bytes_;
  uint64_t state_[7] = {};
};

}  // namespace leadline::kernels
