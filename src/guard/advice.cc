// SPDX-License-Identifier: Apache-2.0
#include "guard/advice.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "leadline/budget.h"

namespace leadline::guard {

const char* guard_cause_name(GuardCause cause) noexcept {
  switch (cause) {
    case GuardCause::kExit:
      return "exit";
    case GuardCause::kSignal:
      return "signal";
    case GuardCause::kMemory:
      return "memory";
    case GuardCause::kProcesses:
      return "processes";
    case GuardCause::kTimeout:
      return "timeout";
    case GuardCause::kInterrupt:
      return "interrupt";
  }
  return "exit";
}

namespace {

std::string child_exit_advice(const GuardReport& report) {
  if (report.exit_code == 0) return "";
  if (report.exit_code == 127) return "127 is how a shell says that it found no such program.";
  if (report.exit_code == 128 + SIGKILL) {
    return "137 is how a shell says that its program was killed (SIGKILL), often for lack of memory.";
  }
  return "The program ended by itself; its last lines say why.";
}

std::string advice_after_signal(const GuardReport& report, const Circumstances& circumstances) {
  if (report.signal == SIGKILL) {
    return circumstances.machine_oom ? "The machine itself ran out of memory."
                                     : "Somebody outside the guard killed it: a person, a job scheduler, or a "
                                       "container's limit.";
  }
  return signal_advice(report.signal, std::any_of(report.last_lines.begin(), report.last_lines.end(),
                                                  [](const auto& line) { return tells_of_refused_memory(line); }));
}

std::string memory_advice(const GuardReport& report, const Circumstances& circumstances) {
  if (circumstances.machine_oom) {
    return "The machine or container ran out of memory before the guard's limit was met. Set a lower limit, so that "
           "the "
           "guard acts first, and use smaller batches or stream the data.";
  }
  return fmt::format(
      "Give it more than {} if the machine has it; otherwise smaller batches, smaller types (float32, float16), or "
      "data "
      "read in pieces.",
      format_bytes(report.limits.memory_bytes, report.limits.units));
}

/// glibc's sigabbrev_np has them since 2.32 only.
constexpr std::pair<int, std::string_view> kSignalNames[] = {
    {SIGABRT, "ABRT"}, {SIGALRM, "ALRM"}, {SIGBUS, "BUS"},       {SIGCHLD, "CHLD"},   {SIGCONT, "CONT"},
    {SIGFPE, "FPE"},   {SIGHUP, "HUP"},   {SIGILL, "ILL"},       {SIGINT, "INT"},     {SIGIO, "POLL"},
    {SIGKILL, "KILL"}, {SIGPIPE, "PIPE"}, {SIGPROF, "PROF"},     {SIGPWR, "PWR"},     {SIGQUIT, "QUIT"},
    {SIGSEGV, "SEGV"}, {SIGSTOP, "STOP"}, {SIGSTKFLT, "STKFLT"}, {SIGSYS, "SYS"},     {SIGTERM, "TERM"},
    {SIGTRAP, "TRAP"}, {SIGTSTP, "TSTP"}, {SIGTTIN, "TTIN"},     {SIGTTOU, "TTOU"},   {SIGURG, "URG"},
    {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}, {SIGVTALRM, "VTALRM"}, {SIGWINCH, "WINCH"}, {SIGXCPU, "XCPU"},
    {SIGXFSZ, "XFSZ"},
};

}  // namespace

std::string signal_text(int signal) {
  for (const auto& [number, name] : kSignalNames) {
    if (number == signal) return fmt::format("SIG{} ({})", name, strsignal(signal));
  }
  return fmt::format("signal {}", signal);
}

bool tells_of_refused_memory(std::string_view text) {
  for (const std::string_view words : {"bad_alloc", "out of memory", "memory exhausted"}) {
    if (text.find(words) != std::string_view::npos) return true;
  }
  return false;
}

std::string signal_advice(int signal, bool refused_memory) {
  switch (signal) {
    case SIGSEGV:
      return "A native library read or wrote memory that is not its own, or the stack ran over (endless recursion). "
             "The Python stack names the call. If it always crashes there, `leadline doctor` looks for libraries that "
             "do "
             "not fit together, and leadline.guard runs it in a process of its own.";
    case SIGABRT:
      if (refused_memory) {
        return "An allocation was refused and the library gave up. Give it more memory, or less to do at once.";
      }
      return "A native library found an error and gave up (abort). Its last lines say which.";
    case SIGILL:
      return "The program has instructions that this CPU does not know, as builds for AVX or AVX-512 do. Install a "
             "build for this CPU.";
    case SIGBUS:
      return "A mapped file got shorter while it was in use, or the file system behind it (/dev/shm, /tmp) is full.";
    case SIGFPE:
      return "An integer was divided by zero in native code; look for an empty shape or a zero stride.";
    case SIGXCPU:
      return "It used up the CPU time that its limits (ulimit -t) allow.";
    default:
      return "The program was sent a signal that it does not handle.";
  }
}

void explain(GuardReport& report, const Circumstances& circumstances) {
  const std::string peak = report.peak_bytes > 0 ? format_bytes(report.peak_bytes, report.limits.units) : "unknown";
  switch (report.cause) {
    case GuardCause::kExit:
      report.summary =
          fmt::format("exited with code {} after {:.1f} s, peak {}", report.exit_code, report.seconds, peak);
      report.advice = child_exit_advice(report);
      return;
    case GuardCause::kSignal:
      report.summary =
          fmt::format("died of {} after {:.1f} s, peak {}", signal_text(report.signal), report.seconds, peak);
      report.advice = advice_after_signal(report, circumstances);
      return;
    case GuardCause::kMemory:
      report.summary =
          circumstances.machine_oom
              ? fmt::format("killed by the system's OOM killer after {:.1f} s, peak {}", report.seconds, peak)
              : fmt::format("killed for taking {}, more than its memory limit of {}, after {:.1f} s", peak,
                            format_bytes(report.limits.memory_bytes, report.limits.units), report.seconds);
      report.advice = memory_advice(report, circumstances);
      return;
    case GuardCause::kProcesses:
      report.summary = fmt::format("killed for having more than {} processes after {:.1f} s", report.limits.processes,
                                   report.seconds);
      report.advice = "It starts processes without end, or more at once than the limit; use a pool of a fixed size.";
      return;
    case GuardCause::kTimeout:
      report.summary = fmt::format("killed after its {:g} s were over, peak {}", report.limits.timeout_seconds, peak);
      report.advice = "Allow more time, or see from the stack and the last lines where it hangs.";
      return;
    case GuardCause::kInterrupt:
      report.summary = fmt::format("stopped by its caller after {:.1f} s, peak {}", report.seconds, peak);
      return;
  }
}

}  // namespace leadline::guard
