// SPDX-License-Identifier: Apache-2.0
// What everybody does who catches the Error of a node in order to try something else.
#pragma once

#include "base/error.h"
#include "base/run_check.h"

namespace leadline {

/// To be called first in the handler: passes on what is not about the node, an end of time or of memory.
inline void pass_on_limits(const Error& error) {
  if (is_about_memory(error)) throw;
  ask_run_check();
}

}  // namespace leadline
