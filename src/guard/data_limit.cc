// SPDX-License-Identifier: Apache-2.0
#include "guard/data_limit.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>

namespace leadline::guard {
namespace {

// For children of fork, where no watch will ever put it back.
std::atomic<rlim_t> limit_of_children = RLIM_INFINITY;
std::atomic<bool> moved = false;

void restore_in_child() {
  undo_data_limit();
  moved = false;
}

}  // namespace

void undo_data_limit() noexcept {
  rlimit limit{};
  if (!moved.load() || getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = limit_of_children.load();
  setrlimit(RLIMIT_DATA, &limit);
}

void DataLimit::set(int64_t bytes) {
  static const int registered = pthread_atfork(nullptr, nullptr, &restore_in_child);
  (void)registered;
  rlimit now{};
  if (given_up_ || bytes < 0 || getrlimit(RLIMIT_DATA, &now) != 0) return;
  if (moved_ && now.rlim_cur != last_) {
    given_up_ = true;
    moved_ = false;
    moved = false;
    return;
  }
  if (!moved_) original_ = now;
  const rlim_t wanted = std::min({static_cast<rlim_t>(bytes), original_.rlim_cur, original_.rlim_max});
  if (moved_ && wanted == last_) return;
  rlimit next = original_;
  next.rlim_cur = wanted;
  limit_of_children = original_.rlim_cur;
  moved = true;
  if (setrlimit(RLIMIT_DATA, &next) != 0) return;
  moved_ = true;
  last_ = wanted;
}

void DataLimit::restore() {
  rlimit now{};
  if (!moved_ || getrlimit(RLIMIT_DATA, &now) != 0) return;
  if (now.rlim_cur == last_) setrlimit(RLIMIT_DATA, &original_);
  moved_ = false;
  moved = false;
}

}  // namespace leadline::guard
