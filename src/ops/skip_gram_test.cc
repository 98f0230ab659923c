// SPDX-License-Identifier: Apache-2.0
#include "ops/skip_gram.h"

#include <gtest/gtest.h>

#include "ops/string_testing.h"

namespace leadline::ops {
namespace {

using Texts = std::vector<std::string>;

Texts grams(int32_t size, int32_t skip, bool all, const std::string& text) {
  SkipGramAttributes a;
  a.ngram_size = size;
  a.max_skip_size = skip;
  a.include_all_ngrams = all;
  OpTester t("SKIP_GRAM");
  t.attributes(a);
  string_input(t, {1}, {text}).output(DType::kString);
  t.run();
  return string_result(t, 0);
}

TEST(SkipGram, NeighboursOnly) {
  EXPECT_EQ(grams(2, 0, false, "a b c d"), (Texts{"a b", "b c", "c d"}));
  EXPECT_EQ(grams(1, 0, false, "a b"), (Texts{"a", "b"}));
}

TEST(SkipGram, LeavesWordsOut) {
  EXPECT_EQ(grams(2, 1, false, "a b c d"), (Texts{"a b", "a c", "b c", "b d", "c d"}));
  EXPECT_EQ(grams(3, 1, false, "a b c d"), (Texts{"a b c", "a b d", "a c d", "b c d"}));
}

TEST(SkipGram, ShorterOnesToo) { EXPECT_EQ(grams(2, 1, true, "a b c"), (Texts{"a b", "a c", "a", "b c", "b", "c"})); }

TEST(SkipGram, SplitsAtWhiteSpace) {
  EXPECT_EQ(grams(1, 0, false, "one\t two\n three "), (Texts{"one", "two", "three"}));
  EXPECT_EQ(grams(1, 0, false, " lost kept"), (Texts{"kept"}));
}

TEST(SkipGram, TooFewWordsOrNoSizeGiveNothing) {
  EXPECT_EQ(grams(3, 5, true, "a b"), Texts());
  EXPECT_EQ(grams(0, 0, true, "a b"), Texts());
  EXPECT_EQ(grams(-4, 0, true, "a b"), Texts());
  EXPECT_EQ(grams(2, -1, true, "a b"), (Texts{"a", "b"}));
  EXPECT_EQ(grams(1, 0, true, ""), Texts());
}

TEST(SkipGram, RefusesMoreThanAStringTensorHolds) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "some-quite-long-word-to-reach-the-limit-soon ";
  EXPECT_THROW(grams(30, 1 << 30, false, text), Error);
}

}  // namespace
}  // namespace leadline::ops
