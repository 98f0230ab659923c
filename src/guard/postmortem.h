// SPDX-License-Identifier: Apache-2.0
// How a recorded process ended: decided from its recording and from what the system knows now.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cgroup.h"
#include "guard/flight_reader.h"
#include "leadline/guard/postmortem.h"

namespace leadline::guard {

/// What the system knows now about a process that may be gone.
struct Evidence {
  bool alive = false;
  bool replaced = false;                                    // it became another program
  std::optional<int> exit_status = std::nullopt;            // as its parent saw it
  std::string boot_id;                                      // of the system as it runs now
  std::optional<int64_t> group_oom_kills = std::nullopt;    // counter of the process's control group
  std::optional<int64_t> machine_oom_kills = std::nullopt;  // counter of the machine
  std::string kernel_log;                                   // as far as we may read it
  // Somebody looked at the counters shortly before the end; else they are those of the recording's begin.
  std::optional<int64_t> group_oom_kills_before = std::nullopt;
  std::optional<int64_t> machine_oom_kills_before = std::nullopt;
};

/// Reads the evidence. `holds_lock`: a process still has the recording open for writing.
Evidence gather_evidence(const Flight& flight, bool holds_lock, const SystemPaths& paths);

/// As far as we may read it.
std::string read_kernel_log();

/// Path, reported, symbols, and what else lies beside the recording.
void add_files(const std::string& file, const Flight& flight, Postmortem& report);

/// Everything but what add_files() adds.
Postmortem judge(const Flight& flight, const Evidence& evidence);

/// summary and advice from the rest, and what judge() does not keep of the recording.
void explain(Postmortem& report, const Flight& flight);

/// Where memory began to rise for the last time before the end; nothing when it did not by much.
struct RecordedGrowth {
  int64_t from = 0;
  int64_t to = 0;
  double seconds = 0.0;
};
std::optional<RecordedGrowth> last_growth(const std::vector<RecordedSample>& samples);

/// How the crash handler's message begins when the process had a limit of its own memory.
inline constexpr std::string_view kLimitWords = "its memory was limited: ";

/// The library to blame for a crash: the first frame's that is not the C or C++ library. -1: none.
int blamed_frame(const std::vector<NativeFrame>& frames);

/// "libfoo.so" of "/usr/lib/libfoo.so".
std::string file_name(const std::string& path);

}  // namespace leadline::guard
