// SPDX-License-Identifier: Apache-2.0
// Parsed into a tree, compiled into a program of byte tests and forks, run on all its states at once.
#include "quantize/pattern.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/error.h"

namespace leadline::quantize {
namespace {

constexpr size_t kLongestPattern = 4096;
constexpr size_t kLargestProgram = 20'000;
constexpr int kDeepestNesting = 100;
constexpr int kMostRepeats = 1000;

using Bytes = Pattern::Bytes;
using Step = Pattern::Step;

struct Tree {
  enum class Kind { kEmpty, kBytes, kEdge, kSequence, kChoice, kRepeat };
  Kind kind = Kind::kEmpty;
  Bytes bytes;
  Step edge = Step::kStart;
  int least = 0;
  int most = -1;  // -1: any number
  std::vector<Tree> parts;
};

Bytes range(unsigned char first, unsigned char last) {
  Bytes bytes;
  for (size_t c = first; c <= last; ++c) bytes.set(c);
  return bytes;
}
Bytes digits() { return range('0', '9'); }
Bytes words() { return range('a', 'z') | range('A', 'Z') | digits() | range('_', '_'); }
Bytes spaces() { return range('\t', '\r') | range(' ', ' '); }

bool is_word(char c) { return words().test(static_cast<unsigned char>(c)); }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Tree parse() {
    if (text_.size() > kLongestPattern) bad(fmt::format("is longer than {} characters", kLongestPattern));
    Tree tree = choice(0);
    if (!done()) bad("has a ')' without '('");
    return tree;
  }

 private:
  [[noreturn]] void bad(std::string_view what) const {
    fail(ErrorCode::kInvalidArgument, "the pattern '{}' {} (at character {})", text_.substr(0, 80), what,
         position_ + 1);
  }
  bool done() const { return position_ == text_.size(); }
  char peek() const { return text_[position_]; }
  bool take(char c) {
    if (done() || peek() != c) return false;
    ++position_;
    return true;
  }

  Tree choice(int depth) {
    if (depth > kDeepestNesting) bad(fmt::format("has more than {} nested groups", kDeepestNesting));
    Tree tree;
    tree.kind = Tree::Kind::kChoice;
    do {
      tree.parts.push_back(sequence(depth));
    } while (take('|'));
    return tree.parts.size() == 1 ? std::move(tree.parts[0]) : std::move(tree);
  }

  Tree sequence(int depth) {
    Tree tree;
    tree.kind = Tree::Kind::kSequence;
    while (!done() && peek() != '|' && peek() != ')') tree.parts.push_back(repeated(depth));
    return tree;
  }

  Tree repeated(int depth) {
    Tree tree = atom(depth);
    while (!done()) {
      Tree outer;
      outer.kind = Tree::Kind::kRepeat;
      if (take('*')) {
      } else if (take('+')) {
        outer.least = 1;
      } else if (take('?')) {
        outer.most = 1;
      } else if (peek() == '{' && counts(outer)) {
      } else {
        break;
      }
      take('?');  // lazy: matches the same texts
      outer.parts.push_back(std::move(tree));
      tree = std::move(outer);
    }
    return tree;
  }

  /// Reads {m}, {m,} or {m,n}; false for a '{' that starts none of them, which is a literal.
  bool counts(Tree& tree) {
    const size_t start = position_;
    const auto number = [&](int& value) {
      size_t digits_read = 0;
      for (value = 0; !done() && peek() >= '0' && peek() <= '9'; ++position_, ++digits_read) {
        value = value * 10 + (peek() - '0');
        if (value > kMostRepeats) bad(fmt::format("repeats more than {} times", kMostRepeats));
      }
      return digits_read > 0;
    };
    ++position_;
    bool good = number(tree.least);
    if (good && take(',')) {
      tree.most = -1;
      if (!done() && peek() != '}') good = number(tree.most);
    } else {
      tree.most = tree.least;
    }
    if (!good || !take('}')) {
      position_ = start;
      return false;
    }
    if (tree.most >= 0 && tree.most < tree.least) bad("repeats at most fewer times than at least");
    return true;
  }

  Tree atom(int depth) {
    const char c = text_[position_++];
    Tree tree;
    tree.kind = Tree::Kind::kBytes;
    switch (c) {
      case '(': {
        if (take('?') && !take(':')) bad("has a group that Leadline does not know; look-around is not supported");
        Tree group = choice(depth + 1);
        if (!take(')')) bad("has a '(' without ')'");
        return group;
      }
      case '*':
      case '+':
      case '?':
        --position_;
        bad("repeats nothing");
      case '^':
        return edge(Step::kStart);
      case '$':
        return edge(Step::kEnd);
      case '.':
        tree.bytes = ~range('\n', '\n');
        return tree;
      case '[':
        tree.bytes = set();
        return tree;
      case '\\':
        if (take('b')) return edge(Step::kWordEdge);
        if (take('B')) return edge(Step::kNoWordEdge);
        if (take('A')) return edge(Step::kStart);
        if (take('Z')) return edge(Step::kEnd);
        tree.bytes = escaped();
        return tree;
      default:
        tree.bytes = range(static_cast<unsigned char>(c), static_cast<unsigned char>(c));
        return tree;
    }
  }

  static Tree edge(Step step) {
    Tree tree;
    tree.kind = Tree::Kind::kEdge;
    tree.edge = step;
    return tree;
  }

  /// What stands behind a backslash.
  Bytes escaped() {
    if (done()) bad("ends in a backslash");
    const char c = text_[position_++];
    switch (c) {
      case 'd':
        return digits();
      case 'D':
        return ~digits();
      case 'w':
        return words();
      case 'W':
        return ~words();
      case 's':
        return spaces();
      case 'S':
        return ~spaces();
      case 'n':
        return range('\n', '\n');
      case 't':
        return range('\t', '\t');
      case 'r':
        return range('\r', '\r');
      default:
        if (is_word(c)) bad(fmt::format("has '\\{}', which Leadline does not know", c));
        return range(static_cast<unsigned char>(c), static_cast<unsigned char>(c));
    }
  }

  Bytes set() {
    Bytes result;
    const bool inverted = take('^');
    for (bool first = true; first || done() || peek() != ']'; first = false) {
      if (done()) bad("has a '[' without ']'");
      const Bytes low = member();
      if (position_ + 1 < text_.size() && peek() == '-' && text_[position_ + 1] != ']') {
        ++position_;
        const Bytes high = member();
        if (low.count() != 1 || high.count() != 1 || lowest(high) < lowest(low)) bad("has a range without two ends");
        result |= range(lowest(low), lowest(high));
      } else {
        result |= low;
      }
    }
    ++position_;
    return inverted ? ~result : result;
  }

  Bytes member() {
    if (done()) bad("has a '[' without ']'");
    const char c = text_[position_++];
    return c == '\\' ? escaped() : range(static_cast<unsigned char>(c), static_cast<unsigned char>(c));
  }

  static unsigned char lowest(const Bytes& bytes) {
    unsigned char c = 0;
    while (!bytes.test(c)) ++c;
    return c;
  }

  std::string_view text_;
  size_t position_ = 0;
};

/// Writes the program from its end: each piece knows where to continue, and says where it starts.
class Compiler {
 public:
  Compiler(std::string_view text, std::vector<Bytes>& sets, std::vector<Pattern::Instruction>& program)
      : text_(text), sets_(sets), program_(program) {}

  size_t emit(Pattern::Instruction instruction) {
    require(program_.size() < kLargestProgram, ErrorCode::kInvalidArgument,
            "the pattern '{}' takes more than {} steps when its repetitions are written out", text_.substr(0, 80),
            kLargestProgram);
    program_.push_back(instruction);
    return program_.size() - 1;
  }

  size_t compile(const Tree& tree, size_t next) {
    switch (tree.kind) {
      case Tree::Kind::kEmpty:
        return next;
      case Tree::Kind::kBytes:
        sets_.push_back(tree.bytes);
        return emit({Step::kBytes, sets_.size() - 1, next, 0});
      case Tree::Kind::kEdge:
        return emit({tree.edge, 0, next, 0});
      case Tree::Kind::kSequence:
        for (size_t i = tree.parts.size(); i-- > 0;) next = compile(tree.parts[i], next);
        return next;
      case Tree::Kind::kChoice: {
        size_t start = compile(tree.parts.back(), next);
        for (size_t i = tree.parts.size() - 1; i-- > 0;) {
          start = emit({Step::kSplit, 0, compile(tree.parts[i], next), start});
        }
        return start;
      }
      default:
        return repeat(tree, next);
    }
  }

 private:
  size_t repeat(const Tree& tree, size_t next) {
    const Tree& body = tree.parts[0];
    size_t start = next;
    if (tree.most < 0) {
      start = emit({Step::kSplit, 0, 0, next});
      const size_t again = compile(body, start);
      program_[start].next = again;
    } else {
      for (int i = tree.least; i < tree.most; ++i) start = emit({Step::kSplit, 0, compile(body, start), next});
    }
    for (int i = 0; i < tree.least; ++i) {
      const size_t before = start;
      start = compile(body, start);
      if (start == before) break;  // the body is empty: a thousand times nothing is nothing
    }
    return start;
  }

  std::string_view text_;
  std::vector<Bytes>& sets_;
  std::vector<Pattern::Instruction>& program_;
};

}  // namespace

Pattern::Pattern(std::string_view text) : text_(text) {
  const Tree tree = Parser(text_).parse();
  Compiler compiler(text_, sets_, program_);
  const size_t match = compiler.emit({Step::kMatch, 0, 0, 0});
  start_ = compiler.compile(tree, match);
}

/// Adds `start` and what can be reached from it without reading a byte.
void Pattern::add_state(std::vector<size_t>& states, std::vector<bool>& seen, size_t start, std::string_view text,
                        size_t position) const {
  std::vector<size_t> open = {start};
  while (!open.empty()) {
    const size_t state = open.back();
    open.pop_back();
    if (seen[state]) continue;
    seen[state] = true;
    const Instruction& instruction = program_[state];
    const bool left = position > 0 && is_word(text[position - 1]);
    const bool right = position < text.size() && is_word(text[position]);
    switch (instruction.step) {
      case Step::kSplit:
        open.push_back(instruction.next);
        open.push_back(instruction.other);
        break;
      case Step::kStart:
        if (position == 0) open.push_back(instruction.next);
        break;
      case Step::kEnd:
        if (position == text.size()) open.push_back(instruction.next);
        break;
      case Step::kWordEdge:
        if (left != right) open.push_back(instruction.next);
        break;
      case Step::kNoWordEdge:
        if (left == right) open.push_back(instruction.next);
        break;
      default:
        states.push_back(state);
    }
  }
}

bool Pattern::search(std::string_view text) const {
  std::vector<size_t> now;
  std::vector<size_t> then;
  std::vector<bool> seen(program_.size());
  for (size_t position = 0;; ++position) {
    add_state(now, seen, start_, text, position);
    for (const size_t state : now) {
      if (program_[state].step == Step::kMatch) return true;
    }
    if (position == text.size()) return false;
    std::fill(seen.begin(), seen.end(), false);
    then.clear();
    for (const size_t state : now) {
      const Instruction& instruction = program_[state];
      if (sets_[instruction.set].test(static_cast<unsigned char>(text[position]))) {
        add_state(then, seen, instruction.next, text, position + 1);
      }
    }
    now.swap(then);
  }
}

}  // namespace leadline::quantize
