// SPDX-License-Identifier: Apache-2.0
// System calls that fail at the n-th time. The library's calls come here because the test program is linked with
// --wrap; those of the test and of other libraries go straight to the system.
#pragma once

#include <cstdint>
#include <string>

#include "tests/faults/fault_allocator.h"

namespace leadline::faults {

enum class SystemFault {
  kRefuse,     ///< the call fails: EMFILE, EIO, ENOSPC, ENOMEM or EAGAIN, as fits it
  kShort,      ///< reads and writes transfer one byte; other calls are not counted
  kInterrupt,  ///< reads and writes give EINTR; other calls are not counted
};

/// From now on call number `n` (the first is 1) meets the fault.
void arm_system(int64_t n, Extent extent, SystemFault fault);
void disarm_system();
bool system_fault_met();
int64_t system_calls_counted();
/// The name of the first call that met the fault.
const char* system_call_met();

}  // namespace leadline::faults
