// SPDX-License-Identifier: Apache-2.0
#include "guard/elf_symbols.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

namespace leadline::guard {
namespace {

/// The C library, and the place of its getenv() in the file.
struct Known {
  std::string path;
  uint64_t offset = 0;
};

Known known_function() {
  Dl_info info{};
  void* const address = dlsym(RTLD_DEFAULT, "getenv");
  EXPECT_NE(dladdr(address, &info), 0);
  // The first part of a library is mapped from its start, and the others keep their distance in all libraries of today.
  return {info.dli_fname, static_cast<uint64_t>(static_cast<char*>(address) - static_cast<char*>(info.dli_fbase)) + 2};
}

TEST(ElfSymbols, NamesAFunctionOfTheCLibrary) {
  const Known known = known_function();
  const std::vector<std::string> names = function_names(known.path, {known.offset, ~uint64_t{0}, 0});
  EXPECT_NE(names[0].find("getenv"), std::string::npos) << names[0];
  EXPECT_EQ(names[1], "");
}

TEST(ElfSymbols, DamagedFilesHaveNoNames) {
  EXPECT_EQ(function_names("/nowhere", {5}).front(), "");
  EXPECT_EQ(function_names("/dev/zero", {5}).front(), "");
  const Known known = known_function();
  std::ifstream source(known.path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(source), std::istreambuf_iterator<char>()};
  const std::string path = std::filesystem::temp_directory_path() / ("leadline-elf-" + std::to_string(getpid()));
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    std::string spoiled = bytes;
    // Headers at both ends are what is followed.
    for (int i = 0; i < 12; ++i) spoiled[random() % 1000] = static_cast<char>(random());
    for (int i = 0; i < 40; ++i) spoiled[spoiled.size() - 1 - random() % 4000] = static_cast<char>(random());
    spoiled.replace(0, 5, bytes, 0, 5);
    if (round % 3 == 0) spoiled.resize(random() % spoiled.size());
    std::ofstream(path, std::ios::binary) << spoiled;
    EXPECT_EQ(function_names(path, {known.offset, 1, uint64_t{1} << 63}).size(), 3U);
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace leadline::guard
