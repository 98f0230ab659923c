// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise/broadcast.h"

#include <gtest/gtest.h>

#include <vector>

namespace leadline::kernels {
namespace {

/// Offsets of both inputs for every output element, by walking pieces of `piece` elements.
std::vector<std::array<int64_t, 2>> walk(const Shape& out, const Shape& a, const Shape& b, int64_t piece) {
  const auto plan = plan_broadcast<2>(out, {a, b});
  std::vector<std::array<int64_t, 2>> offsets(static_cast<size_t>(plan.elements));
  for (int64_t begin = 0; begin < plan.elements; begin += piece) {
    const int64_t end = std::min(begin + piece, plan.elements);
    for_each_row(plan, begin, end, [&](int64_t at, const std::array<int64_t, 2>& from, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        offsets[static_cast<size_t>(at + i)] = {from[0] + i * plan.step(0), from[1] + i * plan.step(1)};
      }
    });
  }
  return offsets;
}

/// The same from the definition of broadcasting.
int64_t expected_offset(const Shape& out, const Shape& from, int64_t element) {
  int64_t offset = 0;
  int64_t stride = 1;
  for (int i = out.rank() - 1, j = from.rank() - 1; i >= 0; --i, --j) {
    const int64_t index = element % out[i];
    element /= out[i];
    if (j < 0) continue;
    if (from[j] != 1) offset += index * stride;
    stride *= from[j];
  }
  return offset;
}

TEST(BroadcastPlan, WalksEveryElementWhateverTheSplit) {
  const struct {
    Shape out, a, b;
  } cases[] = {
      {{2, 3, 4}, {2, 3, 4}, {4}},
      {{2, 3, 4}, {3, 1}, {2, 1, 4}},
      {{5}, {5}, {}},
      {{}, {}, {1}},
      {{2, 3, 4, 5}, {1, 3, 1, 5}, {2, 1, 4, 1}},
      {{2, 2, 2, 2, 2, 2, 2, 2}, {2, 1, 2, 1, 2, 1, 2, 1}, {2, 2, 2, 2, 2}},
      {{1, 7, 1, 3}, {7, 1, 3}, {1, 1, 1, 1}},
  };
  for (const auto& c : cases) {
    for (const int64_t piece : {1, 2, 3, 5, 7, 1000}) {
      const auto got = walk(c.out, c.a, c.b, piece);
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i][0], expected_offset(c.out, c.a, static_cast<int64_t>(i))) << c.out.to_string() << " " << i;
        EXPECT_EQ(got[i][1], c.b.elements() == 1 ? 0 : expected_offset(c.out, c.b, static_cast<int64_t>(i)));
      }
    }
  }
}

TEST(BroadcastPlan, MergesDimensionsThatAllInputsWalkAlike) {
  const auto same = plan_broadcast<2>({2, 3, 4}, {Shape{2, 3, 4}, Shape{2, 3, 4}});
  EXPECT_EQ(same.rank, 1);
  EXPECT_EQ(same.row(), 24);
  const auto scalar = plan_broadcast<2>({2, 3, 4}, {Shape{2, 3, 4}, Shape{}});
  EXPECT_EQ(scalar.rank, 1);
  EXPECT_EQ(scalar.step(1), 0);
  const auto channels = plan_broadcast<2>({2, 3, 4}, {Shape{2, 3, 4}, Shape{1, 1, 4}});
  EXPECT_EQ(channels.rank, 2);
  EXPECT_EQ(channels.row(), 4);
}

TEST(BroadcastPlan, EmptyTensorsHaveNoRows) {
  const auto plan = plan_broadcast<2>({2, 0, 4}, {Shape{2, 0, 4}, Shape{4}});
  EXPECT_EQ(plan.elements, 0);
  for_each_row(plan, 0, plan.elements, [](int64_t, const std::array<int64_t, 2>&, int64_t) { FAIL(); });
}

}  // namespace
}  // namespace leadline::kernels
