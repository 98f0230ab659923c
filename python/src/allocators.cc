// SPDX-License-Identifier: Apache-2.0
// Python's and numpy's allocators ask leadline/guard/allocation_gate.h before they take memory: both turn a null into
// MemoryError. The hooks stay for the life of the process and pass everything on; without a watch the gate is open.
// Invariant: what is underneath gets every block as it gave it out, so that hooks can come and go around ours.
#include <malloc.h>

#include <atomic>
#include <cstring>

#include "leadline/guard/allocation_gate.h"
#include "module.h"
#include "outside_stable_abi.h"

namespace leadline::python {
namespace {

namespace gate = guard::gate;

/// glibc's largest threshold for mapping a block by itself.
constexpr size_t kAlwaysMapped = size_t{32} << 20;

/// Whether glibc has mapped this block by itself: realloc of such a block moves pages and copies nothing. Not all large
/// blocks are: one that fits into a hole of the heap is put there. glibc says so in bit 1 of the word before the block,
/// and puts two words before the first block of a mapping.
bool is_mapped(const void* block) {
  constexpr size_t kMappedBit = 2;
  if (reinterpret_cast<uintptr_t>(block) % 4096 != 2 * sizeof(size_t)) return false;
  return (static_cast<const size_t*>(block)[-1] & kMappedBit) != 0;
}

// A domain of Python's. Calls in flight may see the old functions with the new context or the other way round, so the
// context is the same for both, and ours ignores it.
struct Domain {
  outside::Domain domain;
  outside::Allocator base{};
  bool wrapped = false;
  bool sizes_known = false;  // blocks are malloc's own: it knows their sizes
};
Domain raw = {outside::Domain::kRaw};
Domain mem = {outside::Domain::kMem};
Domain obj = {outside::Domain::kObj};
std::atomic<int64_t> asked = 0;  // large requests that came by: how a hook is found to be in place

/// What a block of `old` bytes (0: unknown) takes in addition while it becomes one of `bytes`. Shrinking is never
/// refused.
size_t added_bytes(const void* block, size_t old, size_t bytes) {
  if (bytes <= old) return 0;
  return old > 0 && is_mapped(block) ? bytes - old : bytes;
}

template <typename Allocate>
void* guarded(size_t bytes, bool follow, Allocate allocate) {
  if (bytes >= gate::kFollowed) asked.fetch_add(1, std::memory_order_relaxed);
  if (!gate::admit(bytes)) return nullptr;
  void* const block = allocate();
  if (bytes >= gate::kFollowed) gate::gave(follow ? block : nullptr, bytes);
  return block;
}

template <Domain& domain>
void* hook_malloc(void*, size_t bytes) {
  return guarded(bytes, domain.sizes_known, [&] { return domain.base.malloc(domain.base.ctx, bytes); });
}

template <Domain& domain>
void* hook_calloc(void*, size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  return guarded(bytes, domain.sizes_known, [&] { return domain.base.calloc(domain.base.ctx, count, size); });
}

template <Domain& domain>
void* hook_realloc(void*, void* block, size_t bytes) {
  const auto change = [&] { return domain.base.realloc(domain.base.ctx, block, bytes); };
  const size_t old = block != nullptr && domain.sizes_known ? malloc_usable_size(block) : 0;
  if (old >= gate::kFollowed) gate::takes_back(block);
  if (bytes >= gate::kFollowed) asked.fetch_add(1, std::memory_order_relaxed);
  const size_t more = added_bytes(block, old, bytes);
  const bool admitted = more == 0 || gate::admit(more);
  void* const result = admitted ? change() : nullptr;
  if (admitted && more >= gate::kFollowed) gate::gave(nullptr, more);
  // What is followed is touched or not, whatever it was before; in case of failure the old block lives on.
  const void* const kept = result != nullptr ? result : block;
  const size_t kept_bytes = result != nullptr ? bytes : old;
  if (domain.sizes_known && kept != nullptr && kept_bytes >= gate::kFollowed) {
    gate::in_flight.fetch_add(static_cast<int64_t>(kept_bytes), std::memory_order_relaxed);
    gate::gave(kept, kept_bytes);
  }
  return result;
}

template <Domain& domain>
void hook_free(void*, void* block) {
  if (block != nullptr && domain.sizes_known && malloc_usable_size(block) >= gate::kFollowed) gate::takes_back(block);
  domain.base.free(domain.base.ctx, block);
}

/// A large block is not mapped, and shows nothing, when it fits into a hole of the heap; a larger one may not.
bool gives_blocks_of_malloc(const outside::Allocator& allocator) {
  for (size_t bytes = 2 * kAlwaysMapped; bytes <= 512 * kAlwaysMapped; bytes *= 16) {
    void* const block = allocator.malloc(allocator.ctx, bytes);  // never touched
    if (block == nullptr) return false;
    const size_t size = is_mapped(block) ? malloc_usable_size(block) : 0;
    allocator.free(allocator.ctx, block);
    if (size > 0) return size >= bytes && size < bytes + 16384;
  }
  return false;
}

template <Domain& domain>
void wrap() {
  if (domain.wrapped) return;
  outside::functions().get_allocator(domain.domain, &domain.base);
  // Under Python's debugging hooks, or an allocator of somebody else, blocks may have a header.
  domain.sizes_known = domain.domain == outside::Domain::kRaw && gives_blocks_of_malloc(domain.base);
  outside::Allocator hooks = {domain.base.ctx, &hook_malloc<domain>, &hook_calloc<domain>, &hook_realloc<domain>,
                              &hook_free<domain>};
  outside::functions().set_allocator(domain.domain, &hooks);
  domain.wrapped = true;
}

bool asks(void* (*allocate)(size_t), void (*release)(void*)) {
  const int64_t before = asked.load();
  release(allocate(gate::kFollowed));
  return asked.load() > before;
}

// Arenas of pymalloc, which holds small objects.
outside::ArenaAllocator arenas{};

void* hook_arena(void*, size_t bytes) {
  if (!gate::admit_small(bytes)) return nullptr;
  return arenas.alloc(arenas.ctx, bytes);
}

void hook_free_arena(void*, void* arena, size_t bytes) { arenas.free(arenas.ctx, arena, bytes); }

/// Large blocks of all domains come from the raw one, unless Python was started or built another way.
void install_python() {
  const outside::Functions& python = outside::functions();
  if (!python.has_allocators()) {
    throw Error(ErrorCode::kUnsupported,
                "this Python has no PyMem_SetAllocator: the watch cannot be asked before it takes memory");
  }
  if (raw.wrapped && !asks(python.raw_malloc, python.raw_free)) raw.wrapped = false;  // tracemalloc put back what was
  wrap<raw>();
  if (!asks(&PyMem_Malloc, &PyMem_Free)) wrap<mem>();
  if (!asks(&PyObject_Malloc, &PyObject_Free)) wrap<obj>();
  if (arenas.alloc == nullptr) {
    python.get_arena_allocator(&arenas);
    outside::ArenaAllocator hooks = {arenas.ctx, &hook_arena, &hook_free_arena};
    python.set_arena_allocator(&hooks);
  }
}

// numpy's handler of data (NEP 49), as numpy/ndarraytypes.h declares it.
struct DataAllocator {
  void* ctx;
  void* (*malloc)(void*, size_t);
  void* (*calloc)(void*, size_t, size_t);
  void* (*realloc)(void*, void*, size_t);
  void (*free)(void*, void*, size_t);
};
struct DataHandler {
  char name[127];
  uint8_t version;
  DataAllocator allocator;
};
DataAllocator numpy_base{};

void* numpy_malloc(void* ctx, size_t bytes) {
  return guarded(bytes, true, [&] { return numpy_base.malloc(ctx, bytes); });
}

void* numpy_calloc(void* ctx, size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  return guarded(bytes, true, [&] { return numpy_base.calloc(ctx, count, size); });
}

void* numpy_realloc(void* ctx, void* block, size_t bytes) {
  const size_t old = gate::followed_bytes(block);
  const size_t more = added_bytes(block, old, bytes);
  if (more > 0 && !gate::admit(more)) return nullptr;
  gate::takes_back(block);
  void* const result = numpy_base.realloc(ctx, block, bytes);
  if (more >= gate::kFollowed) gate::gave(nullptr, more);
  const void* const kept = result != nullptr ? result : block;
  const size_t kept_bytes = result != nullptr ? bytes : old;
  if (kept_bytes >= gate::kFollowed) {
    gate::in_flight.fetch_add(static_cast<int64_t>(kept_bytes), std::memory_order_relaxed);
    gate::gave(kept, kept_bytes);
  }
  return result;
}

void numpy_free(void* ctx, void* block, size_t bytes) {
  if (bytes >= gate::kFollowed) gate::takes_back(block);
  numpy_base.free(ctx, block, bytes);
}

/// Changes the default handler where it is. numpy keeps the handler in a context variable: one that is set is seen by
/// this context alone, and threads and tasks of others would get the default one. Arrays that exist are freed through
/// it too, which is right: their blocks are what is underneath. `table` is numpy's _ARRAY_API.
bool install_numpy(const nb::object& table) {
  if (numpy_base.malloc != nullptr) return true;
  constexpr size_t kDefaultHandler = 306;  // PyDataMem_DefaultHandler in numpy's table, since numpy 1.22
  if (!PyCapsule_CheckExact(table.ptr())) return false;
  void** const functions = static_cast<void**>(PyCapsule_GetPointer(table.ptr(), PyCapsule_GetName(table.ptr())));
  if (functions == nullptr || functions[kDefaultHandler] == nullptr) {
    PyErr_Clear();
    return false;
  }
  PyObject* const capsule = *static_cast<PyObject**>(functions[kDefaultHandler]);
  if (capsule == nullptr || PyCapsule_IsValid(capsule, "mem_handler") == 0) return false;
  auto* const handler = static_cast<DataHandler*>(PyCapsule_GetPointer(capsule, "mem_handler"));
  if (handler->version != 1 || std::strncmp(handler->name, "default_allocator", sizeof handler->name) != 0)
    return false;
  numpy_base = handler->allocator;
  handler->allocator.malloc = &numpy_malloc;
  handler->allocator.calloc = &numpy_calloc;
  handler->allocator.realloc = &numpy_realloc;
  handler->allocator.free = &numpy_free;
  return true;
}

Record refusal() {
  const guard::Refusal last = gate::last_refusal();
  nb::dict result;
  result["count"] = last.count;
  result["seconds_ago"] = last.seconds_ago;
  result["requested"] = last.requested;
  result["left"] = last.left;
  result["available"] = last.available;
  result["promised"] = last.promised;
  result["reserve"] = last.reserve;
  result["resident"] = last.resident;
  result["capacity"] = last.capacity;
  result["own_limit"] = last.own_limit;
  result["process_limit"] = last.process_limit;
  result["container"] = last.container;
  return result;
}

}  // namespace

void init_allocators(nb::module_& m) {
  m.def("guard_python_memory", &install_python,
        "Python's allocators ask the watch from now on. Call it again when other hooks may have replaced ours.");
  m.def(
      "guard_numpy_memory", &install_numpy, nb::arg("array_api"),
      "numpy's data allocator asks the watch from now on, in all threads and contexts; False: this numpy is unknown.");
  m.def("last_refusal", &refusal, "What the watch refused last: a dict; `count` is 0 when nothing was.");
  m.def(
      "admit_allocation",
      [](int64_t bytes) {
        const auto size = static_cast<size_t>(bytes < 0 ? 0 : bytes);
        const bool admitted = gate::admit(size);
        if (admitted && size >= gate::kFollowed) gate::gave(nullptr, size);
        return admitted;
      },
      nb::arg("bytes"), "Whether the watch would let Python take as many bytes now.");
}

}  // namespace leadline::python
