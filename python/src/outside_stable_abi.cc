// SPDX-License-Identifier: Apache-2.0
#include "outside_stable_abi.h"

#include <dlfcn.h>

namespace leadline::python::outside {
namespace {

template <typename Function>
void find(const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

Functions find_all() {
  Functions found{};
  find("PyMem_GetAllocator", found.get_allocator);
  find("PyMem_SetAllocator", found.set_allocator);
  find("PyObject_GetArenaAllocator", found.get_arena_allocator);
  find("PyObject_SetArenaAllocator", found.set_arena_allocator);
  find("PyMem_RawMalloc", found.raw_malloc);
  find("PyMem_RawFree", found.raw_free);
  find("PyGILState_Check", found.gil_state_check);
  return found;
}

}  // namespace

const Functions& functions() {
  static const Functions found = find_all();
  return found;
}

}  // namespace leadline::python::outside
