// SPDX-License-Identifier: Apache-2.0
// What the package needs of Python beyond its stable ABI, to which the extension keeps where Python has one. It is
// looked up in the running Python, with types of our own: all of it has been as it is here since Python 3.5, and is
// null where it is not there any more.
#pragma once

#include <cstddef>

namespace leadline::python::outside {

/// Python's PyMemAllocatorDomain.
enum class Domain : int { kRaw = 0, kMem = 1, kObj = 2 };

/// Python's PyMemAllocatorEx.
struct Allocator {
  void* ctx;
  void* (*malloc)(void* ctx, size_t size);
  void* (*calloc)(void* ctx, size_t count, size_t size);
  void* (*realloc)(void* ctx, void* block, size_t new_size);
  void (*free)(void* ctx, void* block);
};

/// Python's PyObjectArenaAllocator.
struct ArenaAllocator {
  void* ctx;
  void* (*alloc)(void* ctx, size_t size);
  void (*free)(void* ctx, void* arena, size_t size);
};

struct Functions {
  void (*get_allocator)(Domain, Allocator*);
  void (*set_allocator)(Domain, Allocator*);
  void (*get_arena_allocator)(ArenaAllocator*);
  void (*set_arena_allocator)(ArenaAllocator*);
  void* (*raw_malloc)(size_t);
  void (*raw_free)(void*);
  int (*gil_state_check)();

  /// Whether Python's allocators can be asked and changed.
  bool has_allocators() const {
    return get_allocator != nullptr && set_allocator != nullptr && get_arena_allocator != nullptr &&
           set_arena_allocator != nullptr && raw_malloc != nullptr && raw_free != nullptr;
  }
};

/// Those of this process.
const Functions& functions();

}  // namespace leadline::python::outside
