// SPDX-License-Identifier: Apache-2.0
#include "report/page.h"

#include <gtest/gtest.h>

#include <string>

namespace leadline::report {
namespace {

TEST(Page, TextCannotBecomeMarkup) {
  EXPECT_EQ(escape_html("<b title=\"x\" id='y'>&\x1b"), "&lt;b title=&quot;x&quot; id=&#39;y&#39;&gt;&amp;\\x1b");
}

TEST(Page, LinesStayLines) { EXPECT_EQ(escape_lines("<a>\n\x1b\n"), "&lt;a&gt;\n\\x1b\n"); }

TEST(Page, FrameIsClosedToItsSurroundings) {
  const std::string cell = make_frame("<t>", "<s> & \"q\"", "<p title=\"x\">\n</p><script>f()</script>");
  EXPECT_NE(cell.find("title=\"&lt;t&gt;\""), std::string::npos);
  EXPECT_NE(cell.find("<p style=\"font-size:85%;opacity:.8\">&lt;s&gt; &amp; &quot;q&quot;</p>"), std::string::npos);
  EXPECT_NE(cell.find("srcdoc=\"&lt;p title=&quot;x&quot;&gt;\n&lt;/p&gt;"), std::string::npos);
  EXPECT_EQ(cell.find("<script"), std::string::npos);
  EXPECT_EQ(cell.find("allow-same-origin"), std::string::npos);
}

TEST(Page, JsonCannotEndItsElement) {
  EXPECT_EQ(escape_script(R"(["</script>","<!--","&amp;"])"), R"(["\u003c/script\u003e","\u003c!--","\u0026amp;"])");
}

TEST(Page, HasAllPartsAndAPolicyAgainstConnections) {
  const std::string page = make_page({"<t>", "p{x:1}", "<p>body</p>", "numbers", "[1]", "f();"});
  for (const char* part : {"<title>&lt;t&gt;</title>", "p{x:1}</style>", "<p>body</p>",
                           "<script type=\"application/json\" id=numbers>[1]</script>", "f();})();",
                           "default-src 'none'", "prefers-color-scheme: dark"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
  for (const char* loading : {" src=", "href=", "url(", "@import"}) EXPECT_EQ(page.find(loading), std::string::npos);
}

}  // namespace
}  // namespace leadline::report
