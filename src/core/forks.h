// SPDX-License-Identifier: Apache-2.0
// Which process this is, for state that threads left behind when a process was forked.
#pragma once

#include <cstdint>

namespace leadline {

/// Counts the forks that led to this process since the first call: threads of an earlier count do not exist here.
uint32_t fork_count();

}  // namespace leadline
