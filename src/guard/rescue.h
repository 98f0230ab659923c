// SPDX-License-Identifier: Apache-2.0
// The last resort: memory runs out, and what takes it does not listen, for it is in native code. Then the threads that
// grow are stopped while another one saves what it can, or, where that one waits in vain for a lock that a growing
// thread holds, while a copy of the process does.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "guard/thread_faults.h"
#include "guard/thread_pause.h"
#include "leadline/guard/watch_report.h"

namespace leadline::guard {

class Rescue {
 public:
  /// `save` wakes whoever saves, and returns at once. Empty: there is no rescue. `pause_signal` is nobody else's. The
  /// rest is for ThreadPause.
  Rescue(std::function<void()> save, int pause_signal, bool (*may_stop)(), bool (*save_in_copy)() = nullptr);

  /// The alarm has reached somebody who will raise it: there is no need to save yet.
  void heard() { heard_ = true; }
  /// Told by the thread that saves: it can, and got on with it; it has.
  /// False: a copy of the process has saved already, and what it wrote must stay.
  bool saving() {
    progress_ = true;
    if (ThreadPause::copy() == ThreadPause::Copy::kSaved) return false;
    state_ = State::kSaving;
    return true;
  }
  void saved() { state_ = State::kSaved; }

  /// Of the thread of the watch, after each sample. `alarmed`: somebody was told to stop, and memory has not fallen.
  void look(const MemorySample& now, int64_t reserve, bool alarmed, double bytes_per_second,
            const std::vector<ThreadFaults>& growing);
  bool active() const { return state_ != State::kNone && state_ != State::kOver; }
  void stop() { pause_.go_on(); }

 private:
  /// Seconds that somebody who heard an alarm has to stop.
  static constexpr double kForHeard = 2.0;
  enum class State { kNone, kAsked, kSaving, kSaved, kOver };

  bool is_needed(const MemorySample& now, int64_t reserve, double bytes_per_second);
  void pause(const std::vector<ThreadFaults>& growing, double seconds);
  void wait_for_lock(const MemorySample& now, int64_t reserve, double bytes_per_second,
                     const std::vector<ThreadFaults>& growing);

  const std::function<void()> save_;
  ThreadPause pause_;
  std::atomic<State> state_ = State::kNone;
  std::atomic<bool> heard_ = false;
  std::atomic<bool> progress_ = false;
  double heard_at_ = -kForHeard;
  double progress_at_ = 0.0;
  double alarmed_at_ = -1.0;
  double asked_at_ = 0.0;
  double saved_at_ = -1.0;
};

}  // namespace leadline::guard
