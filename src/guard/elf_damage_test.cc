// SPDX-License-Identifier: Apache-2.0
#include "guard/elf_damage.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "guard/site_testing.h"
#include "guard/untrusted_file.h"

namespace leadline::guard {
namespace {

std::string small_library() { return read_start(LEADLINE_FAKE_NVML, size_t{4} << 20).value_or(""); }

std::string damage_of(const std::string& bytes) {
  const FakeSite site;
  site.write("x.so", bytes);
  return elf_damage(site.root() + "/x.so");
}

TEST(ElfDamage, WholeFilesHaveNone) {
  EXPECT_EQ(elf_damage("/proc/self/exe"), "");
  EXPECT_EQ(elf_damage(LEADLINE_FAKE_NVML), "");
  EXPECT_EQ(damage_of("INPUT(libfoo.so.1)\n"), "");  // a linker's script
  EXPECT_EQ(elf_damage("/nowhere/x.so"), "");
}

TEST(ElfDamage, EveryCutIsSeen) {
  const std::string whole = small_library();
  ASSERT_GT(whole.size(), 1000U);
  EXPECT_EQ(damage_of(whole), "");
  EXPECT_EQ(damage_of(""), "is empty");
  for (size_t size = 4; size < whole.size(); size += 97) {
    EXPECT_NE(damage_of(whole.substr(0, size)), "") << size << " of " << whole.size();
  }
  EXPECT_NE(damage_of(whole.substr(0, whole.size() - 1)).find("it was cut off"), std::string::npos);
}

TEST(ElfDamage, ZerosAreSeen) {
  std::string bytes = small_library();
  EXPECT_NE(damage_of(std::string(bytes.size(), '\0')).find("zeros"), std::string::npos);
  std::fill(bytes.begin() + 4096, bytes.end(), '\0');  // what a disk that was full leaves
  EXPECT_NE(damage_of(bytes), "");
}

TEST(ElfDamage, DamagedHeadersEnd) {
  const std::string bytes = small_library();
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = bytes;
    for (int i = 0; i < 8; ++i)
      damaged[4 + random() % (i < 4 ? 1000 : damaged.size() - 4)] = static_cast<char>(random());
    damage_of(damaged);
  }
}

}  // namespace
}  // namespace leadline::guard
