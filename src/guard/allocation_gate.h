// SPDX-License-Identifier: Apache-2.0
// The side of the gate that a watch sees.
#pragma once

#include <cstdint>

#include "core/cgroup.h"
#include "leadline/guard/allocation_gate.h"

namespace leadline::guard::gate {

struct GateLimits {
  double fraction = 0.92;      // alarms come there; requests are admitted up to halfway between it and the end
  int64_t resident_limit = 0;  // 0: none
};

/// What is kept free for tracebacks, reports and the front end.
int64_t reserve_of(int64_t capacity, double fraction);

/// Refuses from now on what would not fit. In forked children the gate is open.
void close(const GateLimits& limits, const SystemPaths& paths);
void open();
/// A sample that was taken anyway. Fills in `promised`.
void refresh(MemorySample& now);
/// Another cell: what was taken before is not counted against it.
void begin_cell();

}  // namespace leadline::guard::gate
