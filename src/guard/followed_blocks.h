// SPDX-License-Identifier: Apache-2.0
// Blocks that were given out and may not have been touched yet: calloc and large mallocs take nothing until then. What
// is untouched will be taken from what is available, so a later fill must find it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "io/descriptor.h"

namespace leadline::guard {

/// A table of fixed size: nothing is allocated. Blocks beyond it are not followed. Not thread-safe.
class FollowedBlocks {
 public:
  /// `pagemap` is /proc/self/pagemap; without it, mincore() has to do, which takes swapped pages for untouched ones.
  void open(const char* pagemap);
  void clear();

  void add(uintptr_t address, size_t bytes);
  /// The bytes of the block; 0: not followed.
  size_t remove(uintptr_t address);
  size_t bytes_of(uintptr_t address) const;

  /// Bytes of all blocks that were not touched when last looked at.
  int64_t untouched() const { return untouched_; }
  /// Looks again, for at most about `seconds`. Blocks that are touched throughout are not looked at any more.
  int64_t look(double seconds);
  int64_t total() const { return total_; }

 private:
  struct Block {
    uintptr_t address = 0;  // 0: free
    size_t bytes = 0;
    size_t untouched = 0;  // when last looked at
  };
  static constexpr size_t kPlaces = size_t{1} << 15;

  static size_t home(uintptr_t address);
  size_t find(uintptr_t address) const;
  size_t measure(const Block& block) const;
  bool page_is_there(uintptr_t address) const;
  static bool is_mapped(uintptr_t address);

  std::array<Block, kPlaces> places_{};
  size_t count_ = 0;
  size_t next_ = 0;  // where look() goes on
  int64_t untouched_ = 0;
  int64_t total_ = 0;
  Descriptor pagemap_;
};

}  // namespace leadline::guard
