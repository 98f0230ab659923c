// SPDX-License-Identifier: Apache-2.0
// Tables and random streams, which outlive a run, through the public API. Every run ends with planned == counted.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ops/string_testing.h"
#include "tests/cpp/accounting.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::AttributeValues;
using testing::expect_planned_equals_counted;
using testing::get;
using testing::run;
using testing::set;
using testing::Sketch;
using testing::thrown_by;

constexpr DType kI64 = DType::kInt64;
using Texts = std::vector<std::string>;

int strings(Sketch& s, const std::string& name, const Texts& texts) {
  return s.constant_bytes(name, DType::kString, {static_cast<int64_t>(texts.size())}, ops::string_buffer(texts));
}

int table(Sketch& s) {
  const AttributeValues attributes = {{"table_id", int64_t{4}},
                                      {"key_dtype", static_cast<int64_t>(DType::kInt64)},
                                      {"value_dtype", static_cast<int64_t>(DType::kString)}};
  return s.compute("HASHTABLE", {}, "table", DType::kResource, {1}, attributes);
}

/// Texts by number and how many there are; CALL_ONCE fills the table, unless it is left empty.
Sketch dictionary(bool constant_keys, bool filled) {
  Sketch s;
  const int x = s.input("x", kI64, {2});
  if (filled) s.node("CALL_ONCE", {}, {}, {{"init_subgraph_index", int64_t{1}}});
  const int handle = table(s);
  const int keys = constant_keys ? s.constant<int64_t>("keys", kI64, {2}, {3, 1}) : x;
  const int found =
      s.compute("HASHTABLE_FIND", {handle, keys, strings(s, "default", {"none"})}, "found", DType::kString, {2});
  s.outputs({found, s.compute("HASHTABLE_SIZE", {handle}, "size", kI64, {1})});
  s.next_subgraph("init");
  const int inner = table(s);
  const int numbers = s.constant<int64_t>("numbers", kI64, {3}, {1, 2, 1});
  s.node("HASHTABLE_IMPORT", {inner, numbers, strings(s, "texts", {"one", "two", "again"})}, {});
  return s;
}

Texts found(Interpreter& interpreter) {
  const auto bytes = get<std::byte>(interpreter, interpreter.outputs()[0]);
  const StringTensorReader reader(bytes);
  Texts texts;
  for (int64_t i = 0; i < reader.size(); ++i) texts.emplace_back(reader[i]);
  return texts;
}

TEST(Tables, AreFilledOnceAndKept) {
  Interpreter interpreter(dictionary(false, true).load());
  set<int64_t>(interpreter, interpreter.inputs()[0], {2, 9});
  interpreter.invoke();
  EXPECT_EQ(found(interpreter), (Texts{"two", "none"}));
  EXPECT_EQ(get<int64_t>(interpreter, interpreter.outputs()[1]), (std::vector<int64_t>{2}));
  expect_planned_equals_counted(interpreter);
  set<int64_t>(interpreter, interpreter.inputs()[0], {1, 1});
  interpreter.invoke();
  EXPECT_EQ(found(interpreter), (Texts{"one", "one"}));
  expect_planned_equals_counted(interpreter);
  interpreter.reset_variables();
  interpreter.invoke();
  EXPECT_EQ(found(interpreter), (Texts{"one", "one"}));
  expect_planned_equals_counted(interpreter);
}

TEST(Tables, MemoryIsPlannedBeforeTheRun) {
  const Interpreter interpreter(dictionary(false, true).load());
  int64_t planned = 0;
  for (const CategoryBytes& c : interpreter.plan().categories) {
    if (c.category == MemoryCategory::kVariables) planned = c.bytes;
  }
  EXPECT_GT(planned, 0);
}

TEST(Tables, ConstantKeysWaitForTheTable) {
  Interpreter interpreter(dictionary(true, true).load());
  for (int i = 0; i < 2; ++i) {
    interpreter.invoke();
    EXPECT_EQ(found(interpreter), (Texts{"none", "one"}));
    expect_planned_equals_counted(interpreter);
  }
}

TEST(Tables, AnEmptyTableIsAnErrorOfTheRun) {
  for (const bool constant_keys : {false, true}) {
    Interpreter interpreter(dictionary(constant_keys, false).load());
    const auto thrown = thrown_by([&] { interpreter.invoke(); });
    EXPECT_EQ(thrown.code, ErrorCode::kRuntime) << thrown.message;
    EXPECT_TRUE(thrown.names("HASHTABLE_FIND") && thrown.names("nothing was imported")) << thrown.message;
  }
}

/// Uniform numbers of a shape that only a run knows, so that the node is planned again in each.
TEST(RandomStreams, GoOnWhereTheNodeIsPlannedInEveryRun) {
  Sketch s;
  const int shape = s.input("shape", DType::kInt32, {1});
  s.outputs(
      {s.compute("RANDOM_UNIFORM", {shape}, "y", DType::kFloat32, {1}, {{"seed", int64_t{1}}, {"seed2", int64_t{2}}})});
  Interpreter interpreter(s.load());
  const auto draw = [&](int32_t count) {
    set<int32_t>(interpreter, interpreter.inputs()[0], {count});
    interpreter.invoke();
    expect_planned_equals_counted(interpreter);
    return get<float>(interpreter, interpreter.outputs()[0]);
  };
  std::vector<float> parts = draw(4);
  for (const float value : draw(4)) parts.push_back(value);
  Interpreter other(s.load());
  set<int32_t>(other, other.inputs()[0], {8});
  other.invoke();
  EXPECT_EQ(parts, get<float>(other, other.outputs()[0]));
}

TEST(Unique, TheWorkspaceOfCountingIsPlannedToo) {
  Sketch s;
  const int x = s.input("x", kI64, {1000});
  const int values = s.value("values", kI64, {1});
  const int places = s.value("places", DType::kInt32, {1000});
  s.node("UNIQUE", {x}, {values, places});
  s.outputs({values, places});
  Interpreter interpreter(s.load());
  std::vector<int64_t> numbers(1000);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i % 7);
  EXPECT_EQ(run<int64_t>(interpreter, numbers), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6}));
  expect_planned_equals_counted(interpreter);
}

}  // namespace
}  // namespace leadline
