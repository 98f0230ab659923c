// SPDX-License-Identifier: Apache-2.0
#include "core/join.h"

namespace leadline {
namespace {

std::string text_of(int64_t number) { return std::to_string(number); }
std::string_view text_of(std::string_view text) { return text; }

template <typename Item>
std::string join_items(std::span<const Item> items, std::string_view separator) {
  std::string text;
  for (const Item& item : items) {
    if (&item != items.data()) text += separator;
    text += text_of(item);
  }
  return text;
}

}  // namespace

std::string join(std::span<const std::string> items, std::string_view separator) {
  return join_items(items, separator);
}
std::string join(std::span<const std::string_view> items, std::string_view separator) {
  return join_items(items, separator);
}
std::string join(std::span<const char* const> items, std::string_view separator) {
  return join_items(items, separator);
}
std::string join(std::span<const int32_t> items, std::string_view separator) { return join_items(items, separator); }
std::string join(std::span<const int64_t> items, std::string_view separator) { return join_items(items, separator); }

}  // namespace leadline
