// SPDX-License-Identifier: Apache-2.0
// An allocator that refuses the n-th request. It stands behind operator new and delete in all their forms, and behind
// malloc, calloc, realloc, aligned_alloc, posix_memalign, zlib and anonymous mmap where Leadline calls them
// (linked with --wrap). Requests are counted in all threads while it is armed.
#pragma once

#include <cstdint>

namespace leadline::faults {

enum class Extent { kOnce, kOnwards };  ///< only the n-th request fails, or all from it on

/// From now on request number `n` (the first is 1) is refused.
void arm_allocator(int64_t n, Extent extent);
void disarm_allocator();
/// Whether a request was refused since it was armed.
bool allocation_refused();
int64_t allocations_counted();
/// The largest block that operator new was asked for since it was armed. Charged blocks of 256 KiB and more are mapped
/// (core/buffer.cc), so whatever is larger here was not charged.
int64_t largest_heap_block();
/// Blocks from operator new, malloc and mmap that were not returned.
int64_t live_allocations();

/// Called instead of refusing, when set: for what is to happen at the n-th allocation other than its failure.
extern void (*instead_of_refusal)();

/// What the test itself allocates on this thread while this lives is neither counted nor refused.
class Exempt {
 public:
  Exempt();
  ~Exempt();
  Exempt(const Exempt&) = delete;
  Exempt& operator=(const Exempt&) = delete;
};

}  // namespace leadline::faults
