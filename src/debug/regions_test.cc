// SPDX-License-Identifier: Apache-2.0
#include "debug/regions.h"

#include <gtest/gtest.h>

namespace leadline::debug {
namespace {

std::vector<RegionNode> nodes(const std::vector<std::string>& names) {
  std::vector<RegionNode> all;
  for (size_t i = 0; i < names.size(); ++i) all.push_back({static_cast<int>(i), names[i]});
  return all;
}

TEST(Regions, FollowTheScopesOfNames) {
  const auto all =
      nodes({"net/front/log", "net/front/dct;net/front/dct/bias", "net/block/a", "net/block/b", "net/head"});
  const auto parts = split(whole_network(all), all);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].name, "net/front");
  EXPECT_EQ(parts[0].nodes, (std::vector<int>{0, 1}));
  EXPECT_EQ(parts[2].name, "net/head");
  EXPECT_EQ(patterns_of(parts[0], all), std::vector<std::string>{"^net/front(/|;|$)"});
  const auto inner = split(parts[0], all);
  ASSERT_EQ(inner.size(), 2U);
  EXPECT_EQ(patterns_of(inner[1], all), std::vector<std::string>{"^net/front/dct;net/front/dct/bias$"});
  EXPECT_TRUE(split(inner[1], all).empty());
}

TEST(Regions, NamesWithoutScopesAreCutIntoStretches) {
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) names.push_back("n" + std::to_string(i) + ".x");
  const auto all = nodes(names);
  const auto parts = split(whole_network(all), all);
  ASSERT_EQ(parts.size(), kMostParts);
  size_t sum = 0;
  for (const Region& part : parts) sum += part.nodes.size();
  EXPECT_EQ(sum, all.size());
  EXPECT_EQ(parts[0].name, "n0.x ... n1.x");
  EXPECT_EQ(patterns_of(parts[0], all), (std::vector<std::string>{"^n0\\.x$", "^n1\\.x$"}));
  const auto same = nodes({"a", "a"});
  EXPECT_EQ(split(whole_network(same), same).size(), 2U) << "equal names are told apart by their place";
}

TEST(Regions, EqualBlocksHaveEqualParts) {
  const auto all = nodes({"net/layer/mask", "net/layer/out", "net/layer_1/mask", "net/layer_1/out", "net/conv2_x/relu",
                          "net/layer_12/mask;net/other", "net/mask"});
  const auto alike = alike_names(all);
  EXPECT_EQ(alike[2].name, "net/layer/mask");
  EXPECT_EQ(alike[4].name, "net/conv#_x/relu");
  auto parts = split(whole_network(alike), alike);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].name, "net/layer");
  parts = split(parts[0], alike);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].nodes, (std::vector<int>{0, 2, 5}));
  parts[0].alike = true;
  EXPECT_EQ(patterns_of(parts[0], all),
            std::vector<std::string>{"^net([_.]?[0-9]+)?/layer([_.]?[0-9]+)?/mask([_.]?[0-9]+)?(/|;|$)"});
}

}  // namespace
}  // namespace leadline::debug
