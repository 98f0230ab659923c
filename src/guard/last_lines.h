// SPDX-License-Identifier: Apache-2.0
// The last lines of two streams in the order of their arrival, in bounded memory, however much passes through.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace leadline::guard {

class LastLines {
 public:
  static constexpr size_t kLines = 30;
  static constexpr size_t kLineBytes = 400;  // longer lines are cut at the front: the end is what was said last

  /// `stream` is 1 or 2.
  void add(int stream, std::string_view text);
  void clear();
  /// Lines begun but not ended come last.
  std::vector<std::string> lines() const;

 private:
  void end_line(std::string& line);

  std::array<std::string, 2> open_;
  std::deque<std::string> done_;
};

}  // namespace leadline::guard
