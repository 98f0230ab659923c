// SPDX-License-Identifier: Apache-2.0
#include "kernels/hash/fingerprint.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace leadline::kernels {
namespace {

uint64_t hash(const std::string& text) { return fingerprint64(std::as_bytes(std::span(text))); }

TEST(Fingerprint, PublishedValues) {
  EXPECT_EQ(hash(""), 0x9AE16A3B2F90404FULL);
  // The buckets that TensorFlow documents for to_hash_bucket_fast with three of them.
  EXPECT_EQ(hash("Hello") % 3, 0U);
  EXPECT_EQ(hash("TensorFlow") % 3, 2U);
  EXPECT_EQ(hash("2.x") % 3, 2U);
}

TEST(Fingerprint, EveryLengthAndByteCounts) {
  std::set<uint64_t> seen;
  size_t count = 0;
  for (size_t size = 1; size <= 200; ++size) {
    std::string text(size, 'x');
    for (size_t at = 0; at < size; ++at, ++count) {
      text[at] = 'y';
      seen.insert(hash(text));
      text[at] = 'x';
    }
  }
  EXPECT_EQ(seen.size(), count);
}

}  // namespace
}  // namespace leadline::kernels
