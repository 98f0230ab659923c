// SPDX-License-Identifier: Apache-2.0
#include "import/keras/config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "io/json.h"
#include "leadline/types.h"

namespace leadline::keras {
namespace {

/// Models nest in layers in lists in objects: five levels of JSON each. Code that walks configurations is recursive.
constexpr size_t kMaxTextDepth = 200;

void collect_numbers(const Config& value, size_t limit, std::vector<double>& out) {
  if (value.is_list()) {
    for (const Config& item : value.items()) collect_numbers(item, limit, out);
    return;
  }
  require(out.size() < limit, kBad, "{}: more than {} numbers", value.where(), limit);
  out.push_back(value.number());
}

/// Python writes Infinity and NaN, which JSON does not have: the largest number and null stand for them.
std::string without_python_numbers(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  bool inside = false;  // a string
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (inside && c == '\\' && i + 1 < text.size()) {
      result += text.substr(i, 2);
      i += 2;
      continue;
    }
    if (c == '"') inside = !inside;
    if (!inside && text.substr(i).starts_with("Infinity")) {
      result += "1.7e308";
      i += 8;
    } else if (!inside && text.substr(i).starts_with("NaN")) {
      result += "null";
      i += 3;
    } else {
      result += c;
      ++i;
    }
  }
  return result;
}

}  // namespace

Config Config::parse(std::string_view text) {
  std::shared_ptr<const Json> document;
  try {
    document = std::make_shared<const Json>(parse_json(without_python_numbers(text), kMaxTextDepth));
  } catch (const JsonError& error) {
    fail(kBad, "the configuration of the model is not JSON: {}", error.what());
  }
  const Json* value = document.get();
  return Config(std::move(document), value, "config");
}

void Config::wrong(std::string_view expected) const {
  std::string found = value_->dump().substr(0, 60);
  fail(kBad, "{}: expected {}, found {}", printable(where_), expected, found);
}

bool Config::is_null() const { return value_->is_null(); }
bool Config::is_text() const { return value_->is_text(); }
bool Config::is_number() const { return value_->is_number(); }
bool Config::is_boolean() const { return value_->is_boolean(); }
bool Config::is_list() const { return value_->is_array(); }
bool Config::is_object() const { return value_->is_object(); }

bool Config::is_integer() const {
  if (!value_->is_number()) return false;
  const double number = value_->number();
  if (value_->is_integer()) return number < 0x1p63;
  return std::nearbyint(number) == number && std::abs(number) < 9e15;
}

std::string Config::text() const {
  if (!is_text()) wrong("a text");
  return value_->text();
}

double Config::number() const {
  if (!is_number()) wrong("a number");
  const double number = value_->number();
  return std::abs(number) >= 1.6e308 ? std::copysign(std::numeric_limits<double>::infinity(), number) : number;
}

int64_t Config::integer() const {
  if (!is_integer()) wrong("an integer");
  return value_->is_integer() ? value_->integer() : static_cast<int64_t>(value_->number());
}

bool Config::boolean() const {
  if (!is_boolean()) wrong("true or false");
  return value_->boolean();
}

size_t Config::size() const {
  if (!is_list() && !is_object()) wrong("a list or an object");
  return value_->size();
}

Config Config::at(size_t index) const {
  if (!is_list()) wrong("a list");
  if (index >= value_->size()) wrong("a longer list");
  return Config(document_, &value_->at(index), fmt::format("{}[{}]", where_, index));
}

std::vector<Config> Config::items() const {
  std::vector<Config> result;
  const size_t count = is_list() ? size() : (wrong("a list"), 0);
  result.reserve(count);
  for (size_t i = 0; i < count; ++i) result.push_back(at(i));
  return result;
}

std::vector<std::pair<std::string, Config>> Config::members() const {
  if (!is_object()) wrong("an object");
  std::vector<std::pair<std::string, Config>> result;
  for (const auto& [key, value] : value_->members()) {
    result.emplace_back(key, Config(document_, &value, fmt::format("{}.{}", where_, key)));
  }
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return result;
}

std::optional<Config> Config::find(std::string_view key) const {
  if (!is_object()) wrong("an object");
  const Json* found = value_->find(key);
  if (found == nullptr || found->is_null()) return {};
  return Config(document_, found, fmt::format("{}.{}", where_, key));
}

bool Config::has(std::string_view key) const { return find(key).has_value(); }

Config Config::get(std::string_view key) const {
  const auto found = find(key);
  if (!found) fail(kBad, "{}: '{}' is missing", printable(where_), key);
  return *found;
}

std::string Config::text(std::string_view key, std::string_view otherwise) const {
  const auto found = find(key);
  return found ? found->text() : std::string(otherwise);
}

double Config::number(std::string_view key, double otherwise) const {
  const auto found = find(key);
  return found ? found->number() : otherwise;
}

int64_t Config::integer(std::string_view key, int64_t otherwise) const {
  const auto found = find(key);
  return found ? found->integer() : otherwise;
}

bool Config::boolean(std::string_view key, bool otherwise) const {
  const auto found = find(key);
  return found ? found->boolean() : otherwise;
}

std::vector<int64_t> Config::integers() const {
  if (is_integer()) return {integer()};
  std::vector<int64_t> result;
  for (const Config& item : items()) result.push_back(item.integer());
  return result;
}

std::vector<double> Config::numbers(size_t limit) const {
  std::vector<double> result;
  collect_numbers(*this, limit, result);
  return result;
}

std::vector<int64_t> Config::integers(std::string_view key, size_t count, int64_t otherwise) const {
  const auto found = find(key);
  if (!found) return std::vector<int64_t>(count, otherwise);
  if (found->is_integer()) return std::vector<int64_t>(count, found->integer());
  std::vector<int64_t> result = found->integers();
  if (result.size() != count) found->wrong(fmt::format("{} integers", count));
  return result;
}

std::string Config::dump() const { return value_->dump(-1, /*ascii=*/false); }

}  // namespace leadline::keras
