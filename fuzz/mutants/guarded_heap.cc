// SPDX-License-Identifier: Apache-2.0
// In builds without a sanitizer: every block of the C++ heap ends where a page begins that may not be touched, and
// freed blocks stay untouchable. What reads or writes past a block, or after its end, dies at once. New memory is
// filled with bytes that differ from block to block, so that results that depend on them differ too.
#include "guarded_heap.h"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#ifndef LEADLINE_SANITIZED

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kRegion = size_t{1} << 37;  // addresses, not memory
constexpr uint64_t kMagic = 0x6C6561646C696E65U;
constexpr int64_t kMostAlive = 20'000;  // each takes two of the system's 65,530 mappings
constexpr unsigned char kSlack = 0x5A;

struct Header {
  uint64_t magic;
  size_t pages;
  size_t size;
  std::byte* start;
};

std::byte* region = nullptr;
std::atomic<size_t> next{0};
std::atomic<int64_t> alive{0};
std::atomic<bool> enabled{false};

bool inside(const void* memory) {
  const auto* p = static_cast<const std::byte*>(memory);
  return region != nullptr && p >= region && p < region + kRegion;
}

[[noreturn]] void die(const char* what) {
  // No allocation here: the heap is what is broken.
  std::fputs(what, stderr);
  std::abort();
}

void* guarded(size_t size, size_t align) {
  if (!enabled.load(std::memory_order_relaxed) || alive.load(std::memory_order_relaxed) > kMostAlive) return nullptr;
  const size_t room = (size + align - 1) / align * align;
  if (room < size || room > (size_t{1} << 32)) return nullptr;
  const size_t pages = (room + sizeof(Header) + align + kPage - 1) / kPage;
  const size_t at = next.fetch_add((pages + 1) * kPage, std::memory_order_relaxed);
  if (at + (pages + 1) * kPage > kRegion) return nullptr;
  std::byte* const block = region + at;
  if (mprotect(block, pages * kPage, PROT_READ | PROT_WRITE) != 0) return nullptr;
  std::byte* const start = block + pages * kPage - room;
  new (block) Header{kMagic, pages, size, start};
  std::memset(start, static_cast<int>(1 + at / kPage % 250), size);
  std::memset(start + size, kSlack, room - size);
  alive.fetch_add(1, std::memory_order_relaxed);
  return start;
}

void release(void* memory) {
  if (memory == nullptr) return;
  if (!inside(memory)) return std::free(memory);
  // The header is at the start of the first page of the block; blocks of one page are the rule.
  auto at = reinterpret_cast<uintptr_t>(memory) / kPage * kPage;
  Header header{};
  for (;; at -= kPage) {
    std::memcpy(&header, reinterpret_cast<const void*>(at), sizeof(header));
    if (header.magic == kMagic && header.start == memory) break;
    if (at <= reinterpret_cast<uintptr_t>(region)) die("guarded heap: a block was freed that is none\n");
  }
  const auto* end = reinterpret_cast<const unsigned char*>(at + header.pages * kPage);
  for (const auto* slack = reinterpret_cast<const unsigned char*>(header.start) + header.size; slack < end; ++slack) {
    if (*slack != kSlack) die("guarded heap: bytes right behind a block were written\n");
  }
  alive.fetch_sub(1, std::memory_order_relaxed);
  mmap(reinterpret_cast<void*>(at), header.pages * kPage, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void* take(size_t size, size_t align) noexcept {
  if (void* block = guarded(size == 0 ? 1 : size, align); block != nullptr) return block;
  if (align <= alignof(std::max_align_t)) return std::malloc(size == 0 ? 1 : size);
  const size_t room = (size + align - 1) / align * align;
  return room < size ? nullptr : std::aligned_alloc(align, room == 0 ? align : room);
}

void* take_or_throw(size_t size, size_t align) {
  void* const block = take(size, align);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

constexpr size_t kOrdinary = alignof(std::max_align_t);

}  // namespace

void* operator new(size_t size) { return take_or_throw(size, kOrdinary); }
void* operator new[](size_t size) { return take_or_throw(size, kOrdinary); }
void* operator new(size_t size, std::align_val_t align) { return take_or_throw(size, static_cast<size_t>(align)); }
void* operator new[](size_t size, std::align_val_t align) { return take_or_throw(size, static_cast<size_t>(align)); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return take(size, kOrdinary); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return take(size, kOrdinary); }
void* operator new(size_t size, std::align_val_t align, const std::nothrow_t&) noexcept {
  return take(size, static_cast<size_t>(align));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept { release(memory); }

namespace leadline::fuzz {

void guard_heap(bool on) {
  if (on && region == nullptr) {
    void* memory = mmap(nullptr, kRegion, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    region = static_cast<std::byte*>(memory);
  }
  enabled = on;
}

}  // namespace leadline::fuzz

#else

namespace leadline::fuzz {

void guard_heap(bool) {}

}  // namespace leadline::fuzz

#endif
