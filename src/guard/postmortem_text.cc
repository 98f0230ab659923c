// SPDX-License-Identifier: Apache-2.0
// A post-mortem in sentences.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cmath>

#include "guard/advice.h"
#include "guard/postmortem.h"
#include "leadline/budget.h"

namespace leadline::guard {

const char* death_cause_name(DeathCause cause) noexcept {
  switch (cause) {
    case DeathCause::kRunning:
      return "running";
    case DeathCause::kExit:
      return "exit";
    case DeathCause::kUnwatched:
      return "unwatched";
    case DeathCause::kOutOfMemory:
      return "out of memory";
    case DeathCause::kKilled:
      return "killed";
    case DeathCause::kSegfault:
      return "segmentation fault";
    case DeathCause::kStackOverflow:
      return "stack overflow";
    case DeathCause::kAbort:
      return "abort";
    case DeathCause::kBusError:
      return "bus error";
    case DeathCause::kArithmetic:
      return "arithmetic error";
    case DeathCause::kIllegalInstruction:
      return "illegal instruction";
    case DeathCause::kSignal:
      return "signal";
    case DeathCause::kReboot:
      return "reboot";
    case DeathCause::kUnknown:
      break;
  }
  return "unknown";
}

bool Postmortem::died() const noexcept {
  return cause != DeathCause::kRunning && cause != DeathCause::kExit && cause != DeathCause::kUnwatched &&
         cause != DeathCause::kUnknown;
}

namespace {

std::string clock_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e11) return "an unknown time";
  const auto moment = static_cast<time_t>(seconds);
  tm parts{};
  if (localtime_r(&moment, &parts) == nullptr) return "an unknown time";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string shortened(const std::string& text, size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

std::string memory_text(const Postmortem& report) {
  if (report.samples.empty()) return "";
  const RecordedSample& last = report.samples.back();
  std::string text = fmt::format("it had {}", format_bytes(last.resident));
  if (last.capacity > 0) {
    text += fmt::format(", and {} of {} ({:.0f} %) were in use", format_bytes(last.used), format_bytes(last.capacity),
                        100.0 * static_cast<double>(last.used) / static_cast<double>(last.capacity));
  }
  return text;
}

std::string place_text(const Postmortem& report) {
  std::string text;
  if (report.cell > 0) {
    text = fmt::format(" {} cell {}", report.cell_running ? "in" : "after", report.cell);
    if (!report.cell_line.empty()) text += fmt::format(" (`{}`)", shortened(report.cell_line, 80));
  }
  if (report.op_running) text += fmt::format(" while Leadline ran {}", report.op);
  return text;
}

std::string what_happened(const Postmortem& report) {
  const std::string in_module = report.module.empty() ? "" : " in " + file_name(report.module);
  switch (report.cause) {
    case DeathCause::kRunning:
      return "is running";
    case DeathCause::kExit:
      return report.message.empty() ? "ended by itself" : "ended with " + report.message;
    case DeathCause::kUnwatched:
      return "was not watched any more when it ended";
    case DeathCause::kOutOfMemory:
      return "was killed by the OOM killer";
    case DeathCause::kKilled:
      return "was killed (SIGKILL), or ended itself with _exit";
    case DeathCause::kSegfault:
      if (report.signal_code <= 0) return "died of a segmentation fault" + in_module;
      return fmt::format("died of a segmentation fault{} (address {:#x})", in_module, report.fault_address);
    case DeathCause::kStackOverflow:
      return "died of a stack overflow" + in_module;
    case DeathCause::kAbort:
      return "was aborted" + in_module + (report.message.empty() ? "" : ": " + shortened(report.message, 300));
    case DeathCause::kBusError:
      return "died of a bus error" + in_module;
    case DeathCause::kArithmetic:
      return "died of an arithmetic error" + in_module;
    case DeathCause::kIllegalInstruction:
      if (report.trap) return "ran into a trap instruction" + in_module;
      return "died of an illegal instruction" + in_module +
             (report.instruction.empty() ? "" : " (" + report.instruction + ")");
    case DeathCause::kSignal:
      return "was ended by " + signal_text(report.signal);
    case DeathCause::kReboot:
      return "ended with the machine, which was restarted or lost power";
    case DeathCause::kUnknown:
      break;
  }
  return "left a recording that cannot be read";
}

}  // namespace

std::string Postmortem::to_text() const {
  std::string text = summary + "\n";
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {:<12}{}\n", name, value);
  };
  add("cause", fmt::format("{} ({})", death_cause_name(cause), confidence));
  add("advice", advice);
  for (const std::string& line : evidence) add("evidence", line);
  add("memory", memory_text(*this));
  if (peak_resident > 0) add("peak", format_bytes(peak_resident));
  add("op", op.empty() ? "" : op + (op_running ? " (running)" : " (done)"));
  add("message", message);
  add("command", command);
  add("folder", folder);
  add("session", session);
  add("recording", path);
  for (const auto& [key, value] : facts) {
    if (key == "python" || key == "versions") add(key.c_str(), value);
  }
  if (!frames.empty()) text += "  native frames, innermost first:\n";
  for (const NativeFrame& frame : frames) {
    text += fmt::format("    {}+{:#x}{}\n", frame.module.empty() ? "?" : frame.module, frame.offset,
                        frame.symbol.empty() ? "" : " " + frame.symbol);
  }
  if (!python_stack.empty()) {
    text += "  Python:\n    ";
    for (const char c : python_stack) text += c == '\n' ? std::string("\n    ") : std::string(1, c);
    while (text.ends_with(' ') || text.ends_with('\n')) text.pop_back();
    text += "\n";
  }
  return text;
}

namespace {

std::string illegal_instruction_advice(const Postmortem& report, const Flight& flight) {
  if (report.trap) {
    return "A compiler puts this instruction where a program must never come: the library found itself in an "
           "impossible state. Look for libraries of mixed versions.";
  }
  if (!report.missing_features.empty()) {
    return fmt::format(
        "This CPU ({}) does not have {}, which builds for newer ones use. Install a build of {} for this CPU.",
        flight.fact("cpu"), fmt::join(report.missing_features, ", "),
        report.module.empty() ? "the library" : file_name(report.module));
  }
  return signal_advice(SIGILL, false);
}

std::string advice_of(const Postmortem& report, const Flight& flight) {
  switch (report.cause) {
    case DeathCause::kOutOfMemory:
      return "Use smaller batches or types, read data in pieces, and delete what is not needed any more. "
             "leadline.watch "
             "raises MemoryError before memory ends, and leadline.guard runs a step in a process of its own.";
    case DeathCause::kKilled:
      return "Somebody killed it while there was memory: a person, Jupyter's restart of a kernel that did not answer, "
             "a job scheduler or time limit; or a library called _exit.";
    case DeathCause::kStackOverflow:
      return "A recursion has no end, or is deeper than the stack (ulimit -s) allows. The Python stack shows where.";
    case DeathCause::kIllegalInstruction:
      return illegal_instruction_advice(report, flight);
    case DeathCause::kAbort:
      return signal_advice(SIGABRT, tells_of_refused_memory(report.message));
    case DeathCause::kSignal:
      return report.signal == SIGXCPU ? signal_advice(SIGXCPU, false)
                                      : "Somebody asked it to end: a person, a job scheduler, or the end of a session.";
    case DeathCause::kSegfault:
    case DeathCause::kBusError:
    case DeathCause::kArithmetic:
      return signal_advice(report.signal, false);
    default:
      return "";
  }
}

}  // namespace

void explain(Postmortem& report, const Flight& flight) {
  std::string name = file_name(report.command.substr(0, report.command.find(' ')));
  if (name.empty()) name = "a process";
  const std::string when = report.cause == DeathCause::kRunning ? " since " + clock_text(report.started)
                                                                : " at " + clock_text(report.last_sign);
  report.summary = fmt::format("{} (pid {}) {}{}{}", name, report.pid, what_happened(report), when, place_text(report));
  const bool about_memory = report.cause == DeathCause::kOutOfMemory || report.cause == DeathCause::kKilled;
  if (about_memory && !report.samples.empty()) report.summary += ": " + memory_text(report);
  if (report.confidence != "certain") report.summary += fmt::format(" ({})", report.confidence);
  report.advice = advice_of(report, flight);
}

}  // namespace leadline::guard
