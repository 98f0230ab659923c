// SPDX-License-Identifier: Apache-2.0
#include "quantize/pattern.h"

#include <gtest/gtest.h>

#include <string>

#include "leadline/error.h"

namespace leadline::quantize {
namespace {

bool found(const char* pattern, std::string_view text) { return Pattern(pattern).search(text); }

TEST(Pattern, SearchesAnywhereUnlessAnchored) {
  EXPECT_TRUE(found("conv", "block1/conv2d/BiasAdd"));
  EXPECT_FALSE(found("^conv", "block1/conv2d"));
  EXPECT_TRUE(found("^block1/.*Add$", "block1/conv2d/BiasAdd"));
  EXPECT_FALSE(found("Bias$", "block1/conv2d/BiasAdd"));
  EXPECT_TRUE(found("", "anything"));
  EXPECT_TRUE(found(".*", ""));
  EXPECT_FALSE(found(".+", ""));
}

TEST(Pattern, KnowsWhatNamesNeed) {
  EXPECT_TRUE(found("block(1|22)/", "a/block22/x"));
  EXPECT_FALSE(found("block(?:1|22)/", "a/block2/x"));
  EXPECT_TRUE(found("[^a-z/]+[0-9_-]", "abc/X-"));
  EXPECT_TRUE(found("a{2,3}b", "xaaab"));
  EXPECT_FALSE(found("^a{2,3}b", "aaaab"));
  EXPECT_TRUE(found("^a{2}$", "aa"));
  EXPECT_TRUE(found("^a{2,}?$", "aaaaa"));
  EXPECT_TRUE(found("x{y}", "x{y}"));  // no count: literal braces
  EXPECT_TRUE(found("\\bconv\\d+\\b", "the conv12 layer"));
  EXPECT_FALSE(found("\\bconv\\b", "conv12"));
  EXPECT_TRUE(found("a\\.b\\[1\\]", "a.b[1]"));
  EXPECT_TRUE(found("[]]", "]"));
  EXPECT_TRUE(found("[a-]", "-"));
  EXPECT_TRUE(found("\\W\\S\\D", ";;;"));
  EXPECT_TRUE(found("caf\xC3\xA9", "un caf\xC3\xA9"));
}

TEST(Pattern, HostilePatternsAreFastAndFlat) {
  const std::string text(20000, 'a');
  EXPECT_FALSE(found("(a+)+$b", text));
  EXPECT_FALSE(found("(a*)*(a*)*(a|aa)*b", text));
  EXPECT_TRUE(found("(.*)(.*)(.*)a$", text));
  EXPECT_TRUE(found("((((){1000}){1000}){1000}){1000}", text));
  EXPECT_FALSE(found("((((a|b)?)*)+)*c", text));
}

TEST(Pattern, RefusesWhatItDoesNotKnowAndSaysWhere) {
  for (const char* bad : {"(", ")", "a(b", "[a", "*a", "+", "a\\", "(?=x)", "(?!x)", "(?P<n>x)", "\\1", "[z-a]",
                          "a{3,2}", "a{1001}", "(a{1000}){1000}"}) {
    EXPECT_THROW(Pattern{bad}, Error) << bad;
  }
  EXPECT_THROW(Pattern(std::string(5000, 'a')), Error);
  EXPECT_THROW(Pattern(std::string(200, '(') + std::string(200, ')')), Error);
  try {
    const Pattern wrong("conv(");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("'conv('"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("character 6"), std::string::npos);
  }
}

}  // namespace
}  // namespace leadline::quantize
