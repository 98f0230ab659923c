// SPDX-License-Identifier: Apache-2.0
#include "core/progress.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "leadline/error.h"

namespace leadline {
namespace {

TEST(ProgressCounter, TellsWhatIsDone) {
  std::vector<std::pair<int64_t, int64_t>> calls;
  const Progress progress = [&](int64_t done, int64_t total) {
    calls.emplace_back(done, total);
    return true;
  };
  ProgressCounter counter(progress, 10);
  for (const int64_t step : {0, 4, 6}) counter.add(step);
  EXPECT_EQ(calls, (std::vector<std::pair<int64_t, int64_t>>{{0, 10}, {4, 10}, {10, 10}}));
}

TEST(ProgressCounter, StopsWhenItIsToldTo) {
  const Progress progress = [](int64_t done, int64_t) { return done < 5; };
  ProgressCounter counter(progress, 10);
  counter.add(4);
  try {
    counter.add(4);
    FAIL() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
}

}  // namespace
}  // namespace leadline
