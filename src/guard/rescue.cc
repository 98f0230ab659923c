// SPDX-License-Identifier: Apache-2.0
#include "guard/rescue.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace leadline::guard {
namespace {

/// Seconds that an alarm has to be heard: Python that runs hears it within a switch interval or two (5 ms each).
constexpr double kHearing = 0.008;
/// Whoever saves waits that long for Python's lock. A native call that holds it cannot be waited for.
constexpr double kForLock = 1.0;
/// A thread of Python's gives the lock away within 5 ms when it is asked. Who does not is in a native call.
constexpr double kForCopy = 0.03;
constexpr double kForSaving = 20.0;
constexpr double kForProgress = 3.0;  // for one variable
/// After that, for memory that others may give back.
constexpr double kForMemory = 3.0;
/// The save begins when memory lasts for less than this.
constexpr double kHorizon = 0.1;
constexpr double kLastMoment = 0.02;
constexpr int64_t kFaultShare = 10;  // threads with less than a tenth of the faults of the fastest are left alone

bool is_last_moment(const MemorySample& now, int64_t reserve, double bytes_per_second) {
  return now.available < std::max(reserve / 2, static_cast<int64_t>(bytes_per_second * kLastMoment));
}

}  // namespace

Rescue::Rescue(std::function<void()> save, int pause_signal, bool (*may_stop)(), bool (*save_in_copy)())
    : save_(std::move(save)) {
  if (save_) pause_.use_signal(pause_signal, may_stop, save_in_copy);
}

bool Rescue::is_needed(const MemorySample& now, int64_t reserve, double bytes_per_second) {
  if (now.seconds - alarmed_at_ < kHearing || bytes_per_second <= 0) return false;
  // Who heard may have raised, and yet what it began goes on: jax computes in threads of its own.
  if (now.seconds - heard_at_ < kForHeard) return is_last_moment(now, reserve, bytes_per_second);
  return now.available < std::max(reserve, static_cast<int64_t>(bytes_per_second * kHorizon));
}

void Rescue::pause(const std::vector<ThreadFaults>& growing, double seconds) {
  std::vector<pid_t> threads;
  for (const ThreadFaults& thread : growing) {
    if (thread.faults >= growing.front().faults / kFaultShare) threads.push_back(thread.thread);
  }
  pause_.stop(threads, seconds);
}

void Rescue::wait_for_lock(const MemorySample& now, int64_t reserve, double bytes_per_second,
                           const std::vector<ThreadFaults>& growing) {
  const bool last_moment = is_last_moment(now, reserve, bytes_per_second);
  if (last_moment) pause(growing, kForLock);
  switch (ThreadPause::copy()) {
    case ThreadPause::Copy::kSaving:  // whoever holds the lock stands still meanwhile
      asked_at_ = now.seconds;
      return;
    case ThreadPause::Copy::kSaved:
      saved_at_ = now.seconds;
      state_ = State::kSaved;
      return;
    case ThreadPause::Copy::kNone:
    case ThreadPause::Copy::kWanted: {
      if (!last_moment && now.seconds - asked_at_ < kForCopy) return;
      std::vector<pid_t> threads = {getpid()};  // the main thread is the likeliest to hold it
      for (const ThreadFaults& thread : growing) {
        if (thread.thread != getpid()) threads.push_back(thread.thread);
      }
      pause_.want_copy(threads);
      break;
    }
    case ThreadPause::Copy::kFailed:
      break;
  }
  if (now.seconds - asked_at_ <= kForLock) return;
  pause_.go_on();
  state_ = State::kOver;
}

void Rescue::look(const MemorySample& now, int64_t reserve, bool alarmed, double bytes_per_second,
                  const std::vector<ThreadFaults>& growing) {
  if (!save_) return;
  if (heard_.exchange(false)) heard_at_ = now.seconds;
  if (!alarmed) {
    alarmed_at_ = -1.0;
  } else if (alarmed_at_ < 0) {
    alarmed_at_ = now.seconds;
  }
  switch (state_.load()) {
    case State::kNone:
      if (!alarmed || !is_needed(now, reserve, bytes_per_second)) return;
      state_ = State::kAsked;
      ThreadPause::forget_copy();
      asked_at_ = now.seconds;
      save_();
      return;
    case State::kAsked:
      wait_for_lock(now, reserve, bytes_per_second, growing);
      return;
    case State::kSaving:
      saved_at_ = now.seconds;
      if (progress_.exchange(false)) progress_at_ = now.seconds;
      if (now.seconds - progress_at_ < kForProgress) {
        pause(growing, kForSaving);
      } else {
        pause_.go_on();  // it waits for somebody who was stopped
      }
      return;
    case State::kSaved:
      if (now.available < 2 * reserve && now.seconds - saved_at_ < kForMemory && pause_.active()) return;
      pause_.go_on();
      state_ = State::kOver;
      return;
    case State::kOver:
      pause_.go_on();
      if (!alarmed) state_ = State::kNone;
      return;
  }
}

}  // namespace leadline::guard
