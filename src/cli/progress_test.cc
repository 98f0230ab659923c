// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <gtest/gtest.h>

#include <csignal>

namespace leadline {
namespace {

TEST(ProgressBar, LineFitsTheTerminal) {
  EXPECT_EQ(ProgressBar::line("Converting", 1, 2, 80, 63), "Converting [###############               ]  50 %  1:03");
  EXPECT_EQ(ProgressBar::line("Converting", 0, 0, 80, 0), "Converting [##############################] 100 %  0:00");
  EXPECT_EQ(ProgressBar::line("Converting", 1, 2, 12, 0), "Converting [");
}

// A program that was started in the background of a script ignores SIGINT, and so would these tests.
class StopOnSignalTest : public testing::Test {
 protected:
  StopOnSignalTest() : before_(std::signal(SIGINT, SIG_DFL)) {}
  ~StopOnSignalTest() override { std::signal(SIGINT, before_); }

 private:
  void (*before_)(int);
};

TEST_F(StopOnSignalTest, NoticesTheFirstSignal) {
  const StopOnSignal stop;
  EXPECT_FALSE(StopOnSignal::stopped());
  std::raise(SIGINT);
  EXPECT_TRUE(StopOnSignal::stopped());
}

TEST_F(StopOnSignalTest, LeavesAnIgnoredSignalIgnored) {
  std::signal(SIGINT, SIG_IGN);
  const StopOnSignal stop;
  std::raise(SIGINT);
  EXPECT_FALSE(StopOnSignal::stopped());
}

}  // namespace
}  // namespace leadline
