// SPDX-License-Identifier: Apache-2.0
#include "guard/postmortem.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
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
#include "guard/untrusted_file.h"
#include "leadline/budget.h"
#include "leadline/types.h"

namespace leadline::guard {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr size_t kMostSamples = 240;

bool is_system_library(std::string_view name) {
  constexpr std::array<std::string_view, 7> kNames = {"libc.so",     "libc-",    "libpthread", "libstdc++.so",
                                                      "libgcc_s.so", "ld-linux", "[vdso]"};
  return std::any_of(kNames.begin(), kNames.end(), [&](std::string_view start) { return name.starts_with(start); });
}

DeathCause cause_of(const flight::Crash& crash) {
  switch (crash.signal) {
    case SIGSEGV:
      return crash.stack_overflow != 0 ? DeathCause::kStackOverflow : DeathCause::kSegfault;
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

/// A handler below ours may have repaired the fault, as those of Java do: then the process continues.
bool survived(const Flight& flight) {
  const int64_t crash = flight.crash->clock_ns;
  if (!flight.samples.empty() && flight.samples.back().clock_ns > crash + 2 * kSecond) return true;
  return !flight.events.empty() && flight.events.back().clock_ns > crash;
}

/// The kernel's log has a line "[12345.678901] ... Killed process PID (name) ..." of about the time of the death.
bool log_names(const std::string& log, int pid, int64_t clock_ns) {
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
  double fraction = 0.0;  // of capacity, at the end; 0: unknown
  bool rising = false;
};

MemoryState memory_at_end(const Flight& flight) {
  MemoryState state;
  if (flight.samples.empty()) return state;
  const flight::FlightSample& last = flight.samples.back();
  if (last.capacity > 0) state.fraction = static_cast<double>(last.used) / static_cast<double>(last.capacity);
  for (const flight::FlightSample& sample : flight.samples) {
    if (last.clock_ns - sample.clock_ns > 2 * kSecond || last.capacity <= 0) continue;
    state.rising |= last.resident - sample.resident > last.capacity / 20;
  }
  return state;
}

/// Nothing was recorded at the end: SIGKILL, by the kernel for lack of memory or by another process, or _exit().
void judge_silent_end(const Flight& flight, const Evidence& evidence, Postmortem& report) {
  const MemoryState memory = memory_at_end(flight);
  const bool group_grew = evidence.group_oom_kills && flight.header.group_oom_kills >= 0 &&
                          *evidence.group_oom_kills > flight.header.group_oom_kills;
  const bool machine_grew = evidence.machine_oom_kills && flight.header.machine_oom_kills >= 0 &&
                            *evidence.machine_oom_kills > flight.header.machine_oom_kills;
  const bool counted = evidence.group_oom_kills || evidence.machine_oom_kills;
  const bool named = log_names(evidence.kernel_log, flight.header.pid, last_sign(flight));
  if (named) report.evidence.push_back("the kernel's log says that its OOM killer killed this process");
  if (group_grew) {
    report.evidence.push_back(fmt::format("the OOM kills of its control group went from {} to {}",
                                          flight.header.group_oom_kills, *evidence.group_oom_kills));
  } else if (machine_grew) {
    report.evidence.push_back(fmt::format("the OOM kills of the machine went from {} to {}",
                                          flight.header.machine_oom_kills, *evidence.machine_oom_kills));
  } else if (counted) {
    report.evidence.push_back("the kernel has counted no OOM kill since this process was first watched");
  }
  report.cause = DeathCause::kOutOfMemory;
  if (named) {
    report.confidence = "certain";
  } else if (group_grew) {
    report.confidence = memory.fraction >= 0.7                    ? "very likely"
                        : memory.fraction >= 0.4 || memory.rising ? "likely"
                                                                  : "unclear";
  } else if ((machine_grew || !counted) && (memory.fraction >= 0.85 || memory.rising)) {
    report.confidence = "likely";
  } else {
    report.cause = DeathCause::kKilled;
    report.confidence = memory.fraction >= 0.85 || machine_grew ? "unclear" : "very likely";
    if (!counted) report.confidence = "likely";
  }
}

void judge_cause(const Flight& flight, const Evidence& evidence, Postmortem& report) {
  report.confidence = "certain";
  if (evidence.alive) {
    report.cause = DeathCause::kRunning;
    return;
  }
  if (flight.crash && !survived(flight)) {
    report.cause = cause_of(*flight.crash);
    report.signal = flight.crash->signal;
    return;
  }
  if (flight.crash) report.evidence.push_back("an earlier " + signal_text(flight.crash->signal) + " was survived");
  if (!flight.events.empty() && flight.events.back().kind == flight::EventKind::kExit) {
    report.cause = DeathCause::kExit;
    report.message = flight.events.back().text;
    return;
  }
  if (!flight.events.empty() && flight.events.back().kind == flight::EventKind::kStop) {
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
  report.python_stack = flight.python_stack;
  for (size_t i = 0; i < crash.frame_count; ++i) {
    report.frames.push_back({flight.crash_modules[i], crash.frames[i].offset, ""});
  }
  if (const int blamed = blamed_frame(report.frames); blamed >= 0) {
    report.module = report.frames[static_cast<size_t>(blamed)].module;
  }
  if (crash.signal == SIGILL && crash.instruction_size > 0) {
    const std::span bytes(crash.instruction, crash.instruction_size);
    report.instruction = fmt::format("{:02x}", fmt::join(bytes, " "));
    report.trap = is_trap(bytes);
    report.missing_features = missing_numeric_features(words(flight.fact("cpu_features")));
    report.evidence.push_back("instruction " + report.instruction);
  }
}

void take_cells(const Flight& flight, Postmortem& report) {
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
  if (report.signal != 0) take_crash(flight, report);
  take_cells(flight, report);
  take_samples(flight, report);
  explain(report, flight);
  return report;
}

}  // namespace leadline::guard
