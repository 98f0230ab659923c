// SPDX-License-Identifier: Apache-2.0
// Fork-join parallelism.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "core/work.h"

namespace leadline {

/// A fixed set of worker threads. One for_pieces() at a time uses them: a call made while another is under
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

  /// What a part should cost at least to be worth a thread: some microseconds.
  static constexpr double kPartCost = 10'000;

  /// for_pieces() of core/work.h on all threads: splits [0, count) into at most size() contiguous parts that are worth
  /// a thread, given what an item costs, and calls body(begin, end) for pieces of each; returns when all are done.
  /// Between pieces the limits of the calling thread are asked. What they or a body throw first comes out then. The
  /// split into parts depends on count, cost and size() only; results must not depend on the pieces.
  template <typename Body>
  void for_pieces(int64_t count, double cost, const Body& body) {
    using Stored = std::remove_reference_t<Body>;
    run(count, cost, [](const void* f, int64_t b, int64_t e) { (*static_cast<const Stored*>(f))(b, e); }, &body);
  }

 private:
  using Call = void (*)(const void*, int64_t, int64_t);
  void run(int64_t count, double cost, Call call, const void* body);

  struct State;
  int threads_;
  std::unique_ptr<State> state_;
};

/// Number of CPUs this process may use (affinity and cgroup quota), at least 1.
int usable_cpus();

}  // namespace leadline
