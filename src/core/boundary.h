// SPDX-License-Identifier: Apache-2.0
// The edge of the C++ API: whatever happens inside, what comes out is a leadline::Error.
#pragma once

#include "core/error.h"

namespace leadline {

/// Ends every public function that allocates: `T f() try { ... } catch (...) { rethrow_as_error(); }`. Standard
/// exceptions about memory and threads become an Error; those of callers' own functions pass as they are.
[[noreturn]] void rethrow_as_error();

}  // namespace leadline
