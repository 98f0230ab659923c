// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

std::vector<uint8_t> run_bytes(const char* op, std::initializer_list<std::vector<uint8_t>> inputs) {
  OpTester t(op);
  for (const auto& values : inputs) {
    std::vector<std::byte> bytes;
    for (const uint8_t v : values) bytes.push_back(std::byte{v});
    t.raw_input(DType::kBool, {static_cast<int64_t>(values.size())}, bytes);
  }
  t.output(DType::kBool);
  t.run();
  return t.result<uint8_t>(0);
}

TEST(Logical, AnyByteButZeroIsTrueAndResultsAreZeroOrOne) {
  EXPECT_EQ(run_bytes("LOGICAL_AND", {{0, 1, 2, 4}, {1, 0, 1, 8}}), (std::vector<uint8_t>{0, 0, 1, 1}));
  EXPECT_EQ(run_bytes("LOGICAL_OR", {{0, 4, 0}, {0, 0, 8}}), (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_EQ(run_bytes("LOGICAL_NOT", {{0, 1, 2}}), (std::vector<uint8_t>{1, 0, 0}));
}

TEST(Logical, Broadcasts) { EXPECT_EQ(run_bytes("LOGICAL_AND", {{0, 1, 1}, {1}}), (std::vector<uint8_t>{0, 1, 1})); }

TEST(Logical, OnlyBool) {
  OpTester t("LOGICAL_AND");
  t.input<int8_t>({1}, {1}).input<int8_t>({1}, {1}).output(DType::kInt8);
  EXPECT_THROW(t.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
