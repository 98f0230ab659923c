// SPDX-License-Identifier: Apache-2.0
#include "ops/space_depth.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

using Ints = std::vector<int32_t>;

OpTester run(const char* op, int32_t block, const Shape& shape, const Ints& data) {
  BlockSizeAttributes a;
  a.block_size = block;
  OpTester t(op);
  t.attributes(a).input<int32_t>(shape, data).output(DType::kInt32);
  t.run();
  return t;
}

TEST(SpaceToDepth, BlocksBecomeChannels) {
  const OpTester t = run("SPACE_TO_DEPTH", 2, {1, 2, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(t.shape(0), (Shape{1, 1, 2, 4}));
  EXPECT_EQ(t.result<int32_t>(0), (Ints{1, 2, 5, 6, 3, 4, 7, 8}));
}

TEST(DepthToSpace, IsTheWayBack) {
  const OpTester t = run("DEPTH_TO_SPACE", 2, {1, 1, 2, 4}, {1, 2, 5, 6, 3, 4, 7, 8});
  EXPECT_EQ(t.shape(0), (Shape{1, 2, 4, 1}));
  EXPECT_EQ(t.result<int32_t>(0), (Ints{1, 2, 3, 4, 5, 6, 7, 8}));
  const OpTester deep = run("DEPTH_TO_SPACE", 2, {1, 1, 1, 8}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(deep.shape(0), (Shape{1, 2, 2, 2}));
  EXPECT_EQ(deep.result<int32_t>(0), (Ints{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(SpaceDepth, RefusesWhatHasNoWholeBlocks) {
  EXPECT_THROW(run("SPACE_TO_DEPTH", 2, {1, 1, 2, 1}, {1, 2}), Error);
  EXPECT_THROW(run("DEPTH_TO_SPACE", 2, {1, 1, 1, 2}, {1, 2}), Error);
  EXPECT_THROW(run("SPACE_TO_DEPTH", 0, {1, 1, 2, 1}, {1, 2}), Error);
  EXPECT_THROW(run("DEPTH_TO_SPACE", INT32_MAX, {1, 1, 1, 2}, {1, 2}), Error);
  EXPECT_THROW(run("SPACE_TO_DEPTH", 1, {1, 2}, {1, 2}), Error);
}

}  // namespace
}  // namespace leadline::ops
