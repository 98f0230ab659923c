// SPDX-License-Identifier: Apache-2.0
#include "io/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "io/utf8.h"

namespace leadline {
namespace {

[[noreturn]] void wrong_kind(const char* expected, const Json& found) {
  throw JsonError(fmt::format("expected {}, found {}", expected, found.dump().substr(0, 60)));
}

void append_escaped(std::string& json, uint32_t character) {
  if (character >= 0x10000) {
    fmt::format_to(std::back_inserter(json), "\\u{:04x}\\u{:04x}", 0xD7C0 + (character >> 10),
                   0xDC00 + (character & 0x3FF));
  } else {
    fmt::format_to(std::back_inserter(json), "\\u{:04x}", character);
  }
}

bool is_plain(char c) { return c >= ' ' && c < '\x7F' && c != '"' && c != '\\'; }

/// The character of `text` at `at`, which moves behind it.
void append_character(std::string& json, std::string_view text, size_t& at, bool ascii) {
  const size_t begin = at;
  uint32_t character = next_character(text, at);
  const bool repaired = character == kNotUtf8;
  if (repaired) character = 0xFFFD;
  constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
  constexpr std::string_view kLetters = "\"\\bfnrt";
  const size_t letter = character < 0x80 ? kEscaped.find(static_cast<char>(character)) : std::string_view::npos;
  if (letter != std::string_view::npos) {
    json += '\\';
    json += kLetters[letter];
  } else if (character < 0x20 || (character >= 0x7F && ascii)) {
    append_escaped(json, character);
  } else if (repaired) {
    append_utf8(json, character);
  } else {
    json += text.substr(begin, at - begin);
  }
}

void append_number(std::string& json, double number) {
  if (!std::isfinite(number)) {
    json += "null";
    return;
  }
  const size_t begin = json.size();
  fmt::format_to(std::back_inserter(json), "{}", number);
  // A number with a fraction stays one when it is read again.
  if (json.find_first_of(".e", begin) == std::string::npos) json += ".0";
}

}  // namespace

class Json::Writer {
 public:
  Writer(int indent, bool ascii) : indent_(indent), ascii_(ascii) {}

  void write(const Json& value) {
    if (const auto* text = std::get_if<std::string>(&value.value_)) {
      append_json_text(json_, *text, ascii_);
    } else if (const auto* items = std::get_if<Array>(&value.value_)) {
      write_all(*items, '[', ']', [&](const Json& item) { write(item); });
    } else if (const auto* members = std::get_if<Object>(&value.value_)) {
      write_all(*members, '{', '}', [&](const Member& member) {
        append_json_text(json_, member.key, ascii_);
        json_ += indent_ < 0 ? ":" : ": ";
        write(member.value);
      });
    } else if (const auto* number = std::get_if<double>(&value.value_)) {
      append_number(json_, *number);
    } else if (const auto* integer = std::get_if<int64_t>(&value.value_)) {
      fmt::format_to(std::back_inserter(json_), "{}", *integer);
    } else if (const auto* natural = std::get_if<uint64_t>(&value.value_)) {
      fmt::format_to(std::back_inserter(json_), "{}", *natural);
    } else if (const auto* flag = std::get_if<bool>(&value.value_)) {
      json_ += *flag ? "true" : "false";
    } else {
      json_ += "null";
    }
  }
  std::string take() { return std::move(json_); }

 private:
  template <typename Parts, typename WritePart>
  void write_all(const Parts& parts, char open, char close, const WritePart& write_part) {
    json_ += open;
    ++depth_;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) json_ += ',';
      break_line();
      write_part(parts[i]);
    }
    --depth_;
    if (!parts.empty()) break_line();
    json_ += close;
  }
  void break_line() {
    if (indent_ < 0) return;
    json_ += '\n';
    json_.append(depth_ * static_cast<size_t>(indent_), ' ');
  }

  const int indent_;
  const bool ascii_;
  size_t depth_ = 0;
  std::string json_;
};

Json::Json() noexcept = default;
// Copying a std::variant is not safe in libstdc++ 12: when the copy of what it holds throws, it destroys a value that
// was never made. Making one in place is.
Json::Json(const Json& other)
    : value_(std::visit([]<typename T>(const T& held) { return Value(std::in_place_type<T>, held); }, other.value_)) {}
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) {
  Json copy(other);
  value_ = std::move(copy.value_);
  return *this;
}
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json::Json(std::nullptr_t) noexcept {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(std::string text) noexcept : value_(std::move(text)) {}
Json::Json(std::initializer_list<Member> members) : value_(Object(members)) {}
Json::Json(Object members) noexcept : value_(std::move(members)) {}

Json Json::array(std::initializer_list<Json> items) {
  Json result;
  result.value_ = Array(items);
  return result;
}

Json Json::object() {
  Json result;
  result.value_ = Object();
  return result;
}

bool Json::boolean() const {
  if (const auto* value = std::get_if<bool>(&value_)) return *value;
  wrong_kind("true or false", *this);
}

int64_t Json::integer() const {
  if (const auto* value = std::get_if<int64_t>(&value_)) return *value;
  if (const auto* value = std::get_if<uint64_t>(&value_); value != nullptr && std::in_range<int64_t>(*value)) {
    return static_cast<int64_t>(*value);
  }
  wrong_kind("an integer", *this);
}

double Json::number() const {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto* value = std::get_if<int64_t>(&value_)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<uint64_t>(&value_)) return static_cast<double>(*value);
  wrong_kind("a number", *this);
}

const std::string& Json::text() const {
  if (const auto* value = std::get_if<std::string>(&value_)) return *value;
  wrong_kind("a text", *this);
}

std::vector<std::string> Json::texts() const {
  std::vector<std::string> result;
  for (const Json& item : items()) result.push_back(item.text());
  return result;
}

const Json::Array& Json::items() const& {
  if (const auto* value = std::get_if<Array>(&value_)) return *value;
  wrong_kind("an array", *this);
}

const Json::Object& Json::members() const& {
  if (const auto* value = std::get_if<Object>(&value_)) return *value;
  wrong_kind("an object", *this);
}

const Json& Json::at(std::string_view key) const {
  for (const Member& member : members()) {
    if (member.key == key) return member.value;
  }
  wrong_kind(fmt::format("the member '{}'", key).c_str(), *this);
}

const Json& Json::at(size_t index) const {
  if (index < items().size()) return items()[index];
  wrong_kind("a longer array", *this);
}

const Json* Json::find(std::string_view key) const {
  const auto* object = std::get_if<Object>(&value_);
  if (object == nullptr) return nullptr;
  const auto found = std::find_if(object->begin(), object->end(), [&](const Member& m) { return m.key == key; });
  return found == object->end() ? nullptr : &found->value;
}

size_t Json::size() const {
  if (const auto* items = std::get_if<Array>(&value_)) return items->size();
  if (const auto* members = std::get_if<Object>(&value_)) return members->size();
  return 0;
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object();
  auto* object = std::get_if<Object>(&value_);
  if (object == nullptr) wrong_kind("an object", *this);
  for (Member& member : *object) {
    if (member.key == key) return member.value;
  }
  return object->emplace_back(std::string(key), Json()).value;
}

Json& Json::push_back(Json item) {
  if (is_null()) value_ = Array();
  auto* items = std::get_if<Array>(&value_);
  if (items == nullptr) wrong_kind("an array", *this);
  return items->emplace_back(std::move(item));
}

Json& Json::back() {
  auto* items = std::get_if<Array>(&value_);
  if (items == nullptr || items->empty()) wrong_kind("an array with items", *this);
  return items->back();
}

std::string Json::dump(int indent, bool ascii) const {
  Writer writer(indent, ascii);
  writer.write(*this);
  return writer.take();
}

void append_json_text(std::string& json, std::string_view text, bool ascii) {
  json += '"';
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    while (at < text.size() && is_plain(text[at])) ++at;
    json += text.substr(begin, at - begin);
    if (at < text.size()) append_character(json, text, at, ascii);
  }
  json += '"';
}

}  // namespace leadline
