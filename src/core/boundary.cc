// SPDX-License-Identifier: Apache-2.0
#include "core/boundary.h"

#include <new>
#include <system_error>

namespace leadline {
namespace {

void rethrow() {
  try {
    throw;
  } catch (const std::system_error& error) {  // a thread that could not be started
    throw Error(ErrorCode::kRuntime, error.what());
  }
}

}  // namespace

void rethrow_as_error() {
  try {
    rethrow();
  } catch (const std::bad_alloc&) {
    throw_out_of_memory();
  }
  throw_out_of_memory();  // not reached: rethrow() throws
}

}  // namespace leadline
