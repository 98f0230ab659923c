// SPDX-License-Identifier: Apache-2.0
#include "ops/hashtable.h"

#include <gtest/gtest.h>

#include "ops/string_testing.h"

namespace leadline::ops {
namespace {

using Numbers = std::vector<int64_t>;
using Texts = std::vector<std::string>;

class HashtableTest : public ::testing::Test {
 protected:
  int32_t handle(int32_t id, DType key, DType value) {
    HashtableAttributes a;
    a.table_id = id;
    a.key_dtype = key;
    a.value_dtype = value;
    OpTester t("HASHTABLE");
    t.resources(state_).attributes(a).output(DType::kResource);
    t.run();
    return t.result<int32_t>(0)[0];
  }

  OpTester with_handle(const std::string& op, int32_t handle) {
    std::vector<std::byte> bytes(sizeof(handle));
    std::memcpy(bytes.data(), &handle, sizeof(handle));
    OpTester t(op);
    t.resources(state_).raw_input(DType::kResource, {1}, bytes);
    return t;
  }

  void import_texts(int32_t table, const Numbers& keys, const Texts& texts) {
    OpTester t = with_handle("HASHTABLE_IMPORT", table);
    t.input<int64_t>({static_cast<int64_t>(keys.size())}, keys);
    string_input(t, {static_cast<int64_t>(texts.size())}, texts, true);
    t.run();
  }

  Texts find_texts(int32_t table, const Numbers& keys) {
    OpTester t = with_handle("HASHTABLE_FIND", table);
    t.input<int64_t>({static_cast<int64_t>(keys.size())}, keys, {}, false);
    string_input(t, {1}, {"none"}).output(DType::kString);
    t.run();
    return string_result(t, 0);
  }

  int64_t size(int32_t table) {
    OpTester t = with_handle("HASHTABLE_SIZE", table);
    t.output(DType::kInt64);
    t.run();
    return t.result<int64_t>(0)[0];
  }

  std::shared_ptr<Budget> budget_ = Budget::with_limit(1 << 20);
  std::shared_ptr<Resources> state_ = std::make_shared<Resources>(budget_);
};

TEST_F(HashtableTest, FindsTextsAndTheDefault) {
  const int32_t table = handle(3, DType::kInt64, DType::kString);
  import_texts(table, {5, -6, 5}, {"five", "", "again"});
  EXPECT_EQ(find_texts(table, {-6, 7, 5}), (Texts{"", "none", "five"}));
  EXPECT_EQ(size(table), 2);
}

TEST_F(HashtableTest, FindsNumbers) {
  const int32_t table = handle(3, DType::kString, DType::kInt64);
  OpTester import = with_handle("HASHTABLE_IMPORT", table);
  string_input(import, {2}, {"one", "two"}, true).input<int64_t>({2}, {1, 2});
  import.run();
  OpTester t = with_handle("HASHTABLE_FIND", table);
  string_input(t, {3, 1}, {"two", "three", "one"}).input<int64_t>({}, {-1}).output(DType::kInt64);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{3, 1}));
  EXPECT_EQ(t.result<int64_t>(0), (Numbers{2, -1, 1}));
}

TEST_F(HashtableTest, OnlyTheFirstImportCountsUntilAReset) {
  const int32_t table = handle(3, DType::kInt64, DType::kString);
  import_texts(table, {1}, {"first"});
  import_texts(table, {1, 2}, {"second", "third"});
  EXPECT_EQ(find_texts(table, {1, 2}), (Texts{"first", "none"}));
  state_->reset();
  import_texts(table, {1, 2}, {"second", "third"});
  EXPECT_EQ(find_texts(table, {1, 2}), (Texts{"second", "third"}));
}

TEST_F(HashtableTest, ManyKeysAreFound) {
  Numbers keys;
  Texts texts;
  for (int64_t i = 0; i < 3000; ++i) {
    keys.push_back(i * 1024);
    texts.push_back(std::to_string(i));
  }
  const int32_t table = handle(0, DType::kInt64, DType::kString);
  import_texts(table, keys, texts);
  EXPECT_EQ(find_texts(table, keys), texts);
  EXPECT_EQ(size(table), 3000);
}

TEST_F(HashtableTest, MemoryIsPlannedWhereTheContentsAreKnown) {
  int64_t planned = 0;
  state_->set_listener([&](int64_t bytes, MemoryCategory) { planned += bytes; });
  const int32_t table = handle(3, DType::kInt64, DType::kString);
  import_texts(table, {1, 2}, {"first", "second"});
  EXPECT_EQ(state_->pending_bytes(), 0);
  EXPECT_GT(state_->held_bytes(), 0);
  EXPECT_EQ(state_->held_bytes(), planned);
  EXPECT_EQ(state_->held_bytes(), budget_->used());
}

TEST_F(HashtableTest, TablesAndVariablesAreToldApart) {
  const int32_t table = handle(3, DType::kInt64, DType::kString);
  const int32_t variable = state_->handle(
      "a\x1f"
      "b");
  EXPECT_NE(table, handle(4, DType::kInt64, DType::kString));
  EXPECT_THROW(size(variable), Error);
  EXPECT_THROW(size(99), Error);
  EXPECT_THROW(size(-1), Error);
  OpTester read = with_handle("READ_VARIABLE", table);
  read.output(DType::kFloat32);
  EXPECT_THROW(read.run(), Error);
}

TEST_F(HashtableTest, RefusesOtherTypesAndEmptyTables) {
  EXPECT_THROW(handle(3, DType::kInt64, DType::kInt64), Error);
  const int32_t numbers = handle(3, DType::kString, DType::kInt64);
  EXPECT_THROW(import_texts(numbers, {1}, {"one"}), Error);
  EXPECT_EQ(size(numbers), 0);
  OpTester t = with_handle("HASHTABLE_FIND", numbers);
  string_input(t, {1}, {"one"}).input<int64_t>({1}, {-1}).output(DType::kInt64);
  EXPECT_THROW(t.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
