// SPDX-License-Identifier: Apache-2.0
// Where allocators that understand a refusal (Python's and numpy's: null becomes MemoryError) ask before they take
// memory. Open unless a watch runs. Any thread may call at any time, with or without Python's lock; nothing here
// allocates.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "leadline/guard/watch_report.h"

namespace leadline::guard::gate {

/// Blocks from here on are followed until they have been touched, or freed.
inline constexpr size_t kFollowed = size_t{64} << 10;
/// Requests of this size are refused as soon as they would cut into the reserve. Smaller ones, which are also those of
/// whoever reports the error, may use half of it.
inline constexpr size_t kLarge = size_t{1} << 20;

inline constexpr size_t kMost = size_t{1} << 48;  ///< more than there is: sums of such sizes stay in range

/// Bytes that may be taken before somebody has to look again. Negative or used up: look.
extern std::atomic<int64_t> room;

/// Bytes of blocks that were admitted and that gave() has not been told of yet.
extern std::atomic<int64_t> in_flight;

/// The careful part of admit() and admit_small().
bool admit_carefully(size_t bytes, bool small, bool followed) noexcept;

/// Whether `bytes` more may be taken. After true, gave() has to follow for blocks of kFollowed bytes or more.
inline bool admit(size_t bytes) noexcept {
  const auto size = static_cast<int64_t>(bytes < kMost ? bytes : kMost);
  if (bytes >= kFollowed) in_flight.fetch_add(size, std::memory_order_relaxed);
  if (bytes < kMost && room.fetch_sub(size, std::memory_order_relaxed) >= size) return true;
  if (admit_carefully(bytes, bytes < kLarge, bytes >= kFollowed)) return true;
  if (bytes >= kFollowed) in_flight.fetch_sub(size, std::memory_order_relaxed);
  return false;
}

/// The same for memory that holds many small objects: it may use half of the reserve, and is not followed.
inline bool admit_small(size_t bytes) noexcept {
  const auto size = static_cast<int64_t>(bytes);
  return room.fetch_sub(size, std::memory_order_relaxed) >= size || admit_carefully(bytes, true, false);
}

/// A block of kFollowed bytes or more was given out; null: it was not, after all.
void gave(const void* block, size_t bytes) noexcept;
/// Before a block is freed. One that is not followed is none of ours.
void takes_back(const void* block) noexcept;
/// Bytes of the block as it was given out; 0: not followed.
size_t followed_bytes(const void* block) noexcept;

/// For a copy of the process that was made without the handlers of fork(), which call it by themselves.
void open_in_child() noexcept;

/// The last refusal.
Refusal last_refusal() noexcept;

}  // namespace leadline::guard::gate
