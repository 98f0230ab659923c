// SPDX-License-Identifier: Apache-2.0
#include "guard/pep508.h"

#include <gtest/gtest.h>

#include <string>

namespace leadline::guard {
namespace {

const MarkerValues kValues{{"python_version", "3.11"},
                           {"python_full_version", "3.11.7"},
                           {"sys_platform", "linux"},
                           {"platform_machine", "x86_64"},
                           {"extra", ""}};

TEST(Requirement, ReadsTheFormsOfMetadata) {
  const auto old = Requirement::parse("numpy (<2.0.0,>=1.23.5) ; python_version <= \"3.11\"");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->name, "numpy");
  EXPECT_EQ(old->range, "<2.0.0,>=1.23.5");
  EXPECT_FALSE(old->specifiers.allows(*Version::parse("2.0.0")));
  const auto extras = Requirement::parse("Jax[cuda12]>=0.4");
  ASSERT_TRUE(extras);
  EXPECT_EQ(extras->name, "jax");
  EXPECT_TRUE(extras->specifiers.allows(*Version::parse("0.5")));
  EXPECT_TRUE(Requirement::parse("packaging")->specifiers.empty());
}

TEST(Requirement, RefusesWhatIsNone) {
  for (const char* line : {"", "; extra == 'x'", "name @ https://example.org/x.whl", "name[extra", "name >= banana"}) {
    EXPECT_FALSE(Requirement::parse(line).has_value()) << line;
  }
  EXPECT_FALSE(Requirement::parse(std::string(100000, 'a')).has_value());
}

TEST(Marker, IsEvaluated) {
  for (const char* marker :
       {"", "python_version >= '3.9'", "python_version < \"3.12\" and sys_platform == 'linux'",
        "'3.8' <= python_version",
        "(sys_platform == 'win32' or platform_machine == 'x86_64') and python_version != '3.10'",
        "platform_machine in 'x86_64 aarch64'", "platform_machine not in 'arm64'", "python_full_version >= '3.11.7'"}) {
    EXPECT_TRUE(marker_holds(marker, kValues)) << marker;
  }
  for (const char* marker : {"extra == 'and-cuda'", "python_version < '3.9'", "python_version > '3.11'",
                             "sys_platform == 'win32'", "sys_platform != 'linux' or extra == 'x'"}) {
    EXPECT_FALSE(marker_holds(marker, kValues)) << marker;
  }
  // Numbers compare as versions: 3.9 is older than 3.11.
  EXPECT_TRUE(marker_holds("python_version > '3.9'", kValues));
}

TEST(Marker, ThatCannotBeReadIsFalse) {
  for (const char* marker : {"python_version", "python_version >=", "and", "(python_version >= '3'",
                             "python_version >= '3", "a b c", "python_version >= '3' extra"}) {
    EXPECT_FALSE(marker_holds(marker, kValues)) << marker;
  }
  EXPECT_FALSE(marker_holds(std::string(100000, '(') + "python_version >= '3'", kValues));
}

}  // namespace
}  // namespace leadline::guard
