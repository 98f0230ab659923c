// SPDX-License-Identifier: Apache-2.0
#include "base/page.h"

#include <fmt/format.h>

#include <iterator>

#include "base/page_parts.h"
#include "leadline/types.h"

namespace leadline {

std::string escape_html(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string escape_script(std::string_view json) {
  std::string result;
  result.reserve(json.size());
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      fmt::format_to(std::back_inserter(result), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result;
}

std::string make_page(const Page& page) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n"
      "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n"
      "<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n<main>\n{}"
      "<div id=tip hidden></div>\n</main>\n<script type=\"application/json\" id={}>{}</script>\n"
      "<script>\n(() => {{\n\"use strict\";{}{}}})();\n</script>\n</body>\n</html>\n",
      escape_html(page.title), kPageLook, page.style, page.body, page.data_id, escape_script(page.data), kPageTools,
      page.script);
}

}  // namespace leadline
