// SPDX-License-Identifier: Apache-2.0
#include "guard/elf_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>

#include "guard/site_testing.h"
#include "guard/untrusted_file.h"

namespace leadline::guard {
namespace {

// A whole shared library, and a small one.
std::string small_library() { return read_start(LEADLINE_FAKE_NVML, size_t{4} << 20).value_or(""); }

TEST(ElfFile, TellsMachineLibrariesAndVersions) {
  const auto elf = read_elf("/proc/self/exe");
  ASSERT_TRUE(elf);
#ifdef __x86_64__
  EXPECT_EQ(elf->machine, "x86_64");
#endif
  EXPECT_TRUE(std::any_of(elf->needed.begin(), elf->needed.end(),
                          [](const auto& name) { return name.starts_with("libc.so"); }));
  const auto glibc = highest(elf->needs, "GLIBC_");
  ASSERT_TRUE(glibc);
  EXPECT_EQ(glibc->release(0), 2);
  EXPECT_TRUE(highest(elf->needs, "GLIBCXX_"));
  EXPECT_FALSE(highest(elf->needs, "NO_SUCH_"));
}

TEST(ElfFile, OtherFilesAreNone) {
  const FakeSite site;
  site.write("text", "hello");
  site.write("empty", "");
  site.write("magic",
             "\x7f"
             "ELF");
  for (const char* name : {"text", "empty", "magic", "absent", "lib"})
    EXPECT_FALSE(read_elf(site.root() + "/" + name)) << name;
  EXPECT_FALSE(read_elf("/dev/zero"));
}

TEST(ElfFile, APipeIsNotWaitedFor) {
  const FakeSite site;
  ASSERT_EQ(mkfifo((site.root() + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(read_elf(site.root() + "/pipe"));
  EXPECT_FALSE(read_start(site.root() + "/pipe", 100));
}

TEST(ElfFile, CutFilesAreNoneOrEmpty) {
  const FakeSite site;
  const std::string whole = small_library();
  for (size_t size = 0; size < 4096; size += 13) {
    site.write("cut.so", std::string_view(whole).substr(0, size));
    const auto elf = read_elf(site.root() + "/cut.so");
    EXPECT_TRUE(!elf || elf->needed.empty()) << size;
  }
}

TEST(ElfFile, DamagedHeadersEnd) {
  const FakeSite site;
  const std::string bytes = small_library();
  ASSERT_FALSE(bytes.empty());
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = bytes;
    for (int i = 0; i < 8; ++i) damaged[random() % (i < 4 ? 1024 : damaged.size())] = static_cast<char>(random());
    site.write("damaged.so", damaged);
    read_elf(site.root() + "/damaged.so");
  }
}

TEST(UntrustedFile, FindsTextAcrossPieces) {
  const FakeSite site;
  std::string text((size_t{1} << 20) - 5, 'x');
  text += "numpy._core and the rest";
  site.write("big.so", text);
  const std::string path = site.root() + "/big.so";
  EXPECT_EQ(find_in_file(path, {"numpy._core", "absent"}, UINT64_MAX), (std::vector<bool>{true, false}));
  EXPECT_EQ(find_in_file(path, {"numpy._core"}, 1000), (std::vector<bool>{false}));
}

TEST(UntrustedFile, LoopsOfLinksAreNothing) {
  const FakeSite site;
  std::filesystem::create_symlink(site.root() + "/b", site.root() + "/a");
  std::filesystem::create_symlink(site.root() + "/a", site.root() + "/b");
  EXPECT_FALSE(read_start(site.root() + "/a", 10));
  EXPECT_FALSE(resolved(site.root() + "/a"));
  EXPECT_FALSE(is_folder(site.root() + "/a"));
  EXPECT_TRUE(list_folder(site.root() + "/a").empty());
}

}  // namespace
}  // namespace leadline::guard
