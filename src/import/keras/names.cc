// SPDX-License-Identifier: Apache-2.0
// How Keras names the members of a list when it saves a model: by class, numbered, never by the layer's name.
#include <algorithm>
#include <map>

#include "import/keras/weights.h"

namespace leadline::keras {
namespace {

// Not those of <cctype>, which heed the locale.
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_word(char c) { return is_upper(c) || is_lower(c) || (c >= '0' && c <= '9') || c == '_' || (c & '\x80') != 0; }

}  // namespace

std::string snake_case(std::string_view class_name) {
  std::string text(class_name);
  std::erase_if(text, [](char c) { return !is_word(c); });
  // First a line before each capital that begins a lower-case word ("XConv" -> "X_Conv")...
  std::string words;
  for (size_t i = 0; i < text.size();) {
    words += text[i++];
    if (i + 1 >= text.size() || !is_upper(text[i]) || !is_lower(text[i + 1])) continue;
    words += '_';
    words += text[i++];
    while (i < text.size() && is_lower(text[i])) words += text[i++];
  }
  // ... then one between a lower-case letter and a capital ("convLSTM" -> "conv_LSTM").
  std::string result;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0 && is_lower(words[i - 1]) && is_upper(words[i])) result += '_';
    result += is_upper(words[i]) ? static_cast<char>(words[i] - 'A' + 'a') : words[i];
  }
  return result;
}

std::vector<std::string> container_names(std::span<const std::string> class_names) {
  std::map<std::string, int> used;
  std::vector<std::string> names;
  for (const std::string& class_name : class_names) {
    std::string name = snake_case(class_name);
    const int number = used[name]++;
    names.push_back(number == 0 ? std::move(name) : name + "_" + std::to_string(number));
  }
  return names;
}

}  // namespace leadline::keras
