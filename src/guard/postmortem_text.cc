// SPDX-License-Identifier: Apache-2.0
// A post-mortem in sentences.
#include <fmt/core.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cmath>

#include "core/join.h"
#include "guard/advice.h"
#include "guard/postmortem.h"
#include "guard/python_stack.h"
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
    case DeathCause::kReplaced:
      return "replaced";
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
  if (report.cell > 0 || report.cell_running) {
    const std::string number = report.cell > 0 ? fmt::format("cell {}", report.cell) : "a cell";
    text = fmt::format(" {} {}", report.cell_running ? "in" : "after", number);
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
      if (!report.message.empty()) return "ended with " + report.message;
      return report.exit_status ? fmt::format("ended by itself with exit code {}", *report.exit_status)
                                : "ended by itself";
    case DeathCause::kUnwatched:
      return "was not watched any more when it ended";
    case DeathCause::kOutOfMemory:
      return "was killed by the OOM killer";
    case DeathCause::kKilled:
      return report.exit_status ? "was killed (SIGKILL) by somebody"
                                : "was killed (SIGKILL) by somebody, or ended itself with _exit";
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
    case DeathCause::kReplaced:
      return "became another program (exec)" + (report.message.empty() ? "" : ": " + shortened(report.message, 100));
    case DeathCause::kReboot:
      return "ended with the machine, which was restarted or lost power";
    case DeathCause::kUnknown:
      break;
  }
  return "left a recording that cannot be read";
}

}  // namespace

namespace {

std::string growth_text(const Postmortem& report) {
  const std::optional<RecordedGrowth> growth = last_growth(report.samples);
  if (!growth) return "";
  return fmt::format("it grew from {} to {} in the last {:.1f} s, since {}", format_bytes(growth->from),
                     format_bytes(growth->to), growth->seconds,
                     clock_text(report.last_sign - growth->seconds).substr(11));
}

bool was_nearly_full(const std::vector<RecordedSample>& samples) {
  return !samples.empty() && samples.back().capacity > 0 && samples.back().used > samples.back().capacity / 10 * 8;
}

/// "line 3 of the cell: x = f(y)", or a file and who called it.
std::string guilty_text(const Postmortem& report) {
  const GuiltyLine& guilty = report.guilty;
  if (guilty.line == 0) return "";
  const std::string source = guilty.source.empty() ? "" : ": " + shortened(guilty.source, 100);
  std::string text = guilty.in_cell ? fmt::format("line {} of the cell{}", guilty.line, source)
                                    : fmt::format("{}:{}{}", guilty.file, guilty.line, source);
  if (!guilty.function.empty() && guilty.function != "<module>") text += fmt::format(", in {}", guilty.function);
  if (guilty.cell_line > 0) {
    text += fmt::format(", called from line {} of the cell", guilty.cell_line);
    if (!guilty.cell_source.empty()) text += ": " + shortened(guilty.cell_source, 100);
  }
  return text;
}

/// Frames of the interpreter itself tell nothing that the Python stack does not tell better.
bool is_interpreter(const NativeFrame& frame) {
  const std::string name = file_name(frame.module);
  return name.starts_with("python") || name.starts_with("libpython");
}

std::string frames_text(const std::vector<NativeFrame>& frames) {
  constexpr size_t kMost = 12;
  std::string text;
  size_t shown = 0;
  for (size_t i = 0; i < frames.size();) {
    size_t next = i + 1;
    while (is_interpreter(frames[i]) && next < frames.size() && is_interpreter(frames[next])) ++next;
    if (next - i > 1) {
      text += fmt::format("    ... {} frames of the interpreter ({})\n", next - i, file_name(frames[i].module));
    } else if (shown++ < kMost) {
      text += fmt::format("    {}+{:#x}{}\n", frames[i].module.empty() ? "?" : frames[i].module, frames[i].offset,
                          frames[i].symbol.empty() ? "" : " " + frames[i].symbol);
    } else {
      text += fmt::format("    ... {} more\n", frames.size() - i);
      break;
    }
    i = next;
  }
  return text;
}

std::string indented(const std::string& text) {
  std::string result = "    ";
  for (const char c : text) result += c == '\n' ? std::string("\n    ") : std::string(1, c);
  while (result.ends_with(' ') || result.ends_with('\n')) result.pop_back();
  return result + "\n";
}

std::string restore_text(const Postmortem& report) {
  if (report.variables_path.empty()) return "";
  return "`%load_ext leadline` and `%restore` bring back the variables that were saved";
}

}  // namespace

std::string Postmortem::to_text() const {
  std::string text = summary + "\n";
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {:<12}{}\n", name, value);
  };
  add("cause", fmt::format("{} ({})", death_cause_name(cause), confidence));
  add("line", guilty_text(*this));
  add("advice", advice);
  add("restore", restore_text(*this));
  for (const std::string& line : evidence) add("evidence", line);
  add("memory", memory_text(*this));
  add("growth", growth_text(*this));
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
  if (!cell_source.empty()) text += "  cell:\n" + indented(cell_source);
  if (!python_stack.empty()) text += "  Python:\n" + indented(python_stack_text(parse_python_stack(python_stack)));
  if (!frames.empty()) text += "  native frames, innermost first:\n" + frames_text(frames);
  return text;
}

std::string Postmortem::to_brief(const std::string& more) const {
  std::string text = fmt::format("leadline: the kernel {}", what_happened(*this));
  if (cell_running) text += " in this cell";
  if (cell > 0 && !cell_running) text += fmt::format(" after cell {}", cell);
  if (op_running) text += fmt::format(" while Leadline ran {}", op);
  text += confidence == "certain" ? ".\n" : fmt::format(" ({}).\n", confidence);
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {:<8}{}\n", name, value);
  };
  std::string memory = memory_text(*this);
  if (!samples.empty() && peak_resident > samples.back().resident + samples.back().resident / 50) {
    memory += fmt::format("; its peak was {}", format_bytes(peak_resident));
  } else if (samples.empty() && peak_resident > 0) {
    memory = fmt::format("its peak was {}", format_bytes(peak_resident));
  }
  // Where memory had no part in it, that a process grew while it started is no news.
  const bool about_memory = cause == DeathCause::kOutOfMemory || was_nearly_full(samples);
  if (const std::string growth = about_memory ? growth_text(*this) : ""; !growth.empty()) memory += "; " + growth;
  if (cause == DeathCause::kOutOfMemory && !samples.empty() && samples.back().capacity > samples.back().used) {
    memory += fmt::format("; it wanted more than the {} that were left",
                          format_bytes(samples.back().capacity - samples.back().used));
  }
  add("memory", memory);
  add("line", guilty_text(*this));
  add("advice", advice);
  add("restore", restore_text(*this));
  if (path.empty() && cause != DeathCause::kExit) {
    add("next",
        "`%load_ext leadline` in the first cell records the line, the libraries and the memory second by second");
  }
  add("more", !more.empty() ? more : path.empty() ? "" : fmt::format("python -m leadline postmortem {}", path));
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
        flight.fact("cpu"), join(report.missing_features, ", "),
        report.module.empty() ? "the library" : file_name(report.module));
  }
  return signal_advice(SIGILL, false);
}

/// Memory was near a limit, or had just been refused, when it crashed.
bool was_short_of_memory(const Postmortem& report, const Flight& flight) {
  constexpr int64_t kLately = 10'000'000'000;
  int64_t own_limit = 0;
  for (const FlightEvent& event : flight.events) {
    if (event.kind == flight::EventKind::kResume && event.text.empty()) own_limit = event.value;
    const bool warned = event.kind == flight::EventKind::kAlarm || event.kind == flight::EventKind::kRaised;
    if (warned && flight.crash && flight.crash->clock_ns - event.clock_ns < kLately) return true;
  }
  if (tells_of_refused_memory(report.message)) return true;
  if (report.samples.empty()) return false;
  const RecordedSample& last = report.samples.back();
  return (last.capacity > 0 && last.used > last.capacity / 10 * 9) ||
         (own_limit > 0 && last.resident > own_limit / 10 * 8);
}

std::string crash_advice(const Postmortem& report, const Flight& flight) {
  if (!was_short_of_memory(report, flight)) {
    const bool limited = report.message.starts_with(kLimitWords);
    return signal_advice(report.signal, false) +
           (limited ? " Or it was refused memory: it had a limit of its own, and many libraries do not check." : "");
  }
  return "Memory was short when it crashed. Many native libraries do not check whether they got the memory "
         "they asked for, and crash like this when it is refused. Give it more memory or less to do at once, raise or "
         "remove the limit (`ulimit -d`, `ulimit -v`, refuse_large=False of the watch), or run the step in "
         "leadline.guard.";
}

std::string exit_advice(const Postmortem& report) {
  if (!report.exit_status) return "";
  if (!report.cell_running) return "It ended by itself, outside of a cell.";
  return "exit() or quit() in a cell ends the kernel, and so does os._exit() or a library that calls exit(). Remove "
         "the "
         "call, or run it in leadline.guard.";
}

std::string advice_of(const Postmortem& report, const Flight& flight) {
  switch (report.cause) {
    case DeathCause::kOutOfMemory:
      return "Use smaller batches or types, read data in pieces, and delete what is not needed any more. "
             "leadline.watch "
             "raises MemoryError before memory ends, and leadline.guard runs a step in a process of its own.";
    case DeathCause::kKilled:
      return "Somebody killed it while there was memory: a person, its own code (os.kill), Jupyter's restart of a "
             "kernel "
             "that did not answer, a job scheduler or a time limit.";
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
      return crash_advice(report, flight);
    case DeathCause::kArithmetic:
      return signal_advice(report.signal, false);
    case DeathCause::kExit:
      return exit_advice(report);
    case DeathCause::kReplaced:
      return "exec replaces the whole process, with all variables. Start other programs with subprocess instead.";
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
