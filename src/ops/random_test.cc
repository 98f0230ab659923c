// SPDX-License-Identifier: Apache-2.0
#include "ops/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

using Floats = std::vector<float>;

RandomAttributes seeds(int64_t seed, int64_t seed2) {
  RandomAttributes a;
  a.seed = seed;
  a.seed2 = seed2;
  return a;
}

OpTester random(const std::string& op, int32_t count, int64_t seed, int64_t seed2) {
  OpTester t(op);
  t.attributes(seeds(seed, seed2)).input<int32_t>({1}, {count}, {}, false).output(DType::kFloat32);
  t.run();
  return t;
}

// The numbers of seeded ops are TFLite's.
TEST(RandomUniform, SeedsFixTheNumbersAndRunsGoOn) {
  OpTester t = random("RANDOM_UNIFORM", 5, 1234, 5678);
  EXPECT_EQ(t.result<float>(0),
            (Floats{0x1.55264cp-1F, 0x1.ef584cp-1F, 0x1.c765acp-1F, 0x1.82b44p-4F, 0x1.283f58p-2F}));
  t.run();
  EXPECT_EQ(t.result<float>(0), (Floats{0x1.cbbb08p-2F, 0x1.6b394p-5F, 0x1.4e56cp-2F, 0x1.fa6794p-1F, 0x1.ea44d8p-2F}));
}

TEST(RandomStandardNormal, SeedsFixTheNumbersAndRunsGoOn) {
  OpTester t = random("RANDOM_STANDARD_NORMAL", 5, 1234, 5678);
  const Floats first = {-0.18289813F, 0.88235784F, 0.27059385F, 0.40135822F, 1.5379809F};
  const Floats second = {0.34803039F, 1.2167733F, -0.1026575F, 1.4926803F, 1.1548437F};
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(t.result<float>(0)[i], first[i], 1e-6F);
  t.run();
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(t.result<float>(0)[i], second[i], 1e-6F);
}

TEST(RandomUniform, WithoutSeedsTheNumbersDiffer) {
  EXPECT_NE(random("RANDOM_UNIFORM", 8, 0, 0).result<float>(0), random("RANDOM_UNIFORM", 8, 0, 0).result<float>(0));
}

TEST(RandomUniform, EmptyAndRefusedShapes) {
  EXPECT_EQ(random("RANDOM_UNIFORM", 0, 1, 2).shape(0), (Shape{0}));
  EXPECT_THROW(random("RANDOM_UNIFORM", -1, 1, 2), Error);
}

OpTester multinomial(const Shape& shape, const Floats& logits, int32_t samples) {
  OpTester t("MULTINOMIAL");
  t.attributes(seeds(12, 34)).input<float>(shape, logits, {}, false).input<int32_t>({}, {samples});
  t.output(DType::kInt32);
  t.run();
  return t;
}

TEST(Multinomial, SeedsFixTheClassesAndRunsGoOn) {
  OpTester t = multinomial({2, 3}, {0, 1, 0.5F, -1, -1, 2}, 6);
  EXPECT_EQ(t.shape(0), (Shape{2, 6}));
  EXPECT_EQ(t.result<int32_t>(0), (std::vector<int32_t>{0, 1, 1, 1, 2, 1, 2, 2, 2, 2, 2, 2}));
  t.run();
  EXPECT_EQ(t.result<int32_t>(0), (std::vector<int32_t>{0, 2, 2, 1, 2, 1, 2, 2, 2, 2, 2, 2}));
}

TEST(Multinomial, FollowsTheOdds) {
  const std::vector<int32_t> drawn = multinomial({1, 2}, {0, std::log(3.0F)}, 10000).result<int32_t>(0);
  EXPECT_NEAR(static_cast<double>(std::count(drawn.begin(), drawn.end(), 1)), 7500, 150);
}

TEST(Multinomial, RefusesNoClassesAndNegativeCounts) {
  EXPECT_THROW(multinomial({2, 0}, {}, 1), Error);
  EXPECT_THROW(multinomial({1, 1}, {0}, -1), Error);
  EXPECT_EQ(multinomial({0, 3}, {}, 2).shape(0), (Shape{0, 2}));
}

OpTester random_bits(RngAlgorithm algorithm, const std::vector<uint64_t>& state) {
  RngBitGeneratorAttributes a;
  a.algorithm = algorithm;
  OpTester t("STABLEHLO_RNG_BIT_GENERATOR");
  t.attributes(a).input<uint64_t>({static_cast<int64_t>(state.size())}, state);
  t.output(DType::kUInt64).output(DType::kUInt32, {}, {5});
  t.run();
  return t;
}

TEST(RngBitGenerator, BitsAndStateAreTflites) {
  const OpTester philox = random_bits(RngAlgorithm::kPhilox, {7, 0xFFFFFFFFU});
  EXPECT_EQ(philox.result<uint64_t>(0), (std::vector<uint64_t>{7, 0x100000001ULL}));
  EXPECT_EQ(philox.result<uint32_t>(1),
            (std::vector<uint32_t>{1536349061U, 1642884772U, 2234308322U, 3072099965U, 1407807463U}));
  const OpTester threefry = random_bits(RngAlgorithm::kThreefry, {7, 0xFFFFFFFFU});
  EXPECT_EQ(threefry.result<uint64_t>(0), (std::vector<uint64_t>{7, 0x100000002ULL}));
  EXPECT_EQ(threefry.result<uint32_t>(1),
            (std::vector<uint32_t>{3471380051U, 2754705569U, 984047233U, 2109584972U, 3970367506U}));
}

TEST(RngBitGenerator, RefusesOtherStates) {
  EXPECT_THROW(random_bits(RngAlgorithm::kPhilox, {7}), Error);
  EXPECT_THROW(random_bits(RngAlgorithm::kThreefry, {7, 8, 9}), Error);
}

}  // namespace
}  // namespace leadline::ops
