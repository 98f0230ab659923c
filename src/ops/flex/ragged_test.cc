// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/flex/node_def.h"
#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

/// Rows of the values 1, 2, 3, 4 with zeros behind them. The partitions are added by the caller.
OpTester ragged(const std::vector<std::string>& kinds) {
  NodeDefAttributes attributes;
  attributes.op = "RaggedTensorToTensor";
  NodeDefAttributes::Entry types;
  types.name = "row_partition_types";
  types.kind = NodeDefAttributes::Entry::Kind::kTexts;
  types.texts = kinds;
  attributes.entries.push_back(std::move(types));
  OpTester t("FlexRaggedTensorToTensor");
  t.attributes(attributes).input<int64_t>({}, {-1}).input<float>({4}, {1, 2, 3, 4}).input<float>({}, {0});
  return t;
}

std::string refusal(OpTester& t) {
  try {
    t.output(DType::kFloat32).run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Ragged, RowsByTheirEnds) {
  OpTester t = ragged({"ROW_SPLITS"});
  t.input<int64_t>({4}, {0, 3, 3, 4}).output(DType::kFloat32).run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{1, 2, 3, 0, 0, 0, 4, 0, 0}));
}

TEST(Ragged, RowsOfValues) {
  OpTester t = ragged({"FIRST_DIM_SIZE", "VALUE_ROWIDS"});
  t.input<int64_t>({}, {3}).input<int64_t>({4}, {0, 2, 2, 2}).output(DType::kFloat32).run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{1, 0, 0, 0, 0, 0, 2, 3, 4}));
}

TEST(Ragged, RowsBeforeTheFirstAreRefused) {
  OpTester t = ragged({"ROW_SPLITS", "ROW_SPLITS"});
  t.input<int64_t>({2}, {-(int64_t{1} << 40), 5}).input<int64_t>({3}, {0, 2, 4});
  EXPECT_NE(refusal(t).find("a row partition has"), std::string::npos);
}

TEST(Ragged, MoreRowsThanMemoryAreRefusedAtOnce) {
  OpTester t = ragged({"FIRST_DIM_SIZE", "VALUE_ROWIDS"});
  t.input<int64_t>({}, {int64_t{1} << 60}).input<int64_t>({4}, {0, 1, 1, 2});
  EXPECT_NE(refusal(t), "");
}

TEST(FlexRow, ManyInputsAreAllRequired) {
  const OpDef* const row = registry().find(ir::OpId::custom("FlexAddN"));
  ASSERT_NE(row, nullptr);
  EXPECT_GT(row->required_inputs, 1000) << "an input that is absent would be read";
}

}  // namespace
}  // namespace leadline::ops
