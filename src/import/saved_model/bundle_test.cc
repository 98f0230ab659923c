// SPDX-License-Identifier: Apache-2.0
#include "import/saved_model/bundle.h"

#include <gtest/gtest.h>

#include <random>

#include "core/error.h"
#include "core/string_tensor.h"
#include "import/saved_model/crc32c.h"
#include "import/saved_model/files_testing.h"
#include "import/saved_model/snappy.h"

namespace leadline::saved_model {
namespace {

using testing::as_bytes;
using testing::BundleWriter;
using testing::Proto;
using testing::shape;
using testing::TableWriter;
using testing::TempDirectory;
using testing::varint;

std::string read_all(const ir::ConstantSource& source) {
  std::string text(static_cast<size_t>(source.bytes()), '?');
  source.read(std::as_writable_bytes(std::span(text)));
  return text;
}

std::string decompress(const std::string& data) {
  const auto bytes = snappy_decode(as_bytes(data), 1000, "test");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::shared_ptr<Bundle> open(const TempDirectory& directory) {
  return Bundle::open(directory.path() + "/variables/variables", nullptr);
}

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xE3069283U);            // the check value of CRC-32C
  EXPECT_EQ(crc32c(as_bytes(std::string(32, '\0'))), 0x8A9136AAU);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(as_bytes("6789"), crc32c(as_bytes("12345"))), 0xE3069283U);
}

TEST(Snappy, DecodesLiteralsAndOverlappingCopies) {
  EXPECT_EQ(decompress(std::string("\x05\x10hello", 7)), "hello");
  EXPECT_EQ(decompress(std::string("\x07\x00x\x09\x01", 5)).substr(0, 1), "x");  // 1 + copy of 6, offset 1
  EXPECT_EQ(decompress(std::string("\x08\x04"
                                   "ab\x16\x02\x00",
                                   7)),
            "abababab");                                                            // copy of 6, 16-bit offset
  EXPECT_EQ(decompress(std::string("\x05\x00z\x0F\x01\x00\x00\x00", 8)), "zzzzz");  // copy of 4, 32-bit offset
  EXPECT_EQ(decompress(varint(70) + "\xF0" + '\x45' + std::string(70, 'q')), std::string(70, 'q'));
}

TEST(Snappy, RefusesDamage) {
  for (const std::string& bad : {std::string(), std::string("\x05"), std::string("\x05\x10hell"),
                                 std::string("\x05\x00z\x0F\x02\x00\x00\x00", 8), std::string("\x04\x10hello"),
                                 std::string("\xFF\xFF\xFF\xFF\x0F\x00z"), std::string("\x02\x00z")})
    EXPECT_THROW(decompress(bad), Error);
}

TEST(Table, ReadsPrefixCompressedKeysOverBlocks) {
  TableWriter writer;
  for (const char* key : {"", "layer/bias", "layer/kernel", "layer_2/bias", "layer_2/kernel"}) writer.add(key, key);
  const auto rows = read_table(testing::wire_file(writer.bytes(2)), nullptr);
  ASSERT_EQ(rows.size(), 5U);
  for (const auto& row : rows) EXPECT_EQ(as_bytes(row.key).size(), row.value.size());
  EXPECT_EQ(rows[4].key, "layer_2/kernel");
}

/// A table whose index has the row "b" and so on for each handle.
std::string table_of(std::string file, const std::vector<std::string>& handles) {
  std::vector<std::pair<std::string, std::string>> index;
  for (const std::string& handle : handles) index.emplace_back(std::string(index.size() + 1, 'b'), handle);
  std::string footer = TableWriter::append(file, TableWriter::entries({}));
  footer += TableWriter::append(file, TableWriter::entries(index));
  footer.resize(40);
  return file + footer + testing::little_endian(0xDB4775248B80FB57ULL, 8);
}

std::string table_error(const std::string& file, const std::shared_ptr<Budget>& budget = nullptr) {
  try {
    read_table(testing::wire_file(file, budget), budget);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// A block without rows breaks no order of keys, however often it is listed.
TEST(Table, RefusesBlocksThatAreListedAgainAndAgain) {
  std::string file;
  const std::string empty = TableWriter::append(file, TableWriter::entries({}));
  EXPECT_EQ(table_error(table_of(file, {empty})), "");
  EXPECT_NE(table_error(table_of(file, std::vector<std::string>(100, empty))).find("overlap"), std::string::npos);
}

TEST(Table, ChargesACompressedBlockBeforeItIsUnpacked) {
  std::string file;
  const std::string packed = varint(20 << 20) + std::string(700 << 10, '\xFF');  // damaged, but nothing reads that far
  const std::string handle = TableWriter::append(file, packed, 1);
  const std::string error = table_error(table_of(file, {handle}), Budget::with_limit(10 << 20));
  EXPECT_NE(error.find("budget"), std::string::npos) << error;
}

TEST(Table, ReadsCompressedBlocks) {
  std::string file;
  const std::string plain = TableWriter::entries({{"a", "1"}, {"ab", "2"}});
  const std::string packed = varint(plain.size()) + static_cast<char>((plain.size() - 1) << 2) + plain;
  const std::string data = TableWriter::append(file, packed, 1);
  std::string footer = TableWriter::append(file, TableWriter::entries({}));
  footer += TableWriter::append(file, TableWriter::entries({{"b", data}}));
  footer.resize(40);
  const auto rows =
      read_table(testing::wire_file(file + footer + testing::little_endian(0xDB4775248B80FB57ULL, 8)), nullptr);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].key, "ab");
  EXPECT_EQ(rows[1].value[0], std::byte{'2'});
}

TEST(Table, FlippedAndMissingBytesAreFound) {
  TableWriter writer;
  for (const char* key : {"", "layer/bias", "layer/kernel", "layer_2/bias"}) writer.add(key, "value");
  const std::string good = writer.bytes(2);
  size_t harmless = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_THROW(read_table(testing::wire_file(good.substr(0, i)), nullptr), Error) << i;
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x41);
    try {
      ASSERT_EQ(read_table(testing::wire_file(bad), nullptr).size(), 4U) << i;
      ++harmless;
    } catch (const Error&) {
    }
  }
  // An empty block that is not read (13 bytes), its handle and the padding (at most 40).
  EXPECT_LE(harmless, 53U);
}

TEST(Bundle, ReadsVariablesAndChecksThem) {
  const TempDirectory directory;
  BundleWriter writer;
  writer.add("layer/bias", 1, shape({2}), "12345678");
  writer.add("layer/kernel", 9, shape({1, 1}), "abcdefgh");
  writer.add("none", 1, shape({0, 3}), "");
  writer.add_strings("words", {"one", "", "three"});
  writer.write(directory);
  const auto bundle = open(directory);
  ASSERT_EQ(bundle->entries().size(), 4U);
  EXPECT_EQ(bundle->find("layer"), nullptr);
  EXPECT_EQ(read_all(*bundle->source(*bundle->find("layer/kernel"))), "abcdefgh");
  EXPECT_EQ(read_all(*bundle->source(*bundle->find("layer/bias"))), "12345678");
  EXPECT_EQ(read_all(*bundle->source(*bundle->find("none"))), "");
  const std::string words = read_all(*bundle->source(*bundle->find("words")));
  ASSERT_EQ(string_tensor_problem(as_bytes(words), 3), "");
  EXPECT_EQ(StringTensorReader(as_bytes(words))[2], "three");
}

TEST(Bundle, DamagedDataIsFoundWhenRead) {
  const TempDirectory directory;
  BundleWriter writer;
  writer.add("a", 1, shape({2}), "12345678");
  writer.add_strings("s", {"one"});
  writer.write(directory);
  std::string data = writer.data();
  data[3] = 'x';
  data.back() = 'x';
  directory.write("variables/variables.data-00000-of-00001", data);
  const auto bundle = open(directory);
  EXPECT_THROW(read_all(*bundle->source(*bundle->find("a"))), Error);
  EXPECT_THROW(read_all(*bundle->source(*bundle->find("s"))), Error);
}

TEST(Bundle, WrongPlacesAndSizesAreRefused) {
  const TempDirectory directory;
  BundleWriter writer;
  const auto bad = [&](const std::string& key, const std::vector<int64_t>& dims, uint64_t offset, uint64_t size) {
    Proto s;
    for (const int64_t dim : dims) s.add(2, Proto().number(1, static_cast<uint64_t>(dim)));
    writer.add_raw(key, Proto().number(1, 1).add(2, s).number(4, offset).number(5, size), "");
  };
  writer.add("good", 1, shape({2}), "12345678");
  bad("beyond", {2}, 4, 8);
  bad("far", {2}, 1ULL << 62, 8);
  bad("short", {3}, 0, 8);
  bad("huge", {1LL << 40, 1LL << 40}, 0, 8);
  bad("unknown", {-1}, 0, 8);
  writer.write(directory);
  const auto bundle = open(directory);
  for (const char* key : {"beyond", "far", "short", "huge", "unknown"})
    EXPECT_THROW(bundle->source(*bundle->find(key)), Error) << key;
  EXPECT_EQ(read_all(*bundle->source(*bundle->find("good"))), "12345678");

  bad("negative", {2}, ~0ULL, 8);
  writer.write(directory);
  EXPECT_THROW(open(directory), Error);
}

TEST(Bundle, PartsArePutTogether) {
  const TempDirectory directory;
  BundleWriter writer;
  // "w" is [2, 4] of bytes, stored as columns 0-2 and column 3. Keys: 0, name, end mark, rank, start and length each.
  const auto slice = [](uint64_t start, uint64_t length) {
    return Proto().add(1, Proto()).add(1, Proto().number(1, start).number(2, length));
  };
  const std::string head("\0w\0\1\1\2\x80\x7F", 8);
  writer.add_raw("w", Proto().number(1, 4).add(2, shape({2, 4})).add(7, slice(0, 3)).add(7, slice(3, 1)), "");
  writer.add(head + "\x80\x83", 4, shape({2, 3}), "abcefg");
  writer.add(head + "\x83\x81", 4, shape({2, 1}), "dh");
  writer.write(directory);
  const auto bundle = open(directory);
  ASSERT_EQ(bundle->entries().size(), 1U);
  EXPECT_EQ(read_all(*bundle->source(bundle->entries()[0])), "abcdefgh");
  EXPECT_EQ(read_all(*bundle->source(bundle->entries()[0], {{0, -1}, {3, 1}})), "dh");
  EXPECT_THROW(bundle->source(bundle->entries()[0], {{0, -1}, {2, 1}}), Error);
}

}  // namespace
}  // namespace leadline::saved_model
