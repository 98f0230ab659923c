// SPDX-License-Identifier: Apache-2.0
#include "ops/weakness.h"

#include <gtest/gtest.h>

#include "ops/op_ids.h"

namespace leadline::ops {
namespace {

TEST(Weakness, IsThatOfOpsThatAreSteepOrSpreadFar) {
  for (const ir::OpId op : {op::kLog, op::kPow, op::kSqrt, op::kRsqrt, op::kExp, op::kDiv}) {
    EXPECT_FALSE(weakness_of(op).empty()) << op.name();
  }
  for (const ir::OpId op : {op::kConv2D, op::kAdd, op::kSoftmax}) EXPECT_TRUE(weakness_of(op).empty()) << op.name();
}

}  // namespace
}  // namespace leadline::ops
