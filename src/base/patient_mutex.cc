// SPDX-License-Identifier: Apache-2.0
#include "base/patient_mutex.h"

#include <chrono>

#include "base/error.h"
#include "base/run_check.h"

namespace leadline {

void PatientMutex::lock() {
  const std::thread::id self = std::this_thread::get_id();
  require(holder_.load() != self, ErrorCode::kInvalidArgument, "an op or observer called {} that is running it", what_);
  const uint32_t forks = fork_count();
  if (!mutex_.try_lock()) {
    constexpr std::chrono::milliseconds kBetweenQuestions{10};
    do {
      ask_run_check();
      require(held_since_.load() == forks, ErrorCode::kRuntime,
              "{} was in use by another thread when this process was forked, and cannot be used here: make a new one",
              what_);
    } while (!mutex_.try_lock_for(kBetweenQuestions));
  }
  held_since_.store(forks);
  holder_.store(self);
}

void PatientMutex::unlock() {
  holder_.store({});
  mutex_.unlock();
}

}  // namespace leadline
