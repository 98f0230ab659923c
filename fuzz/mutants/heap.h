// SPDX-License-Identifier: Apache-2.0
// How much heap a piece of work takes: counted by the hooks of AddressSanitizer, and not at all without it.
#pragma once

#include <cstdint>

namespace leadline::fuzz {

/// Once, before anything is measured.
void watch_heap();
/// From now on.
void reset_heap_peak();
/// The most that existed at one time since then, beyond what existed then; 0 where it is not counted.
int64_t heap_peak();
/// Whether this program was built with any sanitizer.
bool sanitized();
/// What is lost since the start; empty when nothing is. Takes some 10 ms; finds nothing without AddressSanitizer.
bool leaks();

}  // namespace leadline::fuzz
