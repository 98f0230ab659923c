// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/fault_allocator.h"

#include <sys/mman.h>
#include <zlib.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace leadline::faults {

void (*instead_of_refusal)() = nullptr;

namespace {

std::atomic<bool> armed = false;
std::atomic<bool> refused = false;
std::atomic<int64_t> counted = 0;
std::atomic<int64_t> wanted = 0;
std::atomic<bool> onwards = false;
std::atomic<int64_t> live = 0;
std::atomic<int64_t> largest = 0;
thread_local int exempt = 0;

bool refuse() noexcept {
  if (!armed.load(std::memory_order_relaxed) || exempt > 0) return false;
  const int64_t n = ++counted;
  const int64_t first = wanted.load(std::memory_order_relaxed);
  if (n != first && !(onwards.load(std::memory_order_relaxed) && n > first)) return false;
  refused = true;
  if (instead_of_refusal != nullptr) {
    instead_of_refusal();
    return false;
  }
  return true;
}

/// Counts a block that was given.
void* given(void* block) noexcept {
  if (block != nullptr) live.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void taken_back(const void* block) noexcept {
  if (block != nullptr) live.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

void arm_allocator(int64_t n, Extent extent) {
  wanted = n;
  onwards = extent == Extent::kOnwards;
  counted = 0;
  refused = false;
  largest = 0;
  armed = true;
}

void disarm_allocator() { armed = false; }
bool allocation_refused() { return refused; }
int64_t allocations_counted() { return counted; }
int64_t live_allocations() { return live; }
int64_t largest_heap_block() { return largest; }

Exempt::Exempt() { ++exempt; }
Exempt::~Exempt() { --exempt; }

}  // namespace leadline::faults

namespace faults = leadline::faults;

// What the library calls; __real_ is the system's. The names are the linker's.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
void* __real_realloc(void* block, size_t bytes);
void* __real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void** block, size_t alignment, size_t bytes);
void __real_free(void* block);
int __real_inflateInit_(z_streamp stream, const char* version, int size);
int __real_inflateInit2_(z_streamp stream, int bits, const char* version, int size);
int __real_inflate(z_streamp stream, int flush);

void* __wrap_malloc(size_t bytes) { return faults::refuse() ? nullptr : faults::given(__real_malloc(bytes)); }

void* __wrap_calloc(size_t count, size_t bytes) {
  return faults::refuse() ? nullptr : faults::given(__real_calloc(count, bytes));
}

void* __wrap_realloc(void* block, size_t bytes) {
  if (faults::refuse()) return nullptr;
  if (block == nullptr) return faults::given(__real_realloc(nullptr, bytes));
  return __real_realloc(block, bytes);
}

void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return faults::refuse() ? nullptr : faults::given(__real_aligned_alloc(alignment, bytes));
}

int __wrap_posix_memalign(void** block, size_t alignment, size_t bytes) {
  if (faults::refuse()) return ENOMEM;
  const int result = __real_posix_memalign(block, alignment, bytes);
  if (result == 0) faults::given(*block);
  return result;
}

void __wrap_free(void* block) {
  faults::taken_back(block);
  __real_free(block);
}

// zlib allocates when it starts, and for its window when it meets the first bytes.
int __wrap_inflateInit_(z_streamp stream, const char* version, int size) {
  if (faults::refuse()) return Z_MEM_ERROR;
  return __real_inflateInit_(stream, version, size);
}

int __wrap_inflate(z_streamp stream, int flush) {
  if (stream->total_in == 0 && faults::refuse()) return Z_MEM_ERROR;
  return __real_inflate(stream, flush);
}

int __wrap_inflateInit2_(z_streamp stream, int bits, const char* version, int size) {
  if (faults::refuse()) return Z_MEM_ERROR;
  return __real_inflateInit2_(stream, bits, version, size);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)

namespace leadline::faults {

/// For __wrap_mmap, which is among the system calls: anonymous memory is an allocation.
bool refuse_anonymous_mapping() noexcept { return refuse(); }
void count_mapping(bool made) noexcept { live.fetch_add(made ? 1 : -1, std::memory_order_relaxed); }

namespace {

void note_size(size_t bytes) noexcept {
  if (!armed.load(std::memory_order_relaxed) || exempt > 0) return;
  const auto size = static_cast<int64_t>(bytes);
  for (int64_t seen = largest; seen < size && !largest.compare_exchange_weak(seen, size);) {
  }
}

void* plain(size_t bytes) noexcept {
  note_size(bytes);
  return refuse() ? nullptr : given(__real_malloc(bytes == 0 ? 1 : bytes));
}

void* aligned(size_t bytes, std::align_val_t alignment) noexcept {
  note_size(bytes);
  if (refuse()) return nullptr;
  void* block = nullptr;
  if (__real_posix_memalign(&block, static_cast<size_t>(alignment), bytes == 0 ? 1 : bytes) != 0) return nullptr;
  return given(block);
}

void* or_throw(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void give_back(void* block) noexcept {
  taken_back(block);
  __real_free(block);
}

}  // namespace
}  // namespace leadline::faults

void* operator new(size_t bytes) { return faults::or_throw(faults::plain(bytes)); }
void* operator new[](size_t bytes) { return faults::or_throw(faults::plain(bytes)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return faults::plain(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return faults::plain(bytes); }
void* operator new(size_t bytes, std::align_val_t a) { return faults::or_throw(faults::aligned(bytes, a)); }
void* operator new[](size_t bytes, std::align_val_t a) { return faults::or_throw(faults::aligned(bytes, a)); }
void* operator new(size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return faults::aligned(bytes, a);
}
void* operator new[](size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return faults::aligned(bytes, a);
}
void operator delete(void* block) noexcept { faults::give_back(block); }
void operator delete[](void* block) noexcept { faults::give_back(block); }
void operator delete(void* block, size_t) noexcept { faults::give_back(block); }
void operator delete[](void* block, size_t) noexcept { faults::give_back(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { faults::give_back(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { faults::give_back(block); }
void operator delete(void* block, std::align_val_t) noexcept { faults::give_back(block); }
void operator delete[](void* block, std::align_val_t) noexcept { faults::give_back(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { faults::give_back(block); }
void operator delete[](void* block, size_t, std::align_val_t) noexcept { faults::give_back(block); }
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept { faults::give_back(block); }
void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept { faults::give_back(block); }
