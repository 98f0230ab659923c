// SPDX-License-Identifier: Apache-2.0
// Reads JSON text by recursive descent, as RFC 8259 has it. The text is not trusted.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "io/json.h"
#include "io/utf8.h"

namespace leadline {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class JsonReader {
 public:
  JsonReader(std::string_view text, size_t max_depth) : text_(text), max_depth_(max_depth) {}

  Json read() {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // a byte order mark
    Json value = read_value();
    skip_space();
    if (at_ != text_.size()) bad("expected the end of the text");
    return value;
  }

 private:
  [[noreturn]] void bad(std::string_view problem) const {
    const std::string_view before = text_.substr(0, at_);
    const size_t newline = before.rfind('\n');
    const size_t column = newline == std::string_view::npos ? at_ + 1 : at_ - newline;
    throw JsonError(
        fmt::format("line {}, column {}: {}", std::count(before.begin(), before.end(), '\n') + 1, column, problem));
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() && (peek() == ' ' || peek() == '\n' || peek() == '\r' || peek() == '\t')) ++at_;
  }

  Json read_value() {
    skip_space();
    switch (peek()) {
      case '{':
        return nested(&JsonReader::read_object);
      case '[':
        return nested(&JsonReader::read_array);
      case '"':
        return read_text();
      case 't':
        if (take("true")) return true;
        break;
      case 'f':
        if (take("false")) return false;
        break;
      case 'n':
        if (take("null")) return nullptr;
        break;
      default:
        if (peek() == '-' || is_digit(peek())) return read_number();
    }
    bad(at_ == text_.size() ? "the text ends where a value is expected" : "expected a value");
  }

  Json nested(Json (JsonReader::*read_part)()) {
    if (depth_ == max_depth_) bad(fmt::format("more than {} levels of arrays and objects", max_depth_));
    ++depth_;
    ++at_;
    Json value = (this->*read_part)();
    --depth_;
    return value;
  }

  Json read_array() {
    Json array = Json::array();
    skip_space();
    if (take("]")) return array;
    do {
      array.push_back(read_value());
      skip_space();
    } while (take(","));
    if (!take("]")) bad("expected ',' or ']'");
    return array;
  }

  Json read_object() {
    Json::Object members;
    skip_space();
    if (take("}")) return Json::object();
    do {
      skip_space();
      if (peek() != '"') bad("expected the name of a member, in quotes");
      std::string key = read_text();
      skip_space();
      if (!take(":")) bad("expected ':'");
      Json value = read_value();
      members.push_back({std::move(key), std::move(value)});
      skip_space();
    } while (take(","));
    if (!take("}")) bad("expected ',' or '}'");
    return Json(without_repeated(std::move(members)));
  }

  /// Of several members with one name the last value counts.
  static Json::Object without_repeated(Json::Object members) {
    std::vector<size_t> order(members.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return members[a].key < members[b].key; });
    bool repeated = false;
    for (size_t i = order.size(); i > 1; --i) {
      Json::Member& before = members[order[i - 2]];
      Json::Member& member = members[order[i - 1]];
      if (before.key != member.key) continue;
      before.value = std::move(member.value);
      order[i - 1] = members.size();
      repeated = true;
    }
    if (!repeated) return members;
    std::sort(order.begin(), order.end());
    Json::Object kept;
    for (const size_t i : order) {
      if (i < members.size()) kept.push_back(std::move(members[i]));
    }
    return kept;
  }

  std::string read_text() {
    std::string result;
    ++at_;
    while (true) {
      const size_t begin = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
             static_cast<unsigned char>(text_[at_]) >= 0x20) {
        const size_t character_begin = at_;
        if (next_character(text_, at_) == kNotUtf8) {
          at_ = character_begin;
          bad("the text is not UTF-8");
        }
      }
      result += text_.substr(begin, at_ - begin);
      if (take("\"")) return result;
      if (!take("\\")) bad(at_ == text_.size() ? "a text has no end" : "a control character in a text");
      read_escape(result);
    }
  }

  void read_escape(std::string& result) {
    constexpr std::string_view kEscapes = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (const size_t found = at_ < text_.size() ? kEscapes.find(peek()) : std::string_view::npos;
        found != std::string_view::npos) {
      ++at_;
      result += kMeanings[found];
      return;
    }
    if (!take("u")) bad("expected one of \"\\/bfnrtu after a backslash");
    uint32_t character = read_hex();
    if (character >= 0xD800 && character < 0xDC00) {
      const bool pair = take("\\u");
      const uint32_t low = pair ? read_hex() : 0;
      if (low < 0xDC00 || low > 0xDFFF) bad("half of a surrogate pair");
      character = 0x10000 + ((character - 0xD800) << 10) + (low - 0xDC00);
    } else if (character >= 0xDC00 && character <= 0xDFFF) {
      bad("half of a surrogate pair");
    }
    append_utf8(result, character);
  }

  uint32_t read_hex() {
    uint32_t value = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (problem != std::errc() || digits.size() != 4 || end != digits.data() + 4)
      bad("expected four hexadecimal digits");
    at_ += 4;
    return value;
  }

  Json read_number() {
    const size_t begin = at_;
    const bool negative = take("-");
    const size_t whole = at_;
    skip_digits();
    if (text_[whole] == '0' && at_ > whole + 1) {
      at_ = whole + 1;
      bad("a number begins with 0");
    }
    const bool integer = peek() != '.' && peek() != 'e' && peek() != 'E';
    if (take(".")) skip_digits();
    if (take("e") || take("E")) {
      if (!take("+")) take("-");
      skip_digits();
    }
    const std::string_view digits = text_.substr(begin, at_ - begin);
    const char* end = digits.data() + digits.size();
    if (integer) {
      int64_t value = 0;
      if (std::from_chars(digits.data(), end, value).ec == std::errc()) return value;
      uint64_t natural = 0;
      if (!negative && std::from_chars(digits.data(), end, natural).ec == std::errc()) return natural;
    }
    double value = 0;
    if (std::from_chars(digits.data(), end, value).ec == std::errc()) return value;
    if (is_large(digits)) {
      at_ = begin;
      bad("a number is too large");
    }
    return negative ? -0.0 : 0.0;
  }

  void skip_digits() {
    if (!is_digit(peek())) bad("expected a digit");
    while (is_digit(peek())) ++at_;
  }

  /// Whether a number that double does not have is beyond the largest, not between 0 and the smallest.
  static bool is_large(std::string_view digits) {
    const size_t exponent_at = digits.find_first_of("eE");
    if (exponent_at != std::string_view::npos) {
      // Its sign decides, unless there are as many digits: such numbers are not written in practice, but may be asked
      // for.
      const std::string_view mantissa = digits.substr(0, exponent_at);
      std::string_view exponent = digits.substr(exponent_at + 1);
      if (exponent.starts_with('+')) exponent.remove_prefix(1);
      int64_t value = 0;
      const auto problem = std::from_chars(exponent.data(), exponent.data() + exponent.size(), value).ec;
      if (problem != std::errc()) return !exponent.starts_with('-');
      return magnitude(mantissa) + value > 0;
    }
    return magnitude(digits) > 0;
  }

  /// Digits before the point, or minus the zeros behind it.
  static int64_t magnitude(std::string_view digits) {
    const size_t first = digits.find_first_of("123456789");
    const size_t point = std::min(digits.find('.'), digits.size());
    return static_cast<int64_t>(point) - static_cast<int64_t>(first);
  }

  const std::string_view text_;
  const size_t max_depth_;
  size_t depth_ = 0;
  size_t at_ = 0;
};

}  // namespace

Json parse_json(std::string_view text, size_t max_depth) { return JsonReader(text, max_depth).read(); }

}  // namespace leadline
