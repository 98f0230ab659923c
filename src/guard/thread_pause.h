// SPDX-License-Identifier: Apache-2.0
// Stops single threads of this process for a while, wherever they are: a signal whose handler waits. A thread that may
// not be stopped, because whoever saves needs what it holds, can make a copy of the process instead, which saves.
#pragma once

#include <sys/types.h>

#include <vector>

namespace leadline::guard {

/// One per process, used by one thread. Threads go on by themselves when the time is over: whatever lock they hold,
/// nobody waits for it for ever.
class ThreadPause {
 public:
  ~ThreadPause() { go_on(); }

  /// The signal is nobody else's. False: its handler could not be installed, and stop() does nothing.
  /// `may_stop` is asked in the thread that is to stop, in the signal's handler; null: any thread may. One that may not
  /// calls `save_in_copy` there when that is wanted, which says whether something was saved; null: it just goes on.
  bool use_signal(int signal, bool (*may_stop)(), bool (*save_in_copy)() = nullptr);
  /// Stops these threads too, until go_on(), or for `seconds` at most; a longer time than before counts from now.
  void stop(const std::vector<pid_t>& threads, double seconds);
  void go_on();

  enum class Copy { kNone, kWanted, kSaving, kSaved, kFailed };
  /// Sends the signal: the first of these threads that may not stop makes the copy.
  void want_copy(const std::vector<pid_t>& threads);
  static Copy copy();
  static void forget_copy();
  bool active() const { return active_; }

 private:
  int signal_ = 0;
  bool can_copy_ = false;
  bool active_ = false;
  double seconds_ = 0.0;
};

}  // namespace leadline::guard
