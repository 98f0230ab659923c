// SPDX-License-Identifier: Apache-2.0
// Runs a program whose death is not the caller's: limits, a live copy of its output, the cause of its end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "leadline/guard/process_report.h"

namespace leadline::guard {

struct GuardOptions {
  std::vector<std::string> command;           ///< program, looked up in PATH, and its arguments
  std::vector<std::string> environment = {};  ///< "NAME=value"; empty: the caller's
  GuardLimits limits = {};
  std::vector<int> inherited = {};  ///< descriptors that the child keeps besides 0, 1 and 2, under the same numbers
  /// The child leads a session of its own: a Ctrl-C at the caller's terminal does not reach it, and it has no terminal.
  bool own_session = true;
  /// For a program that does nothing but guard: processes that the tree leaves behind become its children, and all
  /// children of the caller are taken for the tree's.
  bool adopt_orphans = false;
  int stack_signal = 0;  ///< sent to the child shortly before it is killed, for a last word about where it was; 0: none
};

/// What GuardedProcess::wait saw.
struct GuardEvent {
  int stream = 0;         ///< 1: standard output, 2: standard error, 0: no output
  std::string bytes;      ///< of that stream
  bool readable = false;  ///< the watched descriptor has data or was closed
  bool ended = false;     ///< the process is gone, and so is its output
};

/// A child process in the care of a thread, which samples the memory of its process tree, keeps its limits and reaps
/// it. The child is a fresh program, never a copy of the caller. It dies when this object does, and with it every
/// process it started. It dies when the calling process does; a child that has called die_with_parent() takes with it
/// what it started, another leaves that behind when the caller is killed.
///
/// One thread at a time may call wait(); the other members are thread-safe. The caller must call wait() until the end:
/// a child whose output is not read blocks when the pipe is full.
class GuardedProcess {
 public:
  /// Starts the program. Throws Error(kInvalidArgument) without a command and Error(kIo) when it cannot be started.
  explicit GuardedProcess(const GuardOptions& options);
  ~GuardedProcess();
  GuardedProcess(const GuardedProcess&) = delete;
  GuardedProcess& operator=(const GuardedProcess&) = delete;

  int pid() const;

  /// Waits for output, for the end, or for `watched` (a descriptor; -1: none) to be readable, at most `seconds` or
  /// until a signal handler ran. Output comes before the end.
  GuardEvent wait(double seconds, int watched = -1);

  /// For a child that serves call after call: starts the clock of one (0: no limit), its peak and its last lines.
  void start_call(double timeout_seconds);
  /// Stops the clock. Between calls the tree is sampled rarely. False when the guard has decided to kill the child by
  /// now: what it said came too late.
  bool end_call();

  /// SIGINT to the child, and to its process group when it has a session of its own.
  void interrupt();
  /// Any other signal, to the child alone.
  void send_signal(int signal);
  /// Kills the tree and waits until it is gone.
  void kill(GuardCause cause = GuardCause::kInterrupt);

  /// Memory and number of the processes of the tree now; 0 after the end.
  int64_t resident_bytes() const;
  int processes() const;

  GuardReport report() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Called in a child of this process's own making: when the process `parent` is gone, every process the caller started
/// is killed, and the caller itself. Works while the caller is stuck in native code.
void die_with_parent(int parent);

}  // namespace leadline::guard
