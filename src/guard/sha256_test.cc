// SPDX-License-Identifier: Apache-2.0
#include "guard/sha256.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>

#include "guard/site_testing.h"

namespace leadline::guard {
namespace {

std::string hex(const std::string& text, size_t piece) {
  Sha256 hash;
  for (size_t at = 0; at < text.size(); at += piece) hash.add(text.data() + at, std::min(piece, text.size() - at));
  std::string result;
  for (const uint8_t byte : hash.finish()) result += fmt::format("{:02x}", byte);
  return result;
}

// The examples of FIPS 180-4.
TEST(Sha256, IsThatOfTheStandard) {
  EXPECT_EQ(hex("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
  const std::string million(1'000'000, 'a');
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{64}, size_t{1000}}) {
    EXPECT_EQ(hex(two_blocks, piece), "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(hex(million, piece), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  }
}

TEST(Sha256, FilesHaveTheFormOfRecords) {
  const FakeSite site;
  site.write("file", "abc");
  EXPECT_EQ(record_hash(site.root() + "/file"), "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
  EXPECT_FALSE(record_hash(site.root() + "/absent"));
}

}  // namespace
}  // namespace leadline::guard
