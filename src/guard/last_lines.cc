// SPDX-License-Identifier: Apache-2.0
#include "guard/last_lines.h"

namespace leadline::guard {
namespace {

/// What is on a terminal after carriage returns: the text behind the last one.
std::string_view after_return(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  const size_t at = line.rfind('\r');
  return at == std::string_view::npos ? line : line.substr(at + 1);
}

}  // namespace

void LastLines::add(int stream, std::string_view text) {
  std::string& open = open_[stream == 2 ? 1 : 0];
  // Nothing before the last kLines line ends can be asked for.
  size_t start = text.size();
  for (size_t count = 0; count <= kLines && start > 0; ++count) {
    const size_t at = text.rfind('\n', start - 1);
    start = at == std::string_view::npos ? 0 : at;
  }
  if (start > 0) {
    open.clear();
    text.remove_prefix(start + 1);
  }
  while (!text.empty()) {
    const size_t size = text.find('\n');
    open += text.substr(0, size);
    if (open.size() > 2 * kLineBytes) open.erase(0, open.size() - kLineBytes);
    if (size == std::string_view::npos) return;
    end_line(open);
    text.remove_prefix(size + 1);
  }
}

void LastLines::end_line(std::string& line) {
  std::string_view shown = after_return(line);
  if (shown.size() > kLineBytes) shown.remove_prefix(shown.size() - kLineBytes);
  done_.emplace_back(shown);
  if (done_.size() > kLines) done_.pop_front();
  line.clear();
}

void LastLines::clear() {
  open_ = {};
  done_.clear();
}

std::vector<std::string> LastLines::lines() const {
  LastLines copy = *this;
  for (std::string& open : copy.open_) {
    if (!open.empty()) copy.end_line(open);
  }
  return {copy.done_.begin(), copy.done_.end()};
}

}  // namespace leadline::guard
