// SPDX-License-Identifier: Apache-2.0
#include "core/cancel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/cancellable_mutex.h"
#include "core/error.h"
#include "core/thread_pool.h"

namespace leadline {
namespace {

struct Enough {};

ErrorCode code_of(const std::function<void()>& body, std::string* message = nullptr) {
  try {
    body();
  } catch (const Error& error) {
    if (message != nullptr) *message = error.what();
    return error.code();
  }
  return ErrorCode::kInternal;
}

TEST(WorkLimit, NobodyIsAskedWithoutOne) { EXPECT_NO_THROW(check_cancelled()); }

TEST(WorkLimit, AllLimitsOfTheThreadAreAsked) {
  int outer = 0;
  int inner = 0;
  const WorkLimit a([&] { ++outer; });
  {
    const WorkLimit b([&] { ++inner; });
    check_cancelled();
  }
  check_cancelled();
  EXPECT_EQ(outer, 2);
  EXPECT_EQ(inner, 1);
  std::thread([] { check_cancelled(); }).join();
  EXPECT_EQ(outer, 2) << "other threads have limits of their own";
}

TEST(WorkLimit, TimeEndsWorkAndSaysWhere) {
  const WorkLimit limit({}, 0.0);
  std::string message;
  EXPECT_EQ(code_of([] { check_cancelled(); }, &message), ErrorCode::kTimeout);
  EXPECT_EQ(message, "the time limit of 0 s was reached");
  const int node = 3;
  const WorkPlace place(
      [](const void* what, int index) { return "node " + std::to_string(*static_cast<const int*>(what) + index); },
      &node, 4);
  EXPECT_EQ(code_of([] { check_cancelled(); }, &message), ErrorCode::kTimeout);
  EXPECT_EQ(message, "node 7: the time limit of 0 s was reached");
}

TEST(WorkLimit, TakesAnyNumberOfSecondsFromZeroOn) {
  for (const double seconds : {1e-9, 1e18, kNoTimeout}) {
    const WorkLimit limit({}, seconds);
    if (seconds > 1) {
      EXPECT_NO_THROW(check_cancelled());
    }
  }
  for (const double seconds : {-1.0, std::nan("")}) {
    EXPECT_EQ(code_of([&] { const WorkLimit limit({}, seconds); }), ErrorCode::kInvalidArgument);
  }
}

TEST(PacedCheck, AsksOncePerPieceOfWork) {
  int asked = 0;
  const WorkLimit limit([&] { ++asked; });
  PacedCheck check;
  for (int i = 0; i < 100; ++i) check.count(PacedCheck::kEvery / 10);
  EXPECT_GE(asked, 9);
  EXPECT_LE(asked, 10);
}

TEST(ParallelLoop, IsAskedInPiecesAndEndsWhenSomeoneThrows) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    std::vector<std::atomic<int>> seen(100'000);
    const auto visit = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
    };
    int asked = 0;
    {
      const WorkLimit limit([&] { ++asked; });
      pool.for_pieces(100'000, 100, visit);
    }
    EXPECT_GE(asked, static_cast<int>(100'000 * 100 / threads / kPieceCost) - 1) << threads;
    for (const auto& count : seen) ASSERT_EQ(count, 1);

    const WorkLimit limit([&] { throw Enough{}; });
    EXPECT_THROW(pool.for_pieces(100'000, 100, visit), Enough);
    EXPECT_THROW(pool.for_pieces(1000, kWholePiece, visit), Enough);
  }
}

TEST(ParallelLoop, WorkersThatAskEndWithTheCaller) {
  ThreadPool pool(4);
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> stop{false};
    std::atomic<int> running{0};
    const WorkLimit limit([&] {
      if (stop) throw Enough{};
    });
    const auto for_ever = [&](int64_t, int64_t) {
      ++running;
      for (;;) {
        if (running == 4 || round % 2 == 0) stop = true;
        check_cancelled();
      }
    };
    EXPECT_THROW(pool.for_pieces(4, kWholePiece, for_ever), Enough);
  }
  std::atomic<int> sum{0};
  pool.for_pieces(1000, kWholePiece, [&](int64_t begin, int64_t end) { sum += static_cast<int>(end - begin); });
  EXPECT_EQ(sum, 1000) << "the pool is usable afterwards";
}

TEST(CancellableMutex, RefusesTheThreadThatHoldsIt) {
  CancellableMutex mutex("the thing");
  const std::lock_guard lock(mutex);
  EXPECT_EQ(code_of([&] { mutex.lock(); }), ErrorCode::kInvalidArgument);
}

TEST(CancellableMutex, WaitingCanBeEnded) {
  CancellableMutex mutex("the thing");
  mutex.lock();
  std::thread([&] {
    const WorkLimit limit({}, 0.02);
    EXPECT_EQ(code_of([&] { mutex.lock(); }), ErrorCode::kTimeout);
  }).join();
  mutex.unlock();
  std::thread([&] {
    mutex.lock();
    mutex.unlock();
  }).join();
}

}  // namespace
}  // namespace leadline
