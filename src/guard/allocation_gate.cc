// SPDX-License-Identifier: Apache-2.0
// Invariant: `room` is never more than what could be taken at the last look, less what was admitted since.
#include "guard/allocation_gate.h"

#include <malloc.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>

#include "guard/followed_blocks.h"
#include "guard/memory_probe.h"
#include "guard/monotonic_clock.h"
#include "guard/units.h"

namespace leadline::guard::gate {
namespace {

constexpr int64_t kOpen = std::numeric_limits<int64_t>::max() / 2;
/// A thread is refused small requests only after the process took this much of the reserve.
constexpr int64_t kPatientBytes = 4 * kMiB;
constexpr int64_t kQuantum = kMiB / 4;  // small requests look again after as much
/// Above a limit of the process itself, alarms have to come before refusals.
constexpr int64_t kOwnSlack = 64 * kMiB;
constexpr double kLookSeconds = 0.02;
/// Before a large request is refused, all blocks are looked at: thousands of touched ones take longer than a moment,
/// and must not count as promised.
constexpr double kLongLookSeconds = 0.5;
constexpr double kBetweenGivingBack = 0.1;
constexpr int64_t kPagesOfTables = 256;  // page tables, and what else the kernel needs for memory: a part in 256

std::mutex mutex;
bool closed = false;
GateLimits limits;
std::optional<MemoryProbe> probe;
FollowedBlocks blocks;
Refusal last;
double last_seconds = 0.0;
double given_back_at = -1.0;
std::atomic<int64_t> episode = 0;

struct OfThread {
  int64_t episode = -1;
  int64_t taken = 0;  // by the process, when this thread was first looked at or last refused
};
thread_local OfThread of_thread;

struct Left {
  int64_t bytes = kOpen;  // that may be taken
  bool own_limit = false;
  bool process_limit = false;
};

/// `asking`: bytes of a request that is in flight itself.
Left left_at(const MemorySample& sample, int64_t reserve, int64_t asking) {
  Left left;
  const int64_t spoken_for = sample.promised + std::max<int64_t>(in_flight.load(std::memory_order_relaxed) - asking, 0);
  if (sample.capacity > 0) left.bytes = sample.available - reserve - spoken_for;
  // Address space is taken when it is given, touched or not.
  if (sample.limit_left >= 0 && sample.limit_left - reserve < left.bytes) {
    left.bytes = sample.limit_left - reserve;
    left.process_limit = true;
  }
  if (limits.resident_limit > 0) {
    const int64_t own = limits.resident_limit + kOwnSlack - sample.resident - spoken_for;
    if (own < left.bytes) left = {own, true, false};
  }
  return left;
}

/// Fills in what is promised: as it was when last looked at, which is too much rather than too little, or as it is now.
void add_promised(MemorySample& sample, double look_seconds) {
  sample.promised = look_seconds > 0 ? blocks.look(look_seconds) : blocks.untouched();
  // A page that was only read is there, and takes nothing until it is written to.
  if (sample.swap_free == 0) sample.promised = std::max(sample.promised, blocks.total() - sample.resident);
}

bool refuse(size_t bytes, const MemorySample& sample, const Left& left, int64_t reserve) {
  last.count += 1;
  last.requested = static_cast<int64_t>(std::min<size_t>(bytes, std::numeric_limits<int64_t>::max()));
  last.left = std::max<int64_t>(left.bytes, 0);
  last.available = sample.available;
  last.promised = sample.promised;
  last.reserve = reserve;
  last.resident = sample.resident;
  last.capacity = sample.capacity;
  last.own_limit = left.own_limit;
  last.process_limit = left.process_limit;
  last.container = sample.container;
  last_seconds = monotonic_seconds();
  return false;
}

/// Small requests are refused to who takes many of them, once in a while: the rest of the reserve is for the report.
bool may_use_reserve(const MemorySample& sample, const Left& left, int64_t reserve) {
  const int64_t now = episode.load(std::memory_order_relaxed);
  const int64_t taken = sample.resident + sample.promised;
  if (of_thread.episode != now) of_thread = {now, taken};
  return left.own_limit || left.bytes + reserve / 2 >= 0 || taken < of_thread.taken + kPatientBytes;
}

bool fits(size_t bytes, bool small, const MemorySample& sample, const Left& left, int64_t reserve) {
  if (small) return may_use_reserve(sample, left, reserve);
  const auto size = static_cast<int64_t>(std::min(bytes, kMost));
  return size + size / kPagesOfTables <= left.bytes;
}

/// Memory that was freed and that malloc keeps, between blocks that are in use, is the system's again. It takes some
/// milliseconds.
bool give_back() {
#ifdef __GLIBC__
  const double now = monotonic_seconds();
  if (now - given_back_at < kBetweenGivingBack) return false;
  const bool freed = malloc_trim(0) != 0;
  given_back_at = monotonic_seconds();
  return freed;
#else
  return false;
#endif
}

}  // namespace

std::atomic<int64_t> room = kOpen;
std::atomic<int64_t> in_flight = 0;

int64_t reserve_of(int64_t capacity, double fraction) {
  // Formatting a traceback in IPython takes some 20 MiB, with the files it reads.
  const int64_t least = std::clamp<int64_t>(capacity / 32, std::min(32 * kMiB, capacity / 12), 256 * kMiB);
  if (fraction <= 0) return least;
  return std::max(least, static_cast<int64_t>((1 - fraction) / 2 * static_cast<double>(capacity)));
}

void open_in_child() noexcept {
  // The mutex may be held by a thread that does not exist here.
  new (&mutex) std::mutex;
  closed = false;
  in_flight = 0;
  room.store(kOpen);
}

bool admit_carefully(size_t bytes, bool small, bool followed) noexcept {
  const std::lock_guard lock(mutex);
  if (!closed) {
    room.store(kOpen, std::memory_order_relaxed);
    return true;
  }
  MemorySample sample = probe->sample();
  const int64_t reserve = reserve_of(sample.capacity, limits.fraction);
  const auto size = static_cast<int64_t>(std::min(bytes, kMost));
  const int64_t asking = followed ? size : 0;
  Left left;
  bool admitted = false;
  for (const int attempt : {0, 1, 2}) {
    if (attempt == 2) {
      if (!give_back()) break;
      sample = probe->sample();
    }
    add_promised(sample, attempt == 0 ? 0.0 : small ? kLookSeconds : kLongLookSeconds);
    left = left_at(sample, reserve, asking);
    admitted = fits(bytes, small, sample, left, reserve);
    if (admitted) break;
  }
  if (!admitted) {
    refuse(bytes, sample, left, reserve);
    if (small) of_thread.taken = sample.resident + sample.promised;
  }
  room.store(std::max(left.bytes - (admitted ? size : 0), small ? kQuantum : int64_t{0}), std::memory_order_relaxed);
  return admitted;
}

void gave(const void* block, size_t bytes) noexcept {
  {
    const std::lock_guard lock(mutex);
    if (closed) blocks.add(reinterpret_cast<uintptr_t>(block), bytes);
  }
  in_flight.fetch_sub(static_cast<int64_t>(std::min(bytes, kMost)), std::memory_order_relaxed);
}

void takes_back(const void* block) noexcept {
  const std::lock_guard lock(mutex);
  if (closed) blocks.remove(reinterpret_cast<uintptr_t>(block));
}

size_t followed_bytes(const void* block) noexcept {
  const std::lock_guard lock(mutex);
  return closed ? blocks.bytes_of(reinterpret_cast<uintptr_t>(block)) : 0;
}

Refusal last_refusal() noexcept {
  const std::lock_guard lock(mutex);
  Refusal copy = last;
  copy.seconds_ago = monotonic_seconds() - last_seconds;
  return copy;
}

void close(const GateLimits& new_limits, const SystemPaths& paths) {
  static const int registered = pthread_atfork(nullptr, nullptr, &open_in_child);
  (void)registered;
  const std::lock_guard lock(mutex);
  limits = new_limits;
  probe.emplace(paths);
  blocks.clear();
  blocks.open((paths.proc + "/self/pagemap").c_str());
  closed = true;
  room.store(0);  // the next one looks
}

void open() {
  const std::lock_guard lock(mutex);
  if (!closed) return;
  closed = false;
  blocks.clear();
  probe.reset();
  room.store(kOpen);
}

void refresh(MemorySample& now) {
  // Whoever holds it may have been stopped by the caller.
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock || !closed) return;
  add_promised(now, 0.0);
  const int64_t reserve = reserve_of(now.capacity, limits.fraction);
  const int64_t available = now.limit_left >= 0 ? std::min(now.available, now.limit_left) : now.available;
  if (available - now.promised > 2 * reserve) episode.fetch_add(1, std::memory_order_relaxed);
  room.store(std::max<int64_t>(left_at(now, reserve, 0).bytes, 0), std::memory_order_relaxed);
}

void begin_cell() { episode.fetch_add(1, std::memory_order_relaxed); }

}  // namespace leadline::guard::gate
