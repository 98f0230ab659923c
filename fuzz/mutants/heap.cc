// SPDX-License-Identifier: Apache-2.0
#include "heap.h"

#include <atomic>
#include <cstddef>

#ifdef LEADLINE_ADDRESS_SANITIZED
#include <sanitizer/lsan_interface.h>

// Of sanitizer/allocator_interface.h, which GCC does not install.
extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, size_t),
                                              void (*on_free)(const volatile void*));
size_t __sanitizer_get_allocated_size(const volatile void* memory);
}
#endif

namespace leadline::fuzz {
namespace {

std::atomic<int64_t> now = 0;
std::atomic<int64_t> peak = 0;
int64_t start = 0;

#ifdef LEADLINE_ADDRESS_SANITIZED
void on_malloc(const volatile void*, size_t bytes) {
  const int64_t total =
      now.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed) + static_cast<int64_t>(bytes);
  if (total > peak.load(std::memory_order_relaxed)) peak.store(total, std::memory_order_relaxed);
}
void on_free(const volatile void* memory) {
  if (memory == nullptr) return;
  now.fetch_sub(static_cast<int64_t>(__sanitizer_get_allocated_size(memory)), std::memory_order_relaxed);
}
#endif

}  // namespace

void watch_heap() {
#ifdef LEADLINE_ADDRESS_SANITIZED
  __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
#endif
}

void reset_heap_peak() {
  start = now.load();
  peak.store(start);
}

int64_t heap_peak() { return peak.load() - start; }

bool sanitized() {
#ifdef LEADLINE_SANITIZED
  return true;
#else
  return false;
#endif
}

bool leaks() {
#ifdef LEADLINE_ADDRESS_SANITIZED
  return __lsan_do_recoverable_leak_check() != 0;
#else
  return false;
#endif
}

}  // namespace leadline::fuzz
