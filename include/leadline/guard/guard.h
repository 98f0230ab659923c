// SPDX-License-Identifier: Apache-2.0
// Everything of leadline::guard, the library beside the engine (CMake: leadline::guard): processes under limits, a
// watch over memory, post-mortems, leaks, devices, and the doctor of Python environments.
#pragma once

#include "leadline/guard/devices.h"     // IWYU pragma: export
#include "leadline/guard/doctor.h"      // IWYU pragma: export
#include "leadline/guard/laps.h"        // IWYU pragma: export
#include "leadline/guard/postmortem.h"  // IWYU pragma: export
#include "leadline/guard/process.h"     // IWYU pragma: export
#include "leadline/guard/watch.h"       // IWYU pragma: export
