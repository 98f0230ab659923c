// SPDX-License-Identifier: Apache-2.0
#include "guard/thread_pause.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "guard/monotonic_clock.h"

namespace leadline::guard {
namespace {

std::atomic<uint32_t> turn = 0;  // odd: threads wait
std::atomic<int64_t> until_ns = 0;
std::atomic<bool (*)()> may_stop = nullptr;
std::atomic<bool (*)()> save_in_copy = nullptr;
std::atomic<ThreadPause::Copy> copy_state = ThreadPause::Copy::kNone;

void copy_if_wanted() {
  ThreadPause::Copy expected = ThreadPause::Copy::kWanted;
  if (!copy_state.compare_exchange_strong(expected, ThreadPause::Copy::kSaving)) return;
  copy_state = save_in_copy.load()() ? ThreadPause::Copy::kSaved : ThreadPause::Copy::kFailed;
}

/// Async-signal-safe.
extern "C" void leadline_on_pause(int) {
  const int saved = errno;
  const auto ask = may_stop.load(std::memory_order_relaxed);
  const bool may = ask == nullptr || ask();
  if (!may) copy_if_wanted();
  const uint32_t mine = may ? turn.load(std::memory_order_acquire) : 0;
  const timespec moment = {0, 50'000'000};
  while (mine % 2 == 1 && turn.load(std::memory_order_acquire) == mine && monotonic_ns() < until_ns.load()) {
    syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, mine, &moment, nullptr, 0);
  }
  errno = saved;
}

}  // namespace

bool ThreadPause::use_signal(int signal, bool (*ask)(), bool (*make_copy)()) {
  if (signal <= 0) return false;
  may_stop = ask;
  save_in_copy = make_copy;
  can_copy_ = ask != nullptr && make_copy != nullptr;
  struct sigaction action{};
  action.sa_handler = &leadline_on_pause;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // on the thread's own stack: a copy runs Python in the handler
  if (sigaction(signal, &action, nullptr) != 0) return false;
  signal_ = signal;
  return true;
}

void ThreadPause::stop(const std::vector<pid_t>& threads, double seconds) {
  if (signal_ == 0) return;
  if (!active_ || seconds > seconds_) {
    until_ns = monotonic_ns() + static_cast<int64_t>(seconds * 1e9);
    seconds_ = seconds;
  }
  if (!active_) {
    turn.fetch_or(1, std::memory_order_release);
    active_ = true;
  }
  for (const pid_t thread : threads) {
    syscall(SYS_tgkill, getpid(), thread, signal_);
  }
}

void ThreadPause::want_copy(const std::vector<pid_t>& threads) {
  if (signal_ == 0 || !can_copy_) return;
  Copy expected = Copy::kNone;
  copy_state.compare_exchange_strong(expected, Copy::kWanted);
  if (copy_state != Copy::kWanted) return;
  for (const pid_t thread : threads) syscall(SYS_tgkill, getpid(), thread, signal_);
}

ThreadPause::Copy ThreadPause::copy() { return copy_state; }

void ThreadPause::forget_copy() {
  // One that is being made is not interrupted; whoever makes it says how it ended.
  for (Copy ended : {Copy::kWanted, Copy::kSaved, Copy::kFailed}) {
    if (copy_state.compare_exchange_strong(ended, Copy::kNone)) return;
  }
}

void ThreadPause::go_on() {
  if (!active_) return;
  turn.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  active_ = false;
  seconds_ = 0.0;
}

}  // namespace leadline::guard
