// SPDX-License-Identifier: Apache-2.0
// A native thread that watches memory and speaks before the OOM killer does, and a flight recorder: a small file that
// survives the process, from which postmortem.h finds out how it died.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "leadline/guard/watch_report.h"

namespace leadline::guard {

struct WatchOptions {
  /// Alarm when as much of what the container or machine can give is used; 0: never.
  double fraction = 0.92;
  /// Alarm when this process has as many resident bytes; 0: no such limit.
  int64_t resident_limit = 0;
  /// Allocators that ask (allocation_gate.h) are refused what would not fit. Nobody else is.
  bool refuse_large = true;
  /// While a cell runs, the system refuses everybody a single allocation that is larger than all that is left
  /// (RLIMIT_DATA), and after an alarm one that would take half of it. Native libraries may crash then.
  bool refuse_native = false;
  /// Cells are begun and ended by the caller; else the whole time counts as one.
  bool cells_only = false;
  /// Called on the thread of the watch when memory comes near a limit. False: could not be taken, try again soon.
  /// Code that passes it on to another thread calls note_raised() when it arrives there, or take_back_alarm().
  std::function<bool(const WatchAlarm&)> on_alarm = {};
  /// Called on the thread of the watch when memory runs out and nobody heard the alarm: wakes a thread that saves what
  /// it can, and that calls saving() and saved(). Between the two, threads that grow are stopped with `pause_signal`,
  /// which nobody else may use, for 20 seconds at most.
  std::function<void()> on_emergency = {};
  int pause_signal = 0;
  /// Asked in a thread that is about to be stopped, in a signal's handler; null: any may be.
  bool (*may_stop)() = nullptr;
  /// Called there when a thread may not be stopped and nobody could save meanwhile: makes a copy of the process that
  /// saves, waits for it, and says whether it did. Null: nothing is saved then.
  bool (*save_in_copy)() = nullptr;

  bool recorder = true;         ///< keep a flight recorder
  bool signals = true;          ///< record SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL and requests to end
  std::string folder = {};      ///< of the recorder's file; empty: flights_folder()
  int python_stack_signal = 0;  ///< raised in the crash handler; its handler writes to recorder_descriptor(); 0: none
  /// Kept in the recorder for the post-mortem: "session", "python", versions of libraries, ...
  std::vector<std::pair<std::string, std::string>> facts = {};
};

/// One per process at a time. Thread-safe. In a forked child it does nothing.
class Watch {
 public:
  /// Throws Error(kInvalidArgument) for impossible limits or when there is another watch. A recorder that cannot be
  /// made is done without.
  explicit Watch(WatchOptions options);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// Ends the thread, takes back signal handlers and limits, and notes that the process went on. Idempotent.
  void stop();
  /// The same when the process is about to end by itself; `last_words` is what it ends with, if anything.
  void stop_at_exit(const std::string& last_words);

  void begin_cell(int number, const std::string& first_line);
  /// The cell that ran; empty when none did.
  CellReport end_cell();
  /// Whether a cell runs (or everything counts as one).
  bool busy() const;
  /// The alarm has reached the code that runs; if it grows on, the next one follows.
  void note_raised();
  /// The alarm has reached nobody who could stop: it comes again.
  void take_back_alarm();
  /// The alarm has reached somebody who is about to raise it.
  void note_heard();
  /// Whoever saves is about to, or gets on with it. False: save_in_copy has, so that nothing is left to do.
  bool saving();
  /// `path` is what was written; empty: nothing.
  void saved(const std::string& path);
  void set_facts(const std::vector<std::pair<std::string, std::string>>& facts);

  MemorySample sample() const;                ///< taken now
  std::vector<MemorySample> samples() const;  ///< of the last minutes
  std::vector<CellReport> cells() const;      ///< the last 1000
  int64_t alarms() const;
  double cpu_seconds() const;  ///< of the thread

  /// The recorder's file; empty without one.
  std::string recorder_path() const;
  int recorder_descriptor() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace leadline::guard
