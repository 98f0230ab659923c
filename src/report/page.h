// SPDX-License-Identifier: Apache-2.0
// Self-contained HTML pages: one file that loads nothing, whose content policy forbids any connection, and that text
// from a model cannot break out of.
#pragma once

#include <string>
#include <string_view>

namespace leadline::report {

/// Text for an element or a quoted attribute; control characters are made visible.
std::string escape_html(std::string_view text);

/// The same for text of several lines, which stay lines.
std::string escape_lines(std::string_view text);

/// JSON that can stand inside a script element: no character of it can end the element or open a comment.
std::string escape_script(std::string_view json);

/// A figure with a word above and a remark below it, all of it markup.
void add_card(std::string& page, std::string_view label, std::string_view value, std::string_view detail);

struct Page {
  std::string_view title;    ///< plain text
  std::string_view style;    ///< added to the look of all pages
  std::string_view body;     ///< markup, its texts escaped
  std::string_view data_id;  ///< of the element that holds the data
  std::string_view data;     ///< JSON
  std::string_view script;   ///< runs after the tools of assets/page.js, in a function of its own
};
std::string make_page(const Page& page);

/// For the output of a notebook's cell: a sentence, and a page in a frame that can reach nothing around it. A notebook
/// that is not trusted drops frames; the sentence remains.
std::string make_frame(std::string_view title, std::string_view sentence, std::string_view page);

}  // namespace leadline::report
