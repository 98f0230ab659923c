// SPDX-License-Identifier: Apache-2.0
// What everybody does who catches the Error of a node in order to try something else.
#pragma once

#include "core/cancel.h"
#include "core/error.h"

namespace leadline {

/// To be called first in the handler: passes on what is not about the node, an end of time or of memory.
inline void rethrow_if_fatal(const Error& error) {
  if (is_about_memory(error)) throw;
  check_cancelled();
}

}  // namespace leadline
