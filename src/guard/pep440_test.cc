// SPDX-License-Identifier: Apache-2.0
#include "guard/pep440.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leadline::guard {
namespace {

bool allows(const char* range, const char* version) {
  const auto specifiers = Specifiers::parse(range);
  const auto parsed = Version::parse(version);
  EXPECT_TRUE(specifiers.has_value()) << range;
  EXPECT_TRUE(parsed.has_value()) << version;
  return specifiers && parsed && specifiers->allows(*parsed);
}

TEST(Version, OrdersReleasesAsPep440Does) {
  const std::vector<const char*> ordered{"1.0.dev1", "1.0a1.dev2", "1.0a1",       "1.0b2",          "1.0rc1",
                                         "1.0",      "1.0+local",  "1.0+local.2", "1.0.post1.dev3", "1.0.post1",
                                         "1.1",      "1.10",       "2!0.1"};
  for (size_t i = 0; i < ordered.size(); ++i) {
    for (size_t j = 0; j < ordered.size(); ++j) {
      const int expected = i < j ? -1 : i > j ? 1 : 0;
      EXPECT_EQ(Version::parse(ordered[i])->compare(*Version::parse(ordered[j])), expected)
          << ordered[i] << " " << ordered[j];
    }
  }
}

TEST(Version, ReadsSpellingsThatPep440Tolerates) {
  EXPECT_EQ(*Version::parse("v1.0-Beta_2"), *Version::parse("1.0b2"));
  EXPECT_EQ(*Version::parse("1.0-1"), *Version::parse("1.0.post1"));
  EXPECT_EQ(*Version::parse(" 1.0.0 "), *Version::parse("1"));
  EXPECT_EQ(*Version::parse("1.0preview1"), *Version::parse("1.0rc1"));
}

TEST(Version, RefusesWhatIsNone) {
  for (const char* text :
       {"", "abc", "1.", "1..2", "1.0foo", "-1", "99999999999999999999", "1.0+", "1.0+a;rm -rf", "1.0 2.0"}) {
    EXPECT_FALSE(Version::parse(text).has_value()) << text;
  }
  EXPECT_FALSE(Version::parse(std::string(100000, '1')).has_value());
  std::string many = "1";
  for (int i = 0; i < 150; ++i) many += ".1";
  EXPECT_FALSE(Version::parse(many).has_value());
}

TEST(Specifiers, HoldOrNot) {
  EXPECT_TRUE(allows(">=1.26.0,<2.1.0", "2.0.2"));
  EXPECT_FALSE(allows(">=1.26.0,<2.1.0", "2.1"));
  EXPECT_FALSE(allows("<2.0", "2.0rc1"));
  EXPECT_TRUE(allows("<2.0rc2", "2.0rc1"));
  EXPECT_TRUE(allows("~=0.3.1", "0.3.9"));
  EXPECT_FALSE(allows("~=0.3.1", "0.4.0"));
  EXPECT_TRUE(allows("==2.15.*", "2.15.1"));
  EXPECT_FALSE(allows("!=2.15.*", "2.15.1"));
  EXPECT_TRUE(allows("==2.15", "2.15.0+cu118"));
  EXPECT_FALSE(allows(">1.0", "1.0.post1"));
  EXPECT_TRUE(allows("!=4.21.0,!=4.21.1,<5.0.0dev,>=3.20.3", "4.25.3"));
  EXPECT_FALSE(allows("!=4.21.0,!=4.21.1,<5.0.0dev,>=3.20.3", "4.21.1"));
  EXPECT_TRUE(allows("", "1.0"));
  EXPECT_TRUE(allows("(>=2.0)", "2.0"));
}

TEST(Specifiers, RefuseWhatIsNone) {
  for (const char* text : {"2.0", "=>2.0", ">=", "~=1", "===x'; rm", ">=1.0 or"}) {
    EXPECT_FALSE(Specifiers::parse(text).has_value()) << text;
  }
  std::string many;
  for (int i = 0; i < 1000; ++i) many += ">=1,";
  EXPECT_FALSE(Specifiers::parse(many).has_value());
}

TEST(PackageNames, CompareInOneForm) {
  EXPECT_EQ(normalized_name("ML_Dtypes"), "ml-dtypes");
  EXPECT_EQ(normalized_name("a.-_b"), "a-b");
  EXPECT_TRUE(is_package_name("tf_keras"));
  EXPECT_FALSE(is_package_name("x; rm -rf ~"));
}

}  // namespace
}  // namespace leadline::guard
