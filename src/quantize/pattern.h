// SPDX-License-Identifier: Apache-2.0
// Regular expressions for names, in time proportional to pattern times text: nothing a pattern or a name holds can make
// a search slow or deep. std::regex backtracks and recurses, so a recipe could hang or kill the process with it.
//
// Known: literals, . [a-z] [^a-z] \d \w \s \D \W \S, ^ $ \b \B, (...) (?:...) |, * + ? {m} {m,} {m,n} and their lazy
// forms (the same, since only the fact of a match is asked for). Back references and look-around are refused.
#pragma once

#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace leadline::quantize {

class Pattern {
 public:
  /// Throws Error(kInvalidArgument) that shows the pattern and the place for what is not a pattern, or one beyond 4096
  /// characters, 100 nested groups or 20,000 steps.
  explicit Pattern(std::string_view text);

  /// Whether the pattern matches somewhere in `text`; bytes are characters.
  bool search(std::string_view text) const;
  const std::string& text() const { return text_; }
  size_t steps() const { return program_.size(); }

  using Bytes = std::bitset<256>;
  enum class Step : unsigned char { kBytes, kSplit, kStart, kEnd, kWordEdge, kNoWordEdge, kMatch };
  struct Instruction {
    Step step = Step::kMatch;
    size_t set = 0;    // of kBytes: index of the accepted bytes
    size_t next = 0;   // where to continue
    size_t other = 0;  // of kSplit: where to continue too
  };

 private:
  void add_state(std::vector<size_t>& states, std::vector<bool>& seen, size_t start, std::string_view text,
                 size_t position) const;

  std::string text_;
  std::vector<Bytes> sets_;
  std::vector<Instruction> program_;
  size_t start_ = 0;
};

}  // namespace leadline::quantize
