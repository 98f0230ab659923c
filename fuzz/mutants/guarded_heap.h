// SPDX-License-Identifier: Apache-2.0
// A C++ heap that notices wrong accesses, for builds without a sanitizer.
#pragma once

namespace leadline::fuzz {

/// Blocks allocated from now on are guarded, or no longer. Does nothing with a sanitizer.
void guard_heap(bool on);

}  // namespace leadline::fuzz
