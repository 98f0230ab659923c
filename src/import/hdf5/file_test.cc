// SPDX-License-Identifier: Apache-2.0
// HDF5 files made by hand in the old and the new form; tests/python/test_containers.py has those that h5py writes.
#include "import/hdf5/file.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>

#include "import/hdf5/writer_testing.h"
#include "leadline/error.h"

namespace leadline::hdf5 {
namespace {

using Store = Hdf5Writer::Store;

std::string sample(bool latest) {
  Hdf5Writer writer(latest);
  writer.text("", "model_config", R"({"class_name": "Sequential"})");
  writer.strings("layers", "names", {"dense", "conv1d"});
  writer.floats("layers/dense/vars/0", {2, 3}, {1, 2, 3, 4, 5, 6});
  writer.floats("layers/dense/vars/1", {3}, {7, 8, 9}, Store::kCompact);
  writer.floats("chunked", {2, 2}, {1, -1, 2, -2}, Store::kChunked);
  writer.floats("packed", {4, 5}, std::vector<float>(20, 0.5F), Store::kPacked);
  writer.floats("big_endian", {2}, {1.5F, -3}, Store::kContiguous, true);
  writer.floats("scalar", {}, {42});
  writer.floats("empty", {0, 4}, {});
  writer.opaque("opaque", 2, {3}, "abcdef");
  return writer.finish();
}

class Hdf5 : public testing::TestWithParam<bool> {
 protected:
  static Hdf5File open(const std::string& bytes) {
    return {std::as_bytes(std::span(bytes)), Budget::with_limit(1 << 24)};
  }
  static std::vector<float> floats(const Hdf5File& file, const std::string& path) {
    std::vector<float> values(static_cast<size_t>(file.dataset(path).bytes) / 4);
    file.read(path, std::as_writable_bytes(std::span(values)));
    return values;
  }
};
INSTANTIATE_TEST_SUITE_P(Forms, Hdf5, testing::Bool(),
                         [](const auto& form) { return form.param ? "Latest" : "Default"; });

TEST_P(Hdf5, ListsGroups) {
  const std::string bytes = sample(GetParam());
  const Hdf5File file = open(bytes);
  EXPECT_EQ(file.children("layers/dense/vars"), (std::vector<std::string>{"0", "1"}));
  EXPECT_EQ(file.children("").size(), 7U);
  EXPECT_TRUE(file.is_group("layers"));
  EXPECT_TRUE(file.is_group("/layers/dense/"));
  EXPECT_FALSE(file.is_group("scalar"));
  EXPECT_TRUE(file.is_dataset("scalar"));
  EXPECT_FALSE(file.exists("layers/none"));
  EXPECT_FALSE(file.exists("scalar/below"));
  EXPECT_THROW(file.children("scalar"), Error);
}

TEST_P(Hdf5, ReadsEveryLayout) {
  const std::string bytes = sample(GetParam());
  const Hdf5File file = open(bytes);
  EXPECT_EQ(floats(file, "layers/dense/vars/0"), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(floats(file, "layers/dense/vars/1"), (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(floats(file, "chunked"), (std::vector<float>{1, -1, 2, -2}));
  EXPECT_EQ(floats(file, "packed"), std::vector<float>(20, 0.5F));
  EXPECT_EQ(floats(file, "big_endian"), (std::vector<float>{1.5F, -3}));
  EXPECT_EQ(floats(file, "scalar"), (std::vector<float>{42}));
  EXPECT_TRUE(floats(file, "empty").empty());
  EXPECT_EQ(file.dataset("packed").shape, Shape({4, 5}));
  EXPECT_EQ(file.dataset("packed").dtype, DType::kFloat32);
  EXPECT_EQ(file.dataset("scalar").shape.rank(), 0);
  EXPECT_EQ(file.dataset("opaque").dtype, std::nullopt);
  EXPECT_EQ(file.dataset("opaque").item_bytes, 2);
}

/// A message takes 4 bytes in the file, and more in memory.
TEST(Hdf5Header, HasABoundedNumberOfMessages) {
  for (const size_t count : {size_t{1000}, size_t{100000}}) {
    Hdf5Writer writer(true);
    writer.at("group").messages.assign(count, std::string(2, '\0'));
    const std::string bytes = writer.finish();
    const Hdf5File file(std::as_bytes(std::span(bytes)), Budget::with_limit(1 << 24));
    if (count == 1000) {
      EXPECT_TRUE(file.children("group").empty());
    } else {
      EXPECT_THROW(file.children("group"), Error);
    }
  }
}

TEST_P(Hdf5, ViewsWhatLiesInOnePiece) {
  const std::string bytes = sample(GetParam());
  const Hdf5File file = open(bytes);
  const auto view = file.view("layers/dense/vars/0");
  ASSERT_TRUE(view);
  EXPECT_EQ(view->size(), 24U);
  EXPECT_EQ(reinterpret_cast<const char*>(view->data()) - bytes.data(),
            static_cast<long>(bytes.find(std::string("\0\0\x80\x3f\0\0\0\x40", 8))));
  EXPECT_FALSE(file.view("packed"));
  EXPECT_FALSE(file.view("big_endian"));
}

TEST_P(Hdf5, ReadsStringAttributes) {
  const std::string bytes = sample(GetParam());
  const Hdf5File file = open(bytes);
  EXPECT_EQ(file.string_attribute("", "model_config"), R"({"class_name": "Sequential"})");
  EXPECT_EQ(file.strings_attribute("layers", "names"), (std::vector<std::string>{"dense", "conv1d"}));
  EXPECT_EQ(file.strings_attribute("layers", "none"), std::nullopt);
  EXPECT_THROW(file.string_attribute("layers", "names"), Error);  // two, not one
}

TEST_P(Hdf5, ErrorsNameThePath) {
  const std::string bytes = sample(GetParam());
  const Hdf5File file = open(bytes);
  try {
    file.dataset("layers/dense/vars/7");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("layers/dense/vars/7"), std::string::npos) << error.what();
    EXPECT_EQ(error.code(), ErrorCode::kInvalidModel);
  }
}

TEST_P(Hdf5, ChunkMemoryIsChargedToTheBudget) {
  Hdf5Writer writer(GetParam());
  writer.floats("packed", {1000}, std::vector<float>(1000, 1), Store::kPacked);
  const std::string bytes = writer.finish();
  const auto budget = Budget::with_limit(1000);
  const Hdf5File file(std::as_bytes(std::span(bytes)), budget);
  EXPECT_THROW(floats(file, "packed"), BudgetError);
  EXPECT_EQ(budget->used(), 0);
}

TEST_P(Hdf5, UserBlockIsSkipped) {
  const std::string bytes = std::string(1024, 'u') + sample(GetParam());
  EXPECT_EQ(floats(open(bytes), "scalar"), (std::vector<float>{42}));
}

TEST_P(Hdf5, GroupThatHoldsItselfIsNoEndlessWalk) {
  Hdf5Writer writer(GetParam());
  writer.floats("a/b", {1}, {1});
  std::string bytes = writer.finish();
  // The root is written last; a reference to "a" is one to the root afterwards.
  const auto at = [&](size_t place) -> uint64_t {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + place, 8);
    return value;
  };
  const size_t root_field = GetParam() ? 36 : 64;
  const uint64_t root = at(root_field);
  const uint64_t a = writer.at("a").address;
  for (size_t i = 0; i + 8 <= bytes.size(); ++i) {
    if (at(i) == a && i != root_field) std::memcpy(bytes.data() + i, &root, 8);
  }
  const Hdf5File file(std::as_bytes(std::span(bytes)), Budget::with_limit(1 << 20), {.verify_checksums = false});
  EXPECT_EQ(file.children("a/a/a/a"), (std::vector<std::string>{"a"}));
}

TEST(Hdf5Checksum, ChangedHeaderIsNoticed) {
  std::string bytes = sample(true);
  const size_t name = bytes.find("packed");
  bytes[name] = 'P';
  EXPECT_THROW(Hdf5File(std::as_bytes(std::span(bytes)), Budget::with_limit(1 << 20)).children(""), Error);
}

TEST(Hdf5Checksum, IsLookup3) {
  EXPECT_EQ(lookup3({}), 0xdeadbeefU);
  const std::string text = "Four score and seven years ago";  // the example of the hash's author
  EXPECT_EQ(lookup3(std::as_bytes(std::span(text))), 0x17770551U);
}

/// Reads everything that can be reached, as far as a sound file of this size could go.
void read_all(const Hdf5File& file, const std::string& path, int depth, int& left) {
  if (depth > 8 || --left < 0) return;
  for (const char* name : {"model_config", "names"}) {
    try {
      file.strings_attribute(path, name);
    } catch (const Error&) {
    }
  }
  for (const std::string& child : file.children(path)) {
    const std::string inner = path.empty() ? child : path + "/" + child;
    try {
      if (file.is_group(inner)) {
        read_all(file, inner, depth + 1, left);
        continue;
      }
      const DatasetInfo info = file.dataset(inner);
      if (info.bytes > 1 << 20) continue;
      std::vector<std::byte> data(static_cast<size_t>(info.bytes));
      file.read(inner, data);
      file.view(inner);
    } catch (const Error&) {
    }
  }
}

TEST_P(Hdf5, MutatedFilesGiveAnErrorOrAnAnswer) {
  const std::string bytes = sample(GetParam());
  std::mt19937 random(7);
  for (int round = 0; round < 4000; ++round) {
    // Exactly as large as the contents, so that a sanitizer sees reads beyond the end.
    std::vector<char> mutated(bytes.begin(), bytes.end());
    for (unsigned i = 0; i <= random() % 4; ++i) {
      constexpr std::array<unsigned char, 6> kEdges{0, 1, 2, 0x7F, 0x80, 0xFF};
      const auto value = random() % 2 == 0 ? random() : kEdges[random() % kEdges.size()];
      mutated[random() % mutated.size()] = static_cast<char>(value);
    }
    if (round % 16 == 0) mutated.resize(random() % mutated.size());
    try {
      const Hdf5File file(std::as_bytes(std::span(mutated)), Budget::with_limit(1 << 24), {.verify_checksums = false});
      int left = 500;
      read_all(file, "", 0, left);
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace leadline::hdf5
