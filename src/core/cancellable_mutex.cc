// SPDX-License-Identifier: Apache-2.0
#include "core/cancellable_mutex.h"

#include <chrono>

#include "core/cancel.h"
#include "core/error.h"

namespace leadline {
namespace {

bool lock_for_a_while(std::timed_mutex& mutex) {
  constexpr std::chrono::milliseconds kBetweenQuestions{10};
#if defined(__SANITIZE_THREAD__)
  // GCC's ThreadSanitizer does not see the call by which try_lock_for() takes a mutex.
  return mutex.try_lock_until(std::chrono::system_clock::now() + kBetweenQuestions);
#else
  return mutex.try_lock_for(kBetweenQuestions);
#endif
}

}  // namespace

void CancellableMutex::lock() {
  const std::thread::id self = std::this_thread::get_id();
  require(holder_.load() != self, ErrorCode::kInvalidArgument, "an op or observer called {} that is running it", what_);
  const uint32_t forks = fork_count();
  if (!mutex_.try_lock()) {
    do {
      check_cancelled();
      require(held_since_.load() == forks, ErrorCode::kRuntime,
              "{} was in use by another thread when this process was forked, and cannot be used here: make a new one",
              what_);
    } while (!lock_for_a_while(mutex_));
  }
  held_since_.store(forks);
  holder_.store(self);
}

void CancellableMutex::unlock() {
  holder_.store({});
  mutex_.unlock();
}

}  // namespace leadline
