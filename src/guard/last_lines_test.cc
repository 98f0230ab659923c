// SPDX-License-Identifier: Apache-2.0
#include "guard/last_lines.h"

#include <gtest/gtest.h>

namespace leadline::guard {
namespace {

using Lines = std::vector<std::string>;

TEST(LastLines, LinesOfBothStreamsKeepTheirOrder) {
  LastLines lines;
  lines.add(1, "one\ntw");
  lines.add(2, "error\n");
  lines.add(1, "o\nopen");
  EXPECT_EQ(lines.lines(), (Lines{"one", "error", "two", "open"}));
}

TEST(LastLines, KeepsTheLastOfManyInOneChunkOrMany) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + "\n";
  LastLines at_once;
  at_once.add(1, "begun ");
  at_once.add(1, text);
  LastLines in_pieces;
  for (size_t at = 0; at < text.size(); at += 7) in_pieces.add(1, std::string_view(text).substr(at, 7));
  EXPECT_EQ(at_once.lines(), in_pieces.lines());
  ASSERT_EQ(at_once.lines().size(), LastLines::kLines);
  EXPECT_EQ(at_once.lines().back(), "999");
  EXPECT_EQ(at_once.lines().front(), "970");
}

TEST(LastLines, AnEndlessLineIsCutAtTheFront) {
  LastLines lines;
  for (int i = 0; i < 1000; ++i) lines.add(2, std::string(1000, 'x'));
  lines.add(2, "end");
  ASSERT_EQ(lines.lines().size(), 1U);
  EXPECT_EQ(lines.lines()[0].size(), LastLines::kLineBytes);
  EXPECT_TRUE(lines.lines()[0].ends_with("xend"));
}

TEST(LastLines, AProgressBarIsItsLastState) {
  LastLines lines;
  lines.add(2, "10 %\r20 %\r30 %\r\nnext\r");
  EXPECT_EQ(lines.lines(), (Lines{"30 %", "next"}));
}

TEST(LastLines, ClearForgets) {
  LastLines lines;
  lines.add(1, "a\nb");
  lines.clear();
  EXPECT_TRUE(lines.lines().empty());
}

}  // namespace
}  // namespace leadline::guard
