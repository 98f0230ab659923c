// SPDX-License-Identifier: Apache-2.0
// A mutex for work that may take long.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "core/forks.h"

namespace leadline {

/// A waiting thread can be ended by its WorkLimit, and gets an Error instead of waiting for ever when the holder is the
/// same thread, or a thread of the process that this one was forked from.
class CancellableMutex {
 public:
  /// `what` is held: "the interpreter".
  explicit CancellableMutex(const char* what) : what_(what) {}
  void lock();
  void unlock();

 private:
  const char* what_;
  std::timed_mutex mutex_;
  std::atomic<std::thread::id> holder_;
  std::atomic<uint32_t> held_since_{0};  // the holder's fork_count()
};

}  // namespace leadline
