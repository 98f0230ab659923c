// SPDX-License-Identifier: Apache-2.0
#include "guard/followed_blocks.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "guard/monotonic_clock.h"

namespace leadline::guard {
namespace {

constexpr size_t kMostBlocks = (size_t{1} << 15) * 3 / 4;
const auto kPage = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));

}  // namespace

void FollowedBlocks::open(const char* pagemap) { pagemap_ = Descriptor(::open(pagemap, O_RDONLY | O_CLOEXEC)); }

void FollowedBlocks::clear() {
  if (count_ > 0) places_.fill({});
  count_ = next_ = 0;
  untouched_ = total_ = 0;
  pagemap_.close();
}

size_t FollowedBlocks::home(uintptr_t address) {
  return static_cast<size_t>((address >> 4) * 0x9E3779B97F4A7C15ULL >> 49);  // the upper 15 bits
}

size_t FollowedBlocks::find(uintptr_t address) const {
  size_t place = home(address);
  while (places_[place].address != 0 && places_[place].address != address) place = (place + 1) % kPlaces;
  return place;
}

void FollowedBlocks::add(uintptr_t address, size_t bytes) {
  if (address == 0 || count_ >= kMostBlocks) return;
  Block& block = places_[find(address)];
  if (block.address == address) {  // freed behind our back
    untouched_ -= static_cast<int64_t>(block.untouched);
    total_ -= static_cast<int64_t>(block.bytes);
  } else {
    ++count_;
  }
  block = {address, bytes, bytes};
  untouched_ += static_cast<int64_t>(bytes);
  total_ += static_cast<int64_t>(bytes);
}

size_t FollowedBlocks::remove(uintptr_t address) {
  if (count_ == 0 || address == 0) return 0;
  size_t place = find(address);
  if (places_[place].address == 0) return 0;
  const Block gone = places_[place];
  --count_;
  untouched_ -= static_cast<int64_t>(gone.untouched);
  total_ -= static_cast<int64_t>(gone.bytes);
  // Those behind it move up, so that a search still ends at the first free place.
  for (size_t other = (place + 1) % kPlaces; places_[other].address != 0; other = (other + 1) % kPlaces) {
    const size_t wanted = home(places_[other].address);
    if ((other - wanted) % kPlaces < (other - place) % kPlaces) continue;
    places_[place] = places_[other];
    place = other;
  }
  places_[place] = {};
  return gone.bytes;
}

size_t FollowedBlocks::bytes_of(uintptr_t address) const {
  if (count_ == 0 || address == 0) return 0;
  return places_[find(address)].bytes;
}

bool FollowedBlocks::page_is_there(uintptr_t address) const {
  if (pagemap_) {
    uint64_t entry = 0;
    constexpr uint64_t kPresentOrSwapped = uint64_t{3} << 62;
    const auto at = static_cast<off_t>(address / kPage * sizeof entry);
    if (pread(pagemap_.get(), &entry, sizeof entry, at) == sizeof entry && (entry & kPresentOrSwapped) != 0)
      return true;
  }
  unsigned char there = 0;
  // Freed behind our back: whatever it was is not promised any more.
  if (mincore(reinterpret_cast<void*>(address / kPage * kPage), kPage, &there) != 0) return true;
  return !pagemap_ && (there & 1) != 0;
}

bool FollowedBlocks::is_mapped(uintptr_t address) {
  unsigned char there = 0;
  return mincore(reinterpret_cast<void*>(address / kPage * kPage), kPage, &there) == 0;
}

/// From a few pages of it, evenly spread: 1 in 128 is as exact as the reserve needs for the largest.
size_t FollowedBlocks::measure(const Block& block) const {
  const size_t pages = std::max<size_t>(block.bytes / kPage, 1);
  const size_t looks = std::min(pages, std::clamp<size_t>(pages / 16, 4, 128));
  size_t missing = 0;
  for (size_t i = 0; i < looks; ++i) {
    const size_t page = looks == 1 ? 0 : i * (pages - 1) / (looks - 1);
    if (!page_is_there(block.address + page * kPage)) ++missing;
  }
  return missing == 0 ? 0 : block.bytes / looks * missing;
}

int64_t FollowedBlocks::look(double seconds) {
  if (untouched_ == 0) return 0;
  const double end = monotonic_seconds() + seconds;
  for (size_t step = 0; step < kPlaces; ++step) {
    Block& block = places_[next_];
    next_ = (next_ + 1) % kPlaces;
    if (block.untouched == 0) continue;
    if (!is_mapped(block.address)) {  // freed behind our back
      remove(block.address);
      continue;
    }
    const size_t untouched = measure(block);
    untouched_ += static_cast<int64_t>(untouched) - static_cast<int64_t>(block.untouched);
    block.untouched = untouched;
    if (step % 16 == 0 && monotonic_seconds() > end) break;
  }
  return untouched_;
}

}  // namespace leadline::guard
