// SPDX-License-Identifier: Apache-2.0
// How a recorded process ended: decided from its recording and from what the system knows now.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/cgroup.h"
#include "guard/flight_reader.h"
#include "leadline/guard/postmortem.h"

namespace leadline::guard {

/// What the system knows now about a process that may be gone.
struct Evidence {
  bool alive = false;
  std::string boot_id;                                      // of the system as it runs now
  std::optional<int64_t> group_oom_kills = std::nullopt;    // counter of the process's control group
  std::optional<int64_t> machine_oom_kills = std::nullopt;  // counter of the machine
  std::string kernel_log;                                   // as far as we may read it
};

/// Reads the evidence. `holds_lock`: a process still has the recording open for writing.
Evidence gather_evidence(const Flight& flight, bool holds_lock, const SystemPaths& paths);

/// Everything but path, reported and symbols.
Postmortem judge(const Flight& flight, const Evidence& evidence);

/// summary and advice from the rest, and what judge() does not keep of the recording.
void explain(Postmortem& report, const Flight& flight);

/// The library to blame for a crash: the first frame's that is not the C or C++ library. -1: none.
int blamed_frame(const std::vector<NativeFrame>& frames);

/// "libfoo.so" of "/usr/lib/libfoo.so".
std::string file_name(const std::string& path);

}  // namespace leadline::guard
