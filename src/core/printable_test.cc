// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "leadline/types.h"

namespace leadline {
namespace {

TEST(Printable, KeepsOrdinaryTextOfAnyLanguage) {
  EXPECT_EQ(printable("block3/conv:0 \xC3\xA9 \xE6\xB7\xB1 \xF0\x9F\x9A\xA2"),
            "block3/conv:0 \xC3\xA9 \xE6\xB7\xB1 \xF0\x9F\x9A\xA2");
}

TEST(Printable, EscapesControlCharacters) {
  EXPECT_EQ(printable("a\x1b[31mb\r\n\x7f"), "a\\x1b[31mb\\x0d\\x0a\\x7f");
  EXPECT_EQ(printable(std::string_view("\0x", 2)), "\\x00x");
  EXPECT_EQ(printable("one\ntwo\x07", true), "one\ntwo\\x07");
}

TEST(Printable, EscapesC1ControlsAndDirectionMarks) {
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J"),
            "\\u009b2J");
  EXPECT_EQ(printable("a\xE2\x80\xAE"
                      "b"),
            "a\\u202eb");
}

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xC0\xAF"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(printable("\xE2\x80"), "\\xe2\\x80");           // cut off
  EXPECT_EQ(printable("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

}  // namespace
}  // namespace leadline
