// SPDX-License-Identifier: Apache-2.0
#include "guard/rescue.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace leadline::guard {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

/// A thread that counts as fast as it can.
class Counter {
 public:
  Counter() : thread_([this] { run(); }) {
    while (id_ == 0) std::this_thread::yield();
  }
  ~Counter() {
    ending_ = true;
    thread_.join();
  }
  pid_t id() const { return id_; }
  bool moves() const {
    const int64_t before = count_;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return count_ > before + 1;
  }

 private:
  void run() {
    id_ = gettid();
    while (!ending_) {
      ++count_;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  std::atomic<pid_t> id_ = 0;
  std::atomic<bool> ending_ = false;
  std::atomic<int64_t> count_ = 0;
  std::thread thread_;
};

MemorySample at(double seconds, int64_t available) {
  MemorySample sample;
  sample.seconds = seconds;
  sample.capacity = 1024 * kMiB;
  sample.available = available;
  return sample;
}

TEST(ThreadPause, StopsAndGoesOn) {
  ThreadPause pause;
  ASSERT_TRUE(pause.use_signal(SIGRTMAX - 2, nullptr));
  Counter counter;
  EXPECT_TRUE(counter.moves());
  pause.stop({counter.id()}, 60);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(counter.moves());
  pause.go_on();
  EXPECT_TRUE(counter.moves());
  pause.stop({counter.id()}, 0.2);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_TRUE(counter.moves()) << "by itself, when the time is over";
}

TEST(Rescue, SavesWhileWhatGrowsStandsStill) {
  int asked = 0;
  Rescue rescue([&] { ++asked; }, SIGRTMAX - 2, nullptr);
  Counter grower;
  const std::vector<ThreadFaults> growing = {{grower.id(), 1000}};
  rescue.look(at(0, 100 * kMiB), 40 * kMiB, false, 5e8, growing);
  rescue.look(at(0.1, 30 * kMiB), 40 * kMiB, true, 5e8, growing);
  EXPECT_EQ(asked, 0) << "the alarm was given this moment";
  rescue.look(at(0.2, 25 * kMiB), 40 * kMiB, true, 5e8, growing);
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(rescue.active());
  rescue.saving();
  rescue.look(at(0.21, 20 * kMiB), 40 * kMiB, true, 5e8, growing);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(grower.moves());
  rescue.saved();
  rescue.look(at(1.0, 20 * kMiB), 40 * kMiB, true, 5e8, growing);
  EXPECT_FALSE(grower.moves()) << "others may give memory back";
  rescue.look(at(4.0, 20 * kMiB), 40 * kMiB, true, 5e8, growing);
  EXPECT_TRUE(grower.moves());
  EXPECT_FALSE(rescue.active());
  rescue.look(at(4.1, 10 * kMiB), 40 * kMiB, true, 5e8, growing);
  EXPECT_EQ(asked, 1) << "once an episode";
  rescue.look(at(5, 500 * kMiB), 40 * kMiB, false, 0, growing);
  rescue.look(at(6, 30 * kMiB), 40 * kMiB, true, 5e8, growing);
  rescue.look(at(6.1, 20 * kMiB), 40 * kMiB, true, 5e8, growing);
  EXPECT_EQ(asked, 2);
}

TEST(Rescue, WhatWasStoppedBeforeTheSaveStandsStillDuringIt) {
  Rescue rescue([] {}, SIGRTMAX - 2, nullptr);
  Counter grower;
  const std::vector<ThreadFaults> growing = {{grower.id(), 1000}};
  rescue.look(at(0, 30 * kMiB), 40 * kMiB, true, 5e8, growing);
  rescue.look(at(0.1, 25 * kMiB), 40 * kMiB, true, 5e8, growing);
  rescue.look(at(0.11, 10 * kMiB), 40 * kMiB, true, 5e8, growing);  // a second, for Python's lock
  rescue.saving();
  rescue.look(at(0.12, 10 * kMiB), 40 * kMiB, true, 5e8, growing);
  std::this_thread::sleep_for(std::chrono::milliseconds(1300));
  EXPECT_FALSE(grower.moves());
}

TEST(Rescue, WaitsForWhoHeardTheAlarm) {
  int asked = 0;
  Rescue rescue([&] { ++asked; }, SIGRTMAX - 2, nullptr);
  rescue.look(at(0, 30 * kMiB), 40 * kMiB, true, 5e8, {});
  rescue.heard();
  rescue.look(at(0.1, 20 * kMiB), 40 * kMiB, true, 5e8, {});
  rescue.look(at(1.0, 20 * kMiB), 40 * kMiB, true, 5e8, {});
  EXPECT_EQ(asked, 0);
  rescue.look(at(3.0, 10 * kMiB), 40 * kMiB, true, 5e8, {});
  EXPECT_EQ(asked, 1) << "it heard, and grew on";
}

TEST(Rescue, DoesNotWaitUntilNothingIsLeft) {
  int asked = 0;
  Rescue rescue([&] { ++asked; }, SIGRTMAX - 2, nullptr);
  rescue.look(at(0, 30 * kMiB), 40 * kMiB, true, 5e8, {});
  rescue.heard();
  rescue.look(at(0.1, 25 * kMiB), 40 * kMiB, true, 5e8, {});
  EXPECT_EQ(asked, 0);
  rescue.look(at(0.12, 15 * kMiB), 40 * kMiB, true, 5e8, {});
  EXPECT_EQ(asked, 1) << "what it began goes on without it";
}

TEST(Rescue, GivesUpWhenPythonsLockIsNotToBeHad) {
  Rescue rescue([] {}, SIGRTMAX - 2, nullptr);
  Counter grower;
  const std::vector<ThreadFaults> growing = {{grower.id(), 1000}};
  rescue.look(at(0, 30 * kMiB), 40 * kMiB, true, 5e8, growing);
  rescue.look(at(0.1, 10 * kMiB), 40 * kMiB, true, 5e8, growing);
  rescue.look(at(0.2, 10 * kMiB), 40 * kMiB, true, 5e8, growing);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(grower.moves()) << "it holds still for a second";
  rescue.look(at(1.3, 10 * kMiB), 40 * kMiB, true, 5e8, growing);
  EXPECT_TRUE(grower.moves());
}

std::atomic<int> copies = 0;

TEST(Rescue, ACopySavesWhenWhoHoldsTheLockMayNotStop) {
  copies = 0;
  Rescue rescue([] {}, SIGRTMAX - 2, [] { return false; },
                [] {
                  ++copies;
                  return true;
                });
  Counter grower;
  const std::vector<ThreadFaults> growing = {{grower.id(), 1000}};
  rescue.look(at(0, 38 * kMiB), 40 * kMiB, true, 1e8, growing);
  rescue.look(at(0.1, 36 * kMiB), 40 * kMiB, true, 1e8, growing);
  rescue.look(at(0.11, 35 * kMiB), 40 * kMiB, true, 1e8, growing);
  EXPECT_EQ(copies, 0) << "whoever saves may still get the lock";
  rescue.look(at(0.14, 32 * kMiB), 40 * kMiB, true, 1e8, growing);
  rescue.look(at(0.15, 32 * kMiB), 40 * kMiB, true, 1e8, growing);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  rescue.look(at(0.2, 32 * kMiB), 40 * kMiB, true, 1e8, growing);
  EXPECT_EQ(copies, 1);
  EXPECT_FALSE(rescue.saving()) << "what the copy wrote must not be overwritten";
  rescue.look(at(4, 32 * kMiB), 40 * kMiB, true, 1e8, growing);
  EXPECT_FALSE(rescue.active());
  rescue.look(at(5, 500 * kMiB), 40 * kMiB, false, 0, growing);
  rescue.look(at(6, 38 * kMiB), 40 * kMiB, true, 1e8, growing);
  rescue.look(at(6.1, 36 * kMiB), 40 * kMiB, true, 1e8, growing);
  EXPECT_TRUE(rescue.saving()) << "the next time";
}

}  // namespace
}  // namespace leadline::guard
