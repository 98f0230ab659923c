// SPDX-License-Identifier: Apache-2.0
// Owned, aligned memory that is charged to a Budget for as long as it lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "leadline/budget.h"

namespace leadline {

/// Every buffer and every arena offset is aligned to this: one cache line, one AVX-512 register.
inline constexpr int64_t kAlignment = 64;

/// Rounds up to kAlignment.
constexpr int64_t align_up(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Move-only memory block. Large blocks come straight from the operating system and go straight back,
/// so that resident memory follows the count. Zero-filled on creation.
class Buffer {
 public:
  Buffer() = default;
  /// Charges align_up(bytes) to `budget`, then allocates. Throws BudgetError when either refuses.
  Buffer(std::shared_ptr<Budget> budget, int64_t bytes, MemoryCategory category);
  ~Buffer();
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer moved(std::move(other));
    swap(moved);
    return *this;
  }

  std::byte* data() const noexcept { return data_; }
  int64_t bytes() const noexcept { return bytes_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  void swap(Buffer& other) noexcept;

  std::shared_ptr<Budget> budget_;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;  // as charged: a multiple of kAlignment
  MemoryCategory category_ = MemoryCategory::kArena;
};

}  // namespace leadline
