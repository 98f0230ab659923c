// SPDX-License-Identifier: Apache-2.0
#include "core/stored_function.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace leadline {
namespace {

TEST(StoredFunction, CallsWhatItWasMadeOf) {
  int sum = 0;
  const StoredFunction<int, int> add([&sum](int a, int b) { sum += a * b; });
  EXPECT_TRUE(static_cast<bool>(add));
  add(2, 3);
  add(4, 5);
  EXPECT_EQ(sum, 26);
}

TEST(StoredFunction, KeepsTheStateOfACallable) {
  int last = 0;
  const StoredFunction<> count([&last, n = 0]() mutable { last = ++n; });
  count();
  count();
  EXPECT_EQ(last, 2);
}

TEST(StoredFunction, DestroysTheCallableOnce) {
  const auto kept = std::make_shared<int>(7);
  {
    StoredFunction<> first([kept] {});
    StoredFunction<> second = std::move(first);
    EXPECT_FALSE(static_cast<bool>(first));  // NOLINT(bugprone-use-after-move): empty is what is promised
    StoredFunction<> third([] {});
    third = std::move(second);
    EXPECT_EQ(kept.use_count(), 2);
  }
  EXPECT_EQ(kept.use_count(), 1);
}

TEST(StoredFunction, IsEmptyWithoutACallable) { EXPECT_FALSE(static_cast<bool>(StoredFunction<int>())); }

}  // namespace
}  // namespace leadline
