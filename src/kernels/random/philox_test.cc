// SPDX-License-Identifier: Apache-2.0
#include "kernels/random/philox.h"

#include <gtest/gtest.h>

namespace leadline::kernels {
namespace {

using Block4 = std::array<uint32_t, 4>;
using Block2 = std::array<uint32_t, 2>;
constexpr uint32_t kOnes = 0xFFFFFFFFU;

// Known answers published with the authors' Random123 library.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0}, {0, 0, 0, 0}), (Block4{0x6627E8D5U, 0xE169C58DU, 0xBC57AC4CU, 0x9B00DBD8U}));
  EXPECT_EQ(philox4x32({kOnes, kOnes}, {kOnes, kOnes, kOnes, kOnes}),
            (Block4{0x408F276DU, 0x41C83B0EU, 0xA20BC7C6U, 0x6D5451FDU}));
}

TEST(Threefry, KnownAnswers) {
  EXPECT_EQ(threefry2x32({0, 0}, {0, 0}), (Block2{0x6B200159U, 0x99BA4EFEU}));
  EXPECT_EQ(threefry2x32({kOnes, kOnes}, {kOnes, kOnes}), (Block2{0x1CB996FCU, 0xBB002BE7U}));
}

TEST(Philox, SkippingGivesTheBlocksThatFollow) {
  Philox a(1, 2);
  Philox b = a;
  for (int i = 0; i < 5; ++i) a.next();
  b.skip(5);
  EXPECT_EQ(a.next(), b.next());
}

TEST(Philox, TheCounterCarriesIntoItsUpperHalf) {
  Philox a(1, 2);
  a.skip(~uint64_t{0});
  a.skip(1);
  EXPECT_EQ(a.next(), Philox(1, 3).next());
}

}  // namespace
}  // namespace leadline::kernels
