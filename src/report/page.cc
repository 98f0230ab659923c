// SPDX-License-Identifier: Apache-2.0
#include "report/page.h"

#include <fmt/core.h>

#include <iterator>

#include "core/cancel.h"
#include "leadline/types.h"
#include "report/assets.h"
#include "report/print.h"

namespace leadline::report {

std::string escape_html(std::string_view text) {
  std::string result;
  PacedCheck check;
  for (const char c : printable(text)) {
    check.count(1);
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

std::string escape_lines(std::string_view text) {
  std::string result;
  while (true) {
    const size_t end = text.find('\n');
    result += escape_html(text.substr(0, end));
    if (end == std::string_view::npos) return result;
    result += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string escape_script(std::string_view json) {
  std::string result;
  result.reserve(json.size());
  PacedCheck check;
  for (const char c : json) {
    check.count(1);
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
      escape_html(page.title), assets::page_css, page.style, page.body, page.data_id, escape_script(page.data),
      assets::page_js, page.script);
}

std::string make_frame(std::string_view title, std::string_view sentence, std::string_view page) {
  // In the sandbox the frame has an origin of its own: its script sees nothing of the notebook, and several frames
  // nothing of each other.
  return fmt::format(
      "<div><p style=\"font-size:85%;opacity:.8\">{}</p><iframe title=\"{}\" "
      "sandbox=\"allow-scripts\" allow=\"clipboard-write\" "
      "style=\"width:100%;height:720px;border:1px solid rgba(128,128,128,.35);border-radius:8px;resize:vertical;"
      "overflow:auto\" srcdoc=\"{}\"></iframe></div>",
      escape_html(sentence), escape_html(title), escape_lines(page));
}

void add_card(std::string& page, std::string_view label, std::string_view value, std::string_view detail) {
  print(page, "<div class=card><span>{}</span><b>{}</b><small>{}</small></div>\n", label, value, detail);
}

}  // namespace leadline::report
