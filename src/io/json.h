// SPDX-License-Identifier: Apache-2.0
// A JSON value: built, written as text, read from text. It is a plain class, not a template over containers as
// libraries have it: those take a compiler three seconds in every file that uses them. Destructors allocate nothing,
// and reading has a limit to the depth of values, so that neither a lack of memory nor a document can end the process.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace leadline {

/// Text that is not JSON, or a value of another kind than expected.
class JsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Json {
 public:
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;

  Json() noexcept;  ///< null
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  // NOLINTBEGIN(google-explicit-constructor): members of an object are written as {"name", value}
  Json(std::nullptr_t) noexcept;
  Json(const char* text);
  Json(std::string_view text);
  Json(std::string text) noexcept;
  template <typename T>
    requires std::is_arithmetic_v<T>
  Json(T value) noexcept;
  template <typename T>
  Json(const std::vector<T>& items) : Json(array()) {
    for (const T& item : items) push_back(item);
  }
  /// An object: {{"name", value}, ...}. No name is given twice.
  Json(std::initializer_list<Member> members);
  // NOLINTEND(google-explicit-constructor)
  explicit Json(Object members) noexcept;

  static Json array(std::initializer_list<Json> items = {});
  static Json object();

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_boolean() const { return std::holds_alternative<bool>(value_); }
  /// Written without a fraction and an exponent, and within int64_t or uint64_t.
  bool is_integer() const {
    return std::holds_alternative<int64_t>(value_) || std::holds_alternative<uint64_t>(value_);
  }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool is_text() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // What the value holds. All throw JsonError when it holds something else.
  bool boolean() const;
  int64_t integer() const;  ///< also throws for integers beyond int64_t
  double number() const;
  const std::string& text() const;
  std::vector<std::string> texts() const;  ///< of an array
  const Array& items() const&;
  const Array& items() const&& = delete;  // a loop over it would outlive the value
  const Object& members() const&;
  const Object& members() const&& = delete;
  const Json& at(std::string_view key) const;
  const Json& at(size_t index) const;

  /// The member of that name, or null where there is none or this is not an object.
  const Json* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  /// Of arrays and objects; 0 for other values.
  size_t size() const;
  bool empty() const { return size() == 0; }

  /// The member of an object, which is added (as null) when there is none. Null becomes an object.
  Json& operator[](std::string_view key);
  /// Adds to an array. Null becomes an array.
  Json& push_back(Json item);
  /// The last item of an array.
  Json& back();

  /// The value as text: with `indent` spaces per level on lines of their own, or on one line if `indent` is negative.
  /// Text that is not UTF-8 gets replacement characters; with `ascii` whatever is not ASCII is escaped. Numbers that
  /// JSON does not have (NaN, infinity) are null.
  std::string dump(int indent = -1, bool ascii = true) const;

 private:
  using Value = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Array, Object>;

  // Defined below, where Member is complete: values are made in it.
  template <typename T>
  static Value stored(T value) noexcept;

  class Writer;

  Value value_;
};

struct Json::Member {
  std::string key;
  Json value;
};

template <typename T>
Json::Value Json::stored(T value) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return Value(std::in_place_type<bool>, value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return Value(std::in_place_type<double>, static_cast<double>(value));
  } else if constexpr (std::is_signed_v<T>) {
    return Value(std::in_place_type<int64_t>, static_cast<int64_t>(value));
  } else {
    return Value(std::in_place_type<uint64_t>, static_cast<uint64_t>(value));
  }
}

template <typename T>
  requires std::is_arithmetic_v<T>
Json::Json(T value) noexcept : value_(stored(value)) {}

/// Reads a document (RFC 8259) whose arrays and objects nest at most `max_depth` deep. Of several members with one
/// name the last value counts. Throws JsonError with the line and the column.
Json parse_json(std::string_view text, size_t max_depth = 100);

/// Appends `text` in quotes, as Json::dump() writes it.
void append_json_text(std::string& json, std::string_view text, bool ascii = true);

}  // namespace leadline
