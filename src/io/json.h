// SPDX-License-Identifier: Apache-2.0
// nlohmann's JSON with a destructor that allocates nothing. The library's own flattens nested values into a vector
// first, and a destructor that finds no memory for that ends the process. Ours recurses instead, so documents of others
// have to be read with a limit to their depth: parse_json().
#pragma once

#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "io/json_depth.h"
#include "io/json_fwd.h"

namespace leadline {

template <typename T>
struct JsonAllocator : std::allocator<T> {
  JsonAllocator() = default;
  template <typename U>
  JsonAllocator(const JsonAllocator<U>&) noexcept {}  // NOLINT(google-explicit-constructor): allocators convert
  template <typename U>
  struct rebind {
    using other = JsonAllocator<U>;
  };
};

namespace json_detail {

/// Null: the library sets the type of a value before it allocates what belongs to it.
template <typename T>
void destroy_and_free(T* value) noexcept {
  if (value == nullptr) return;
  std::destroy_at(value);
  JsonAllocator<T>().deallocate(value, 1);
}

}  // namespace json_detail
}  // namespace leadline

#define LEADLINE_JSON_DESTROY(type)                                              \
  template <>                                                                    \
  inline void leadline::type::json_value::destroy(nlohmann::detail::value_t t) { \
    switch (t) {                                                                 \
      case nlohmann::detail::value_t::object:                                    \
        return leadline::json_detail::destroy_and_free(object);                  \
      case nlohmann::detail::value_t::array:                                     \
        return leadline::json_detail::destroy_and_free(array);                   \
      case nlohmann::detail::value_t::string:                                    \
        return leadline::json_detail::destroy_and_free(string);                  \
      case nlohmann::detail::value_t::binary:                                    \
        return leadline::json_detail::destroy_and_free(binary);                  \
      default:                                                                   \
        return;                                                                  \
    }                                                                            \
  }
LEADLINE_JSON_DESTROY(ParsedJson)
LEADLINE_JSON_DESTROY(OrderedJson)
#undef LEADLINE_JSON_DESTROY

namespace leadline {

/// {{"name", value}, ...} as an object. The library's own constructor from such lists loses what it has made so far
/// when there is no memory for the rest.
inline OrderedJson json_object(std::initializer_list<std::pair<const char*, OrderedJson>> fields) {
  OrderedJson result = OrderedJson::object();
  for (const auto& [name, value] : fields) result[name] = value;
  return result;
}

/// Throws ParsedJson::exception for text that is no JSON, and what `too_deep` throws for one that nests deeper than
/// `depth`.
template <typename TooDeep>
ParsedJson parse_json(std::string_view text, int depth, const TooDeep& too_deep) {
  if (std::cmp_greater(json_depth(text), depth)) too_deep();
  return ParsedJson::parse(text.begin(), text.end());
}

}  // namespace leadline
