// SPDX-License-Identifier: Apache-2.0
// Buffers of string tensors: what is written is read back, and no damaged buffer is accepted.
#include "core/string_tensor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace leadline {
namespace {

std::vector<std::byte> buffer_of(const std::vector<std::string>& texts) {
  int64_t characters = 0;
  for (const std::string& text : texts) characters += static_cast<int64_t>(text.size());
  const auto count = static_cast<int64_t>(texts.size());
  std::vector<std::byte> bytes(static_cast<size_t>(string_tensor_bytes(count, characters).value()));
  StringTensorWriter writer(bytes, count);
  for (const std::string& text : texts) writer.add(text);
  return bytes;
}

void put_word(std::vector<std::byte>& bytes, size_t index, int32_t value) {
  std::memcpy(bytes.data() + index * 4, &value, 4);
}

TEST(StringTensor, ReadsBackWhatWasWritten) {
  const auto bytes = buffer_of({"a", "", "hello"});
  ASSERT_EQ(string_tensor_problem(bytes, 3), "");
  const StringTensorReader reader(bytes);
  EXPECT_EQ(reader.size(), 3);
  EXPECT_EQ(reader[0], "a");
  EXPECT_EQ(reader[1], "");
  EXPECT_EQ(reader[2], "hello");
}

TEST(StringTensor, HasTheLayoutOfTheFormat) {
  const auto bytes = buffer_of({"ab", "c"});
  ASSERT_EQ(bytes.size(), 4U * 4 + 3);
  std::vector<int32_t> words(4);
  std::memcpy(words.data(), bytes.data(), 16);
  EXPECT_EQ(words, (std::vector<int32_t>{2, 16, 18, 19}));
  EXPECT_EQ(std::memcmp(bytes.data() + 16, "abc", 3), 0);
}

TEST(StringTensor, AnEmptyBufferHoldsNoStrings) {
  EXPECT_EQ(string_tensor_problem({}, 0), "");
  EXPECT_EQ(StringTensorReader({}).size(), 0);
  EXPECT_NE(string_tensor_problem({}, 1), "");
  EXPECT_EQ(string_tensor_problem(buffer_of({}), 0), "");
}

TEST(StringTensor, RefusesDamagedBuffers) {
  const auto good = buffer_of({"abc", "de"});
  EXPECT_NE(string_tensor_problem(good, 3), "");
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(string_tensor_problem({good.data(), size}, 2), "") << size;
  }
  for (const int32_t bad : {-1, 0, 15, 1000, INT32_MIN, INT32_MAX}) {
    for (size_t word = 0; word < 4; ++word) {
      auto bytes = good;
      put_word(bytes, word, bad);
      EXPECT_NE(string_tensor_problem(bytes, 2), "") << "word " << word << " = " << bad;
    }
  }
}

TEST(StringTensor, WriterStaysInsideItsBuffer) {
  std::vector<std::byte> bytes(static_cast<size_t>(string_tensor_bytes(1, 2).value()));
  StringTensorWriter writer(bytes, 1);
  writer.add("too long");
  writer.add("ok");
  writer.add("x");
  EXPECT_EQ(string_tensor_problem(bytes, 1), "");
  EXPECT_EQ(StringTensorReader(bytes)[0], "ok");
}

TEST(StringTensor, BytesThatDoNotFitOffsetsAreRefused) {
  EXPECT_EQ(string_tensor_bytes(0, 0), 8);
  EXPECT_FALSE(string_tensor_bytes(1, INT32_MAX).has_value());
  EXPECT_FALSE(string_tensor_bytes(INT64_MAX, 0).has_value());
  EXPECT_FALSE(string_tensor_bytes(-1, 0).has_value());
}

}  // namespace
}  // namespace leadline
