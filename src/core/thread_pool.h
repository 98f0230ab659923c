// SPDX-License-Identifier: Apache-2.0
// Fork-join parallelism for kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace leadline {

/// A fixed set of worker threads. One parallel_for at a time uses them: a call made while another is under
/// way (from a second thread, or from inside a body) runs on its calling thread alone, and so does every
/// call in a process forked from the one that made the pool. The pool has fewer
/// workers where the system refuses more, and at most 255; results are the same in all cases.
class ThreadPool {
 public:
  /// `threads` counts the calling thread too: 1 makes no workers. Throws Error(kInvalidArgument) below 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const noexcept { return threads_; }

  /// Splits [0, count) into at most size() contiguous parts of at least `grain` items and calls
  /// body(begin, end) for each, or for pieces of it, in parallel; returns when all are done. Between pieces limits are
  /// asked (core/cancel.h); bodies may ask too. What that or a body throws first comes out then. The split depends on
  /// count, grain and size() only, and results must not depend on the pieces.
  template <typename Body>
  void parallel_for(int64_t count, int64_t grain, const Body& body) {
    using Stored = std::remove_reference_t<Body>;
    run(count, grain, [](const void* f, int64_t b, int64_t e) { (*static_cast<const Stored*>(f))(b, e); }, &body);
  }

 private:
  using Call = void (*)(const void*, int64_t, int64_t);
  void run(int64_t count, int64_t grain, Call call, const void* body);

  struct State;
  int threads_;
  std::unique_ptr<State> state_;
};

/// Number of CPUs this process may use (affinity and cgroup quota), at least 1.
int usable_cpus();

}  // namespace leadline
