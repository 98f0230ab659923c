// SPDX-License-Identifier: Apache-2.0
#include "import/saved_model/wire.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "import/saved_model/files_testing.h"
#include "import/saved_model/protos.h"

namespace leadline::saved_model {
namespace {

using testing::Proto;
using testing::wire_file;

std::string error_of(const std::string& bytes) {
  const auto file = wire_file(bytes);
  try {
    for (WireReader m(*file, "Test"); m.next();) {
    }
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Wire, ReadsEveryKindOfField) {
  const auto file =
      wire_file(Proto().number(1, ~0ULL).text(2, "abc").fixed32(3, 7).add(4, Proto().number(1, 300)).bytes);
  WireReader m(*file, "Test");
  ASSERT_TRUE(m.next());
  EXPECT_EQ(m.int64(), -1);
  EXPECT_EQ(m.int32(), -1);
  ASSERT_TRUE(m.next());
  EXPECT_EQ(m.text(), "abc");
  ASSERT_TRUE(m.next());
  EXPECT_EQ(m.fixed32(), 7U);
  ASSERT_TRUE(m.next());
  WireReader inner = m.message("Inner");
  ASSERT_TRUE(inner.next());
  EXPECT_EQ(inner.varint(), 300U);
  EXPECT_FALSE(inner.next());
  EXPECT_FALSE(m.next());
}

TEST(Wire, PackedAndSingleNumbersReadAlike) {
  const auto file = wire_file(Proto().number(1, 5).text(1, testing::varint(6) + testing::varint(700)).bytes);
  std::vector<uint64_t> values;
  for (WireReader m(*file, "Test"); m.next();) m.varints([&](uint64_t v) { values.push_back(v); });
  EXPECT_EQ(values, (std::vector<uint64_t>{5, 6, 700}));
}

TEST(Wire, DamageNamesFileAndPlace) {
  EXPECT_EQ(error_of("\x08"), "test.pb, byte 0: Test, field 1: a number is cut off");
  EXPECT_EQ(error_of(std::string("\x0A\x05z", 3)), "test.pb, byte 0: Test, field 1: 5 bytes are announced, 1 are left");
  EXPECT_NE(error_of(std::string("\x08\x01\x0B", 3)).find("byte 2"), std::string::npos);  // a group
  EXPECT_NE(error_of(std::string(11, '\xFF')).find("more than 10 bytes"), std::string::npos);
  EXPECT_NE(error_of(std::string("\x00\x01", 2)).find("field number"), std::string::npos);
}

TEST(Wire, AskingForAnotherTypeFails) {
  const auto file = wire_file(Proto().number(1, 5).bytes);
  WireReader m(*file, "Test");
  ASSERT_TRUE(m.next());
  EXPECT_THROW(m.text(), Error);
  EXPECT_THROW(m.fixed32(), Error);
  EXPECT_THROW(m.fixed_values(4), Error);
}

TEST(Wire, NestingIsLimited) {
  // An attribute list of attribute functions of attributes ...: tensors in tensors do not nest, messages do.
  Proto value;
  for (int i = 0; i < 200; ++i) value = Proto().add(1, value);
  const auto file = wire_file(value.bytes);
  const auto dive = [&] {
    WireReader m(*file, "Test");
    while (m.next()) m = m.message("Inner");
  };
  EXPECT_THROW(dive(), Error);
}

TEST(Wire, StructuresAreChargedToTheBudget) {
  Proto list;
  for (int i = 0; i < 100000; ++i) list.text(2, "");
  const auto budget = Budget::with_limit(3 << 20);
  const auto small = wire_file(Proto().text(2, "").bytes, budget);
  small->charge(1);
  EXPECT_GT(budget->used(), 0);
  {
    const auto file = wire_file(Proto().add(1, Proto().add(1, list)).bytes, Budget::with_limit(100000));
    WireReader m(*file, "Test");
    ASSERT_TRUE(m.next());
    EXPECT_THROW(read_attr_value(m.message("AttrValue")), BudgetError);
  }
}

}  // namespace
}  // namespace leadline::saved_model
