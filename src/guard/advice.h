// SPDX-License-Identifier: Apache-2.0
// What happened and what to do about it, in sentences.
#pragma once

#include "leadline/guard_report.h"

namespace leadline::guard {

/// More about an end than the report has.
struct Circumstances {
  bool machine_oom = false;  ///< the kernel's OOM killer was at work outside the guard's own limit
};

/// Fills in summary and advice from the rest of the report.
void explain(GuardReport& report, const Circumstances& circumstances);

}  // namespace leadline::guard
