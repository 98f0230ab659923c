// SPDX-License-Identifier: Apache-2.0
// Archives made by hand: what is stored or deflated is read, what is damaged or lies about its size is refused.
#include "io/zip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <random>
#include <stdexcept>

#include "leadline/error.h"

namespace leadline {
namespace {

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::string deflated(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// Archive of entries; `claimed` (if not negative) replaces the size in the directory, `zip64` moves sizes to the extra
/// field and the directory's place to the zip64 records.
class Archive {
 public:
  explicit Archive(bool zip64 = false) : zip64_(zip64) {}
  Archive& add(const std::string& name, const std::string& text, bool deflate = false, int64_t claimed = -1) {
    const std::string data = deflate ? deflated(text) : text;
    const auto crc = static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()));
    const auto size = static_cast<uint64_t>(claimed >= 0 ? claimed : static_cast<int64_t>(text.size()));
    std::string common;
    put<uint16_t>(common, 20);
    put<uint16_t>(common, 0);
    put<uint16_t>(common, deflate ? 8 : 0);
    put<uint32_t>(common, 0);
    put<uint32_t>(common, crc);
    put<uint32_t>(common, zip64_ ? 0xFFFFFFFF : static_cast<uint32_t>(data.size()));
    put<uint32_t>(common, zip64_ ? 0xFFFFFFFF : static_cast<uint32_t>(size));
    put<uint16_t>(common, static_cast<uint16_t>(name.size()));
    std::string extra;
    if (zip64_) {
      put<uint16_t>(extra, 1);
      put<uint16_t>(extra, 16);
      put<uint64_t>(extra, size);
      put<uint64_t>(extra, data.size());
    }
    put<uint16_t>(common, static_cast<uint16_t>(extra.size()));
    put<uint32_t>(directory_, 0x02014b50);
    put<uint16_t>(directory_, 20);
    directory_ += common;
    directory_.append(10, '\0');
    put<uint32_t>(directory_, static_cast<uint32_t>(bytes_.size()));
    directory_ += name + extra;
    put<uint32_t>(bytes_, 0x04034b50);
    bytes_ += common + name + extra + data;
    ++count_;
    return *this;
  }
  std::string finish() const {
    std::string out = bytes_ + directory_;
    if (zip64_) {
      const uint64_t record = out.size();
      put<uint32_t>(out, 0x06064b50);
      put<uint64_t>(out, 44);
      out.append(12, '\0');
      put<uint64_t>(out, count_);
      put<uint64_t>(out, count_);
      put<uint64_t>(out, directory_.size());
      put<uint64_t>(out, bytes_.size());
      put<uint32_t>(out, 0x07064b50);
      put<uint32_t>(out, 0);
      put<uint64_t>(out, record);
      put<uint32_t>(out, 1);
    }
    put<uint32_t>(out, 0x06054b50);
    put<uint32_t>(out, 0);
    put<uint16_t>(out, zip64_ ? 0xFFFF : count_);
    put<uint16_t>(out, zip64_ ? 0xFFFF : count_);
    put<uint32_t>(out, zip64_ ? 0xFFFFFFFF : static_cast<uint32_t>(directory_.size()));
    put<uint32_t>(out, zip64_ ? 0xFFFFFFFF : static_cast<uint32_t>(bytes_.size()));
    put<uint16_t>(out, 0);
    return out;
  }

 private:
  bool zip64_;
  std::string bytes_;
  std::string directory_;
  uint16_t count_ = 0;
};

std::shared_ptr<const RandomAccess> in_memory(const std::string& bytes) {
  return std::make_shared<InputMemory>("a.zip", ModelBytes::copy(std::as_bytes(std::span(bytes))));
}

std::string text_of(const ModelBytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.span().data()), bytes.span().size()};
}

TEST(Zip, StoredEntryIsAViewAndDeflatedOneIsChargedToTheBudget) {
  for (const bool zip64 : {false, true}) {
    const std::string large(100000, 'x');
    const auto file = in_memory(Archive(zip64).add("a/stored", "hello").add("packed", large, true).finish());
    const auto entries = zip_entries(*file);
    ASSERT_EQ(entries.size(), 2U);
    const auto budget = Budget::with_limit(1 << 20);
    const auto stored = entry_bytes(file, *find_entry(*file, entries, "a/stored"), budget);
    EXPECT_EQ(text_of(*stored), "hello");
    EXPECT_GE(stored->span().data(), file->memory()->span().data());
    EXPECT_LT(stored->span().data(), file->memory()->span().data() + file->size());
    EXPECT_EQ(budget->used(), 0);
    auto packed = entry_bytes(file, *find_entry(*file, entries, "packed"), budget);
    EXPECT_EQ(text_of(*packed), large);
    EXPECT_GE(budget->used(), 100000);
    packed.reset();
    EXPECT_EQ(budget->used(), 0);
    EXPECT_EQ(entry_text(file, entries[1], 100000), large);
    EXPECT_THROW(entry_text(file, entries[1], 99999), Error);
    EXPECT_EQ(find_entry(*file, entries, "none"), nullptr);
  }
}

TEST(Zip, EntryBeyondTheBudgetIsRefused) {
  const auto file = in_memory(Archive().add("packed", std::string(100000, 'x'), true).finish());
  const auto entries = zip_entries(*file);
  EXPECT_THROW(entry_bytes(file, entries[0], Budget::with_limit(1000)), BudgetError);
}

TEST(Zip, SizeThatDeflateCannotReachIsRefused) {
  const auto bomb = in_memory(Archive().add("packed", "x", true, 1 << 30).finish());
  EXPECT_THROW(zip_entries(*bomb), Error);
  const auto longer = in_memory(Archive(true).add("stored", "x", false, int64_t{1} << 40).finish());
  EXPECT_THROW(zip_entries(*longer), Error);
}

TEST(Zip, ClaimedSizeThatTheDataDoNotHaveIsRefused) {
  const auto file = in_memory(Archive().add("packed", std::string(100, 'x'), true, 101).finish());
  const auto entries = zip_entries(*file);
  EXPECT_THROW(entry_bytes(file, entries[0], Budget::with_limit(1 << 20)), Error);
}

TEST(Zip, TwoEntriesOfOneNameAreRefused) {
  const auto file = in_memory(Archive().add("a", "1").add("a", "2").finish());
  const auto entries = zip_entries(*file);
  EXPECT_THROW(find_entry(*file, entries, "a"), Error);
}

TEST(Zip, ChangedByteOfTheDataIsNoticed) {
  for (const bool deflate : {false, true}) {
    std::string bytes = Archive().add("a", "some text that is not repeated", deflate).finish();
    bytes[35] = static_cast<char>(bytes[35] ^ 4);
    const auto file = in_memory(bytes);
    const auto entries = zip_entries(*file);
    EXPECT_THROW(entry_bytes(file, entries[0], Budget::with_limit(1 << 20)), Error);
  }
}

TEST(Zip, MutatedArchivesGiveAnErrorOrTheContents) {
  std::mt19937 random(1);
  for (const bool zip64 : {false, true}) {
    const std::string bytes =
        Archive(zip64).add("a", "stored text").add("b", std::string(500, 'y'), true).add("c", "").finish();
    for (int round = 0; round < 3000; ++round) {
      std::string mutated = bytes;
      for (unsigned i = 0; i <= random() % 3; ++i) mutated[random() % mutated.size()] = static_cast<char>(random());
      if (round % 5 == 0) mutated.resize(random() % mutated.size());
      if (mutated.empty()) continue;
      const auto file = in_memory(mutated);
      try {
        for (const ZipEntry& entry : zip_entries(*file)) entry_bytes(file, entry, Budget::with_limit(1 << 24));
      } catch (const Error&) {
      }
    }
  }
}

}  // namespace
}  // namespace leadline
