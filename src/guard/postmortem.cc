// SPDX-License-Identifier: Apache-2.0
#include "guard/postmortem.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <span>
#include <sstream>
#include <string_view>

#include "guard/advice.h"
#include "guard/cpu_info.h"
#include "guard/python_stack.h"
#include "guard/units.h"
#include "guard/untrusted_file.h"
#include "leadline/budget.h"
#include "leadline/types.h"

namespace leadline::guard {
namespace {

constexpr size_t kMostSamples = 240;

bool is_system_library(std::string_view name) {
  constexpr std::array<std::string_view, 7> kNames = {"libc.so",     "libc-",    "libpthread", "libstdc++.so",
                                                      "libgcc_s.so", "ld-linux", "[vdso]"};
  return std::any_of(kNames.begin(), kNames.end(), [&](std::string_view start) { return name.starts_with(start); });
}

/// The inode of the first pid namespace (PROC_PID_INIT_INO), whose numbers the kernel's log has.
constexpr uint64_t kFirstPidNamespace = 0xEFFFFFFC;

DeathCause cause_of_signal(int signal) {
  switch (signal) {
    case SIGKILL:
      return DeathCause::kKilled;
    case SIGSEGV:
      return DeathCause::kSegfault;
    case SIGABRT:
      return DeathCause::kAbort;
    case SIGBUS:
      return DeathCause::kBusError;
    case SIGFPE:
      return DeathCause::kArithmetic;
    case SIGILL:
      return DeathCause::kIllegalInstruction;
    default:
      return DeathCause::kSignal;
  }
}

int64_t last_sign(const Flight& flight) {
  int64_t last = flight.header.clock_ns;
  if (!flight.samples.empty()) last = std::max(last, flight.samples.back().clock_ns);
  if (!flight.events.empty()) last = std::max(last, flight.events.back().clock_ns);
  if (flight.crash) last = std::max(last, flight.crash->clock_ns);
  return last;
}

DeathCause cause_of(const flight::Crash& crash) {
  return crash.signal == SIGSEGV && crash.stack_overflow != 0 ? DeathCause::kStackOverflow
                                                              : cause_of_signal(crash.signal);
}

/// A handler below ours may have repaired the fault, as those of Java do: then the process continues.
bool survived(const Flight& flight) {
  const int64_t crash = flight.crash->clock_ns;
  if (!flight.samples.empty() && flight.samples.back().clock_ns > crash + 2 * kSecond) return true;
  return !flight.events.empty() && flight.events.back().clock_ns > crash;
}

/// The kernel's log has a line "[12345.678901] ... Killed process PID (name) ..." of about the time of the death. Its
/// numbers are those of the first pid namespace: elsewhere the same number is another process.
bool log_names(const std::string& log, const flight::Header& header, int64_t clock_ns) {
  if (header.pid_namespace != 0 && header.pid_namespace != kFirstPidNamespace) return false;
  const int pid = header.pid;
  const std::string words = fmt::format("Killed process {} (", pid);
  bool found = false;
  for_each_line(log, [&](std::string_view line) {
    const size_t bracket = line.find('[');
    if (found || bracket == std::string_view::npos || line.find(words) == std::string_view::npos) return;
    const double seconds = std::strtod(std::string(line.substr(bracket + 1, 30)).c_str(), nullptr);
    found = std::abs(seconds - static_cast<double>(clock_ns) / 1e9) < 120;
  });
  return found;
}

struct MemoryState {
  double fraction = 0.0;     // of capacity, at the end; 0: unknown
  double in_a_moment = 0.0;  // if it grew on for two seconds as in the last two
  bool small = false;        // so little is left that it may be gone between two samples
};

MemoryState memory_at_end(const Flight& flight) {
  MemoryState state;
  if (flight.samples.empty()) return state;
  const flight::FlightSample& last = flight.samples.back();
  if (last.capacity <= 0) return state;
  int64_t growth = 0;
  for (const flight::FlightSample& sample : flight.samples) {
    if (last.clock_ns - sample.clock_ns <= 2 * kSecond) growth = std::max(growth, last.resident - sample.resident);
  }
  const auto capacity = static_cast<double>(last.capacity);
  state.fraction = static_cast<double>(last.used) / capacity;
  state.in_a_moment = static_cast<double>(last.used + growth) / capacity;
  constexpr int64_t kBetweenTwoSamples = int64_t{1} << 30;  // what one thread can touch in a quarter of a second
  state.small = last.capacity - last.used < kBetweenTwoSamples;
  return state;
}

struct OomKills {
  bool known = false;
  bool grew = false;
  int64_t before = 0;
  int64_t after = 0;
};

OomKills count_oom_kills(int64_t recorded, std::optional<int64_t> seen_before, std::optional<int64_t> now) {
  OomKills kills;
  kills.before = seen_before.value_or(recorded);
  kills.known = kills.before >= 0 && now.has_value();
  kills.after = now.value_or(kills.before);
  kills.grew = kills.known && kills.after > kills.before;
  return kills;
}

/// Nothing was recorded at the end: SIGKILL, by the kernel for lack of memory or by another process, or _exit().
///
/// The kernel counts every OOM kill, also those for lack of memory of the whole machine, in the control group of the
/// process that it killed. So where that counter is known and stood still, it was not the OOM killer, whatever happened
/// to other groups meanwhile.
void judge_silent_end(const Flight& flight, const Evidence& evidence, Postmortem& report) {
  const MemoryState memory = memory_at_end(flight);
  const OomKills group =
      count_oom_kills(flight.header.group_oom_kills, evidence.group_oom_kills_before, evidence.group_oom_kills);
  const OomKills machine =
      count_oom_kills(flight.header.machine_oom_kills, evidence.machine_oom_kills_before, evidence.machine_oom_kills);
  const bool named = log_names(evidence.kernel_log, flight.header, last_sign(flight));
  const bool was_short = memory.fraction >= 0.85 || memory.in_a_moment >= 0.95;
  report.cause = DeathCause::kOutOfMemory;
  if (named) report.evidence.push_back("the kernel's log says that its OOM killer killed this process");
  if (group.grew) {
    report.evidence.push_back(
        fmt::format("the OOM kills of its control group went from {} to {}", group.before, group.after));
  } else if (group.known) {
    report.evidence.push_back("the kernel counted no OOM kill in its control group");
  } else if (machine.grew) {
    report.evidence.push_back(
        fmt::format("the OOM kills of the machine went from {} to {}", machine.before, machine.after));
  } else if (machine.known) {
    report.evidence.push_back("the kernel has counted no OOM kill since this process was first watched");
  }
  const bool just_counted = group.grew && evidence.group_oom_kills_before;
  if (named) {
    report.confidence = "certain";
  } else if (just_counted || (group.grew && (memory.fraction >= 0.7 || was_short))) {
    report.confidence = "very likely";
  } else if (group.grew && (memory.fraction >= 0.4 || memory.small)) {
    report.confidence = "likely";
  } else if (!group.known && (machine.grew || !machine.known) && was_short) {
    report.confidence = "likely";
  } else {
    report.cause = DeathCause::kKilled;
    const bool unclear = group.grew || (!group.known && machine.grew) || (!group.known && was_short);
    report.confidence = unclear ? "unclear" : group.known || machine.known ? "very likely" : "likely";
    if (evidence.exit_status && !unclear) report.confidence = "certain";
  }
}

/// How shells and `conda run` say that a signal ended their program: 128 and its number.
std::optional<int> signal_of_exit_code(int code) {
  for (const int signal : {SIGKILL, SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) {
    if (code == 128 + signal) return signal;
  }
  return std::nullopt;
}

bool ends_with(const Flight& flight, flight::EventKind kind) {
  return !flight.events.empty() && flight.events.back().kind == kind;
}

/// The parent knows the exit status, which leaves little to guess.
void judge_exit_status(const Flight& flight, const Evidence& evidence, Postmortem& report) {
  const int status = *evidence.exit_status;
  report.exit_status = status;
  int signal = status < 0 ? -status : 0;
  if (const std::optional<int> found = status > 0 ? signal_of_exit_code(status) : std::nullopt) {
    signal = *found;
    report.evidence.push_back(fmt::format("exit code {} is how shells say {}", status, signal_text(signal)));
  } else {
    report.evidence.push_back(status < 0 ? "its parent saw it die of " + signal_text(signal)
                                         : fmt::format("its parent saw it exit with code {}", status));
  }
  if (signal == 0) {
    report.cause = DeathCause::kExit;
    if (ends_with(flight, flight::EventKind::kExit)) report.message = flight.events.back().text;
  } else if (signal == SIGKILL) {
    judge_silent_end(flight, evidence, report);
    report.signal = signal;
  } else {
    report.cause = cause_of_signal(signal);
    report.signal = signal;
  }
}

void judge_cause(const Flight& flight, const Evidence& evidence, Postmortem& report) {
  report.confidence = "certain";
  report.exit_status = evidence.exit_status;
  if (evidence.replaced) {
    report.cause = DeathCause::kReplaced;
    if (ends_with(flight, flight::EventKind::kExec)) report.message = flight.events.back().text;
    return;
  }
  if (evidence.alive) {
    report.cause = DeathCause::kRunning;
    return;
  }
  const bool exited = evidence.exit_status && *evidence.exit_status >= 0 && !signal_of_exit_code(*evidence.exit_status);
  if (flight.crash && !survived(flight) && !exited) {
    report.cause = cause_of(*flight.crash);
    report.signal = flight.crash->signal;
    return;
  }
  if (flight.crash) report.evidence.push_back("an earlier " + signal_text(flight.crash->signal) + " was survived");
  if (evidence.exit_status) {
    judge_exit_status(flight, evidence, report);
    return;
  }
  if (ends_with(flight, flight::EventKind::kExit)) {
    report.cause = DeathCause::kExit;
    report.message = flight.events.back().text;
    return;
  }
  if (ends_with(flight, flight::EventKind::kStop)) {
    report.cause = DeathCause::kUnwatched;
    return;
  }
  if (!evidence.boot_id.empty() && flight.header.boot_id[0] != '\0' && evidence.boot_id != flight.header.boot_id) {
    report.cause = DeathCause::kReboot;
    report.confidence = "likely";
    report.evidence.push_back("the machine has been started again since");
    return;
  }
  judge_silent_end(flight, evidence, report);
}

/// ud2 of x86-64 and udf of aarch64: what __builtin_trap() becomes.
bool is_trap(std::span<const unsigned char> bytes) {
#if defined(__aarch64__)
  return bytes.size() >= 4 && bytes[2] == 0 && bytes[3] == 0;
#else
  return bytes.size() >= 2 && bytes[0] == 0x0F && bytes[1] == 0x0B;
#endif
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

void take_crash(const Flight& flight, Postmortem& report) {
  const flight::Crash& crash = *flight.crash;
  report.signal_code = crash.code;
  report.fault_address = crash.fault_address;
  report.message = flight.crash_message;
  report.thread = printable(std::string_view(crash.thread_name));
  for (size_t i = 0; i < crash.frame_count; ++i) {
    report.frames.push_back({flight.crash_modules[i], crash.frames[i].offset, ""});
  }
  if (const int blamed = blamed_frame(report.frames); blamed >= 0) {
    report.module = report.frames[static_cast<size_t>(blamed)].module;
  }
  if (crash.signal == SIGILL && crash.instruction_size > 0) {
    const std::span bytes(crash.instruction, crash.instruction_size);
    for (const uint8_t byte : bytes)
      report.instruction += fmt::format("{}{:02x}", report.instruction.empty() ? "" : " ", byte);
    report.trap = is_trap(bytes);
    report.missing_features = missing_numeric_features(words(flight.fact("cpu_features")));
    report.evidence.push_back("instruction " + report.instruction);
  }
}

void take_cells(const Flight& flight, Postmortem& report) {
  report.cell_source = flight.cell_source;
  for (const FlightEvent& event : flight.events) {
    if (event.kind != flight::EventKind::kCellBegin && event.kind != flight::EventKind::kCellEnd) continue;
    report.cell = event.number;
    report.cell_line = event.text;
    report.cell_running = event.kind == flight::EventKind::kCellBegin;
  }
  if (flight.ops.empty()) return;
  const FlightOp& op = flight.ops.front();
  report.op = fmt::format("{} #{} '{}'", op.op, op.node, op.name);
  if (op.subgraph != 0) report.op += fmt::format(" of subgraph {}", op.subgraph);
  report.op_running = op.running;
}

void take_samples(const Flight& flight, Postmortem& report) {
  const int64_t end = last_sign(flight);
  const size_t step = flight.samples.size() / kMostSamples + 1;
  for (size_t i = 0; i < flight.samples.size(); ++i) {
    const flight::FlightSample& sample = flight.samples[i];
    report.peak_resident = std::max(report.peak_resident, sample.resident);
    if ((flight.samples.size() - 1 - i) % step != 0) continue;
    report.samples.push_back(
        {static_cast<double>(end - sample.clock_ns) / 1e9, sample.resident, sample.used, sample.capacity});
  }
}

}  // namespace

std::optional<RecordedGrowth> last_growth(const std::vector<RecordedSample>& samples) {
  if (samples.empty()) return std::nullopt;
  const int64_t to = samples.back().resident;
  size_t lowest = samples.size() - 1;
  for (size_t i = samples.size(); i-- > 0;) {
    if (samples[i].resident <= samples[lowest].resident) lowest = i;
    if (samples[i].resident > to + to / 10) break;  // before, it had had more: another story
  }
  const int64_t growth = to - samples[lowest].resident;
  if (growth < to / 10 || growth <= 0) return std::nullopt;
  // It may have rested at about the lowest level for long.
  const int64_t about_lowest = samples[lowest].resident + growth / 50;
  while (lowest + 1 < samples.size() && samples[lowest + 1].resident <= about_lowest) ++lowest;
  return RecordedGrowth{samples[lowest].resident, to, samples[lowest].seconds_before_end};
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

int blamed_frame(const std::vector<NativeFrame>& frames) {
  int system = -1;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (frames[i].module.empty()) continue;
    if (!is_system_library(file_name(frames[i].module))) return static_cast<int>(i);
    if (system < 0) system = static_cast<int>(i);
  }
  return system;
}

Postmortem judge(const Flight& flight, const Evidence& evidence) {
  Postmortem report;
  report.pid = flight.header.pid;
  report.started = static_cast<double>(flight.header.wall_ns) / 1e9;
  report.last_sign =
      report.started + (static_cast<double>(last_sign(flight)) - static_cast<double>(flight.header.clock_ns)) / 1e9;
  report.command = flight.fact("command");
  report.session = flight.fact("session");
  report.folder = flight.fact("folder");
  report.facts.assign(flight.facts.begin(), flight.facts.end());
  judge_cause(flight, evidence, report);
  if (flight.crash && report.signal == flight.crash->signal) take_crash(flight, report);
  take_cells(flight, report);
  take_samples(flight, report);
  report.python_stack = flight.python_stack;
  report.guilty = find_guilty_line(parse_python_stack(report.python_stack), report.cell_source);
  explain(report, flight);
  return report;
}

}  // namespace leadline::guard
