// SPDX-License-Identifier: Apache-2.0
// A recursive-descent evaluation of markers; its depth is bounded, for files may nest brackets without end.
#include "guard/pep508.h"

#include <algorithm>
#include <cctype>

#include "guard/trim.h"

namespace leadline::guard {
namespace {

constexpr size_t kLongestLine = 4000;
constexpr int kDeepest = 32;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.'; }

class MarkerReader {
 public:
  MarkerReader(std::string_view text, const MarkerValues& values) : rest_(text), values_(values) {}

  bool whole() {
    const bool value = any(0);
    skip();
    return good_ && rest_.empty() && value;
  }

 private:
  void skip() { rest_ = rest_.substr(std::min(rest_.find_first_not_of(" \t\r"), rest_.size())); }

  bool take_word(std::string_view word) {
    skip();
    if (!rest_.starts_with(word) || (rest_.size() > word.size() && is_name(rest_[word.size()]))) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  bool any(int depth) {
    bool value = all(depth);
    while (good_ && take_word("or")) value = all(depth) || value;
    return value;
  }

  bool all(int depth) {
    bool value = term(depth);
    while (good_ && take_word("and")) value = term(depth) && value;
    return value;
  }

  bool term(int depth) {
    skip();
    if (depth > kDeepest) return fail();
    if (rest_.starts_with('(')) {
      rest_.remove_prefix(1);
      const bool value = any(depth + 1);
      skip();
      if (!rest_.starts_with(')')) return fail();
      rest_.remove_prefix(1);
      return value;
    }
    const Operand left = operand();
    const std::string op = comparison();
    const Operand right = operand();
    return good_ && compare(left, op, right);
  }

  struct Operand {
    std::string value;
    std::string variable;
  };

  Operand operand() {
    skip();
    if (rest_.empty()) return fail(), Operand{};
    if (rest_.front() == '"' || rest_.front() == '\'') {
      const size_t end = rest_.find(rest_.front(), 1);
      if (end == std::string_view::npos) return fail(), Operand{};
      Operand result{std::string(rest_.substr(1, end - 1)), {}};
      rest_.remove_prefix(end + 1);
      return result;
    }
    size_t size = 0;
    while (size < rest_.size() && is_name(rest_[size])) ++size;
    if (size == 0) return fail(), Operand{};
    std::string name(rest_.substr(0, size));
    rest_.remove_prefix(size);
    const auto found = values_.find(name);
    return {found == values_.end() ? std::string() : found->second, name};
  }

  std::string comparison() {
    skip();
    for (const std::string_view op : {"===", "==", "~=", "!=", "<=", ">=", "<", ">"}) {
      if (!rest_.starts_with(op)) continue;
      rest_.remove_prefix(op.size());
      return std::string(op);
    }
    if (take_word("in")) return "in";
    if (take_word("not") && take_word("in")) return "not in";
    fail();
    return {};
  }

  static bool compare(const Operand& left, const std::string& op, const Operand& right) {
    if (op == "in") return right.value.find(left.value) != std::string::npos;
    if (op == "not in") return right.value.find(left.value) == std::string::npos;
    const bool extra = left.variable == "extra" || right.variable == "extra";
    if (extra) return (normalized_name(left.value) == normalized_name(right.value)) == (op != "!=");
    // `"3.8" <= python_version` compares the same way round as it is written.
    static const std::map<std::string, std::string> kMirrored{{"<", ">"}, {">", "<"}, {"<=", ">="}, {">=", "<="}};
    const bool mirrored = left.variable.empty() && !right.variable.empty();
    const std::string& subject = mirrored ? right.value : left.value;
    const std::string& bound = mirrored ? left.value : right.value;
    const auto other = kMirrored.find(op);
    const std::string& relation = mirrored && other != kMirrored.end() ? other->second : op;
    const std::optional<Version> version = Version::parse(subject);
    const std::optional<Specifiers> range = Specifiers::parse(relation + bound);
    if (version && range) return range->allows(*version);
    if (relation == "==" || relation == "===") return subject == bound;
    if (relation == "!=") return subject != bound;
    if (relation == "<") return subject < bound;
    if (relation == "<=") return subject <= bound;
    if (relation == ">") return subject > bound;
    return relation == ">=" && subject >= bound;
  }

  bool fail() {
    good_ = false;
    rest_ = {};
    return false;
  }

  std::string_view rest_;
  const MarkerValues& values_;
  bool good_ = true;
};

}  // namespace

std::optional<Requirement> Requirement::parse(std::string_view line) {
  line = trim(line);
  if (line.empty() || line.size() > kLongestLine) return std::nullopt;
  Requirement result;
  const size_t semicolon = std::min(line.find(';'), line.size());
  result.marker = trim(line.substr(std::min(semicolon + 1, line.size())));
  line = trim(line.substr(0, semicolon));
  size_t size = 0;
  while (size < line.size() && is_name(line[size])) ++size;
  if (size == 0) return std::nullopt;
  result.name = normalized_name(line.substr(0, size));
  line = trim(line.substr(size));
  if (line.starts_with('[')) {
    const size_t end = line.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    line = trim(line.substr(end + 1));
  }
  if (line.starts_with('@')) return std::nullopt;
  if (line.starts_with('(') && line.ends_with(')')) line = trim(line.substr(1, line.size() - 2));
  const std::optional<Specifiers> specifiers = Specifiers::parse(line);
  if (!specifiers) return std::nullopt;
  result.range = line;
  result.specifiers = *specifiers;
  return result;
}

bool marker_holds(std::string_view marker, const MarkerValues& values) {
  if (trim(marker).empty()) return true;
  return MarkerReader(marker, values).whole();
}

}  // namespace leadline::guard
