// SPDX-License-Identifier: Apache-2.0
// What happened and what to do about it, in sentences.
#pragma once

#include <string>
#include <string_view>

#include "leadline/guard/process_report.h"

namespace leadline::guard {

/// More about an end than the report has.
struct Circumstances {
  bool machine_oom = false;  ///< the kernel's OOM killer was at work outside the guard's own limit
};

/// "SIGSEGV (Segmentation fault)".
std::string signal_text(int signal);

/// What to do about a program that `signal` ended. `refused_memory`: its last words were about memory it did not get.
std::string signal_advice(int signal, bool refused_memory);

/// Whether a program's last words are about memory it did not get.
bool tells_of_refused_memory(std::string_view text);

/// Fills in summary and advice from the rest of the report.
void explain(GuardReport& report, const Circumstances& circumstances);

}  // namespace leadline::guard
