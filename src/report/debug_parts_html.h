// SPDX-License-Identifier: Apache-2.0
// The parts of a debug report that say what was measured at the outputs: what parts of the network cost there, and what
// changes that were tried make of it.
#pragma once

#include <string>

#include "leadline/debug_result.h"

namespace leadline::report {

/// Before and after of each suggestion; nothing when there are none.
void add_suggestions(std::string& page, const DebugResult& result);

/// Parts of the network by effect, as rows that open: first into their own parts. Equal blocks are one row.
void add_regions(std::string& page, const DebugResult& result);

}  // namespace leadline::report
