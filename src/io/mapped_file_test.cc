// SPDX-License-Identifier: Apache-2.0
#include "io/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.h"
#include "core/error.h"

namespace leadline {
namespace {

class MappedFile : public testing::Test {
 protected:
  MappedFile() : directory_(testing::TempDir() + "leadline-mapped-" + std::to_string(getpid())) {
    std::filesystem::create_directories(directory_);
  }
  ~MappedFile() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ / name; }

  /// A file whose byte i is i * 7 mod 251.
  std::string write_file(const std::string& name, size_t bytes) const {
    std::string text(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(expected(i));
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  static std::byte expected(size_t i) { return static_cast<std::byte>(i * 7 % 251); }
  static bool intact(std::span<const std::byte> bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] != expected(i)) return false;
    }
    return true;
  }

  static void expect_refused(const std::string& path, const std::string& reason) {
    try {
      ModelBytes::map_file(path);
      ADD_FAILURE() << "mapped " << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo);
      EXPECT_EQ(std::string(error.what()), "Could not open '" + path + "': " + reason);
    }
  }

 private:
  std::filesystem::path directory_;
};

/// Pages of [data, data + bytes) present in this process's mapping; mincore would report the page cache.
std::vector<bool> present_pages(const std::byte* data, size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const size_t first = reinterpret_cast<uintptr_t>(data) / page;
  std::vector<bool> present;
  for (size_t offset = 0; offset < bytes; offset += page) {
    uint64_t entry = 0;
    const auto position = static_cast<off_t>((first + offset / page) * sizeof(entry));
    present.push_back(pread(pagemap, &entry, sizeof(entry), position) == sizeof(entry) && (entry >> 63) != 0);
  }
  close(pagemap);
  return present;
}

TEST_F(MappedFile, ShowsTheBytesOfTheFile) {
  const auto bytes = ModelBytes::map_file(write_file("model", 10'000));
  ASSERT_EQ(bytes->span().size(), 10'000U);
  EXPECT_TRUE(intact(bytes->span()));
}

TEST_F(MappedFile, OutlivesTheNameOfTheFile) {
  const std::string file = write_file("model", 5000);
  const auto bytes = ModelBytes::map_file(file);
  std::filesystem::remove(file);
  EXPECT_TRUE(intact(bytes->span()));
}

TEST_F(MappedFile, MissingFileIsNamedWithTheReason) {
  expect_refused(path("nowhere"), "No such file or directory");
  expect_refused("", "No such file or directory");
}

TEST_F(MappedFile, DirectoryIsRefused) { expect_refused(path(""), "it is a directory, not a file"); }

TEST_F(MappedFile, EmptyFileIsRefused) { expect_refused(write_file("empty", 0), "the file is empty"); }

TEST_F(MappedFile, DeviceAndPipeAreRefusedWithoutWaiting) {
  expect_refused("/dev/null", "it is not a regular file");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  expect_refused(path("pipe"), "it is not a regular file");
}

TEST_F(MappedFile, PathWithAZeroByteIsRefused) {
  const std::string file = write_file("model", 100);
  EXPECT_THROW(ModelBytes::map_file(file + std::string("\0x", 2)), Error);
}

TEST_F(MappedFile, DropPagesTakesWholePagesInsideTheRangeOnly) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto bytes = ModelBytes::map_file(write_file("model", 8 * page + 100));
  const std::byte* const data = bytes->span().data();
  madvise(const_cast<std::byte*>(data), bytes->span().size(), MADV_POPULATE_READ);
  ASSERT_TRUE(intact(bytes->span()));
  const std::vector<bool> all(9, true);
  if (present_pages(data, bytes->span().size()) != all) GTEST_SKIP() << "this system does not show page tables";

  bytes->drop_pages(data + 1, static_cast<int64_t>(page));  // no whole page
  bytes->drop_pages(data + page, 0);
  bytes->drop_pages(data + page, -1);
  bytes->drop_pages(data - page, static_cast<int64_t>(page));
  bytes->drop_pages(nullptr, 100);
  EXPECT_EQ(present_pages(data, bytes->span().size()), all);

  bytes->drop_pages(data + 2 * page + 1, static_cast<int64_t>(3 * page));  // pages 3 and 4
  EXPECT_EQ(present_pages(data, bytes->span().size()),
            (std::vector<bool>{true, true, true, false, false, true, true, true, true}));

  bytes->drop_pages(data + 7 * page, std::numeric_limits<int64_t>::max());  // up to the end, its part page too
  EXPECT_EQ(present_pages(data, bytes->span().size()),
            (std::vector<bool>{true, true, true, false, false, true, true, false, false}));
  EXPECT_TRUE(intact(bytes->span()));
}

/// What parse_file() says of a file.
Error parse_error(const std::string& path, const std::function<void(std::string_view)>& parse) {
  try {
    parse_file(path, parse);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {ErrorCode::kInternal, ""};
}

TEST_F(MappedFile, ParsesTheTextOfTheFileAndNamesItInErrors) {
  std::ofstream(path("rules.json")) << "text";
  std::string seen;
  parse_file(path("rules.json"), [&](std::string_view text) { seen = text; });
  EXPECT_EQ(seen, "text");
  const Error error = parse_error(
      path("rules.json"), [](std::string_view) { throw Error(ErrorCode::kInvalidArgument, "line 1 is not a rule"); });
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(std::string(error.what()), path("rules.json") + ": line 1 is not a rule");
  EXPECT_EQ(parse_error(path("missing.json"), [](std::string_view) {}).code(), ErrorCode::kIo);
}

TEST_F(MappedFile, ParsingAFileThatIsCutOffMeanwhileIsAnErrorOfTheFile) {
  const std::string file = write_file("cut.json", 10000);
  const auto cut = [&](bool fails) {
    return parse_error(file, [&](std::string_view) {
      std::filesystem::resize_file(file, fails ? 5000 : 8000);
      if (fails) throw Error(ErrorCode::kInvalidArgument, "the text ends too early");
    });
  };
  EXPECT_EQ(cut(false).code(), ErrorCode::kIo);
  EXPECT_EQ(cut(true).code(), ErrorCode::kIo) << "what is wrong is the file, not what it says";
}

TEST(ModelBytes, BorrowKeepsTheOwnerAlive) {
  auto owner = std::make_shared<std::vector<std::byte>>(100, std::byte{3});
  const std::weak_ptr<std::vector<std::byte>> watch = owner;
  auto bytes = ModelBytes::borrow(*owner, owner);
  const std::byte* const data = owner->data();
  owner.reset();
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(bytes->span().data(), data);
  bytes->drop_pages(data, 100);
  EXPECT_EQ(bytes->span()[99], std::byte{3});
  bytes.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(ModelBytes, CopyIsIndependentAndAligned) {
  std::vector<std::byte> source(1001, std::byte{7});
  const auto bytes = ModelBytes::copy(std::span(source).subspan(1));
  source.assign(source.size(), std::byte{0});
  ASSERT_EQ(bytes->span().size(), 1000U);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes->span().data()) % kAlignment, 0U);
  EXPECT_TRUE(std::ranges::all_of(bytes->span(), [](std::byte b) { return b == std::byte{7}; }));
  EXPECT_TRUE(ModelBytes::copy({})->span().empty());
}

}  // namespace
}  // namespace leadline
