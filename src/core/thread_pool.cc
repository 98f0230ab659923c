// SPDX-License-Identifier: Apache-2.0
// Fork-join pool. The split into parts is fixed; who runs a part is not: workers and the caller claim parts, so a
// worker that the system does not schedule delays nothing but a part it has already begun.
// Invariant: the fields of a job are written only while no part is unclaimed or unfinished, and read only by the
// holder of a claim; a worker that wakes late finds no claim, or a valid one of a later job.
#include "core/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "core/cancel.h"
#include "core/cgroup.h"
#include "core/error.h"
#include "core/forks.h"

namespace leadline {
namespace {

// How long to poll before sleeping: above the gap between two kernels of a run, below what others would miss. A part
// reaches a polling thread within half a microsecond; waking a sleeping one takes tens. An idle pool sleeps: it polls
// once after each job, at most this long by the clock, so a thread that lost its CPU meanwhile does not begin again.
constexpr std::chrono::microseconds kSpin{20};
// Kernels keep small tiles on the stack; the default of 8 MiB would only eat into RLIMIT_AS.
constexpr size_t kStackBytes = size_t{2} << 20;
// A caller who asks for a million threads gets the split, not the threads.
constexpr int kMostWorkers = 255;

inline void cpu_pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // yield is a no-op on most cores
#endif
}

/// Polls `done` for about `limit`; true as soon as it holds.
template <typename Done>
bool spin_until(std::chrono::microseconds limit, const Done& done) {
  if (done()) return true;
  if (limit.count() == 0) return false;
  const auto end = std::chrono::steady_clock::now() + limit;
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      cpu_pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

// Ends a part on a worker when another part threw. Not for anyone else's eyes.
struct Abandoned {};

struct Split {
  int64_t count;
  int parts;
  int64_t piece;  // items for one call of the body

  template <typename Call>
  void run_part(int part, Call call, const void* body) const {
    const int64_t size = count / parts;
    const int64_t larger = count % parts;  // the first parts have one item more
    const int64_t begin = part * size + std::min<int64_t>(part, larger);
    const int64_t items = size + (part < larger ? 1 : 0);
    for (int64_t from = 0; from < items; from += piece) {
      if (from > 0) check_cancelled();
      call(body, begin + from, begin + (items - from < piece ? items : from + piece));
    }
  }
};

/// Blocks, for as long as it lives, the signals meant for the process, so that threads made meanwhile do not take
/// them from the program's own threads. Faults of a thread itself stay deliverable to crash handlers.
class SignalShield {
 public:
  SignalShield() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF}) {
      sigdelset(&blocked, fault);
    }
    pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~SignalShield() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalShield(const SignalShield&) = delete;
  SignalShield& operator=(const SignalShield&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

struct ThreadPool::State {
  // One cache line carries a job to a worker. Claims hand out parts `unclaimed` down to 1; part 0 is the caller's.
  alignas(64) std::atomic<int32_t> unclaimed{0};
  std::atomic<uint32_t> wake{0};  // changes with every job: what sleeping workers wait on
  std::atomic<bool> stop{false};
  Split split{0, 1, 1};
  Call call = nullptr;
  const void* body = nullptr;

  alignas(64) std::atomic<int32_t> unfinished{0};  // parts that the caller still has to wait for
  std::atomic<bool> abandoned{false};              // a part threw: the others are not needed
  std::exception_ptr problem;                      // what it threw; written by who set the flag

  alignas(64) std::atomic<bool> busy{false};
  std::chrono::microseconds spin{0};
  uint32_t born = 0;
  std::vector<pthread_t> workers;  // plain handles: in a forked process they can be forgotten

  bool forked() const { return fork_count() != born; }

  /// The number of a part that is now the calling thread's to run, or 0.
  int claim() noexcept {
    int32_t part = unclaimed.load(std::memory_order_relaxed);
    while (part > 0 &&
           !unclaimed.compare_exchange_weak(part, part - 1, std::memory_order_acquire, std::memory_order_relaxed)) {
    }
    return part;
  }

  void start_workers(int wanted);
  void work();
  void run_part(const Split& job, int part, Call job_call, const void* job_body) noexcept;
  void dispatch(const Split& job, Call job_call, const void* job_body);
};

void ThreadPool::State::start_workers(int wanted) {
  workers.reserve(static_cast<size_t>(wanted));
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setstacksize(&attributes, kStackBytes);
  const SignalShield shield;
  const auto entry = [](void* state) -> void* {
    static_cast<State*>(state)->work();
    return nullptr;
  };
  for (int i = 1; i <= wanted; ++i) {
    pthread_t worker{};
    if (pthread_create(&worker, &attributes, entry, this) != 0) break;
    char name[16];
    std::snprintf(name, sizeof(name), "leadline-%u", static_cast<unsigned>(i) % 100000U);
    pthread_setname_np(worker, name);
    workers.push_back(worker);
  }
  pthread_attr_destroy(&attributes);
}

/// An exception must neither end a worker nor leave the caller's stack while others still use it.
void ThreadPool::State::run_part(const Split& job, int part, Call job_call, const void* job_body) noexcept {
  try {
    job.run_part(part, job_call, job_body);
  } catch (const Abandoned&) {
  } catch (...) {
    if (!abandoned.exchange(true, std::memory_order_relaxed)) problem = std::current_exception();
  }
}

void ThreadPool::State::work() {
  const auto called = [this] {
    return unclaimed.load(std::memory_order_relaxed) > 0 || stop.load(std::memory_order_relaxed);
  };
  const WorkLimit limit([this] {
    if (abandoned.load(std::memory_order_relaxed)) throw Abandoned{};
  });
  for (;;) {
    // Read before looking for work: a job published after the look changes `wake`, and the wait returns at once.
    const uint32_t seen = wake.load(std::memory_order_acquire);
    if (const int part = claim(); part > 0) {
      run_part(split, part, call, body);
      if (unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished.notify_one();
    } else if (stop.load(std::memory_order_acquire)) {
      return;
    } else if (!spin_until(spin, called)) {
      wake.wait(seen, std::memory_order_acquire);
    }
  }
}

void ThreadPool::State::dispatch(const Split& job, Call job_call, const void* job_body) {
  split = job;
  call = job_call;
  body = job_body;
  unfinished.store(job.parts - 1, std::memory_order_relaxed);
  unclaimed.store(job.parts - 1, std::memory_order_release);
  wake.fetch_add(1, std::memory_order_seq_cst);
  if (job.parts - 1 >= static_cast<int>(workers.size())) {
    wake.notify_all();
  } else {
    for (int i = 1; i < job.parts; ++i) wake.notify_one();
  }

  run_part(job, 0, job_call, job_body);
  for (int part = claim(); part > 0; part = claim()) {
    if (!abandoned.load(std::memory_order_relaxed)) run_part(job, part, job_call, job_body);
    unfinished.fetch_sub(1, std::memory_order_relaxed);
  }
  const auto done = [this] { return unfinished.load(std::memory_order_acquire) == 0; };
  if (spin_until(spin, done)) return;
  for (int32_t left = unfinished.load(std::memory_order_acquire); left != 0;
       left = unfinished.load(std::memory_order_acquire)) {
    unfinished.wait(left, std::memory_order_acquire);
  }
}

ThreadPool::ThreadPool(int threads) : threads_(threads) {
  require(threads >= 1, ErrorCode::kInvalidArgument, "a thread pool needs at least 1 thread, got {}", threads);
  if (threads == 1) return;
  state_ = std::make_unique<State>();
  state_->born = fork_count();
  // With more threads than CPUs, polling would keep a thread that has work from running.
  if (threads <= usable_cpus()) state_->spin = kSpin;
  state_->start_workers(std::min(threads - 1, kMostWorkers));
}

ThreadPool::~ThreadPool() {
  if (!state_ || state_->forked()) return;
  state_->stop.store(true, std::memory_order_release);
  state_->wake.fetch_add(1, std::memory_order_seq_cst);
  state_->wake.notify_all();
  for (const pthread_t worker : state_->workers) pthread_join(worker, nullptr);
}

void ThreadPool::run(int64_t count, double cost, Call call, const void* body) {
  if (count <= 0) return;
  const double affordable = static_cast<double>(count) * std::max(cost, 1e-3) / kPartCost;
  const int parts =
      static_cast<int>(std::clamp<double>(affordable, 1, static_cast<double>(std::min<int64_t>(count, threads_))));
  const Split split{count, parts, items_in_piece(count, cost)};
  if (parts == 1) {
    split.run_part(0, call, body);
    return;
  }
  if (state_->forked() || state_->workers.empty() || state_->busy.exchange(true, std::memory_order_acquire)) {
    for (int part = 0; part < parts; ++part) split.run_part(part, call, body);
    return;
  }
  state_->dispatch(split, call, body);
  const std::exception_ptr problem = std::exchange(state_->problem, nullptr);
  state_->abandoned.store(false, std::memory_order_relaxed);
  state_->busy.store(false, std::memory_order_release);
  if (problem) std::rethrow_exception(problem);
}

int usable_cpus() {
  int cpus = 0;
  // The kernel refuses masks smaller than its own; grow until it fits.
  for (size_t bits = CPU_SETSIZE; bits <= (size_t{1} << 20) && cpus == 0; bits *= 2) {
    const size_t bytes = CPU_ALLOC_SIZE(bits);
    cpu_set_t* const mask = CPU_ALLOC(bits);
    if (mask == nullptr) break;
    if (sched_getaffinity(0, bytes, mask) == 0) cpus = CPU_COUNT_S(bytes, mask);
    CPU_FREE(mask);
  }
  if (cpus == 0) cpus = static_cast<int>(std::thread::hardware_concurrency());
  // Part of a CPU's time is worth a thread: it adds throughput.
  if (const std::optional<double> quota = cgroup_cpu_quota({})) {
    cpus = static_cast<int>(std::min<double>(cpus, std::ceil(*quota)));
  }
  return std::max(cpus, 1);
}

}  // namespace leadline
