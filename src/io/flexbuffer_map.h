// SPDX-License-Identifier: Apache-2.0
// A reader for the options of custom ops: a FlexBuffers map of numbers, texts and lists of numbers, from
// unchecked bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace leadline {

/// Names and values of a FlexBuffers map. Values of other kinds (maps, blobs, nested vectors, null) are left out.
class FlexMap {
 public:
  /// Nothing when the bytes are not a well-formed map. Never reads outside `bytes`.
  static std::optional<FlexMap> parse(std::span<const std::byte> bytes);

  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  /// The value as another type; `fallback` where it is missing. Fractions are cut off, numbers that do not fit are
  /// pulled to the nearest one that does, NaN becomes 0.
  int32_t get_int(std::string_view name, int32_t fallback) const;
  float get_float(std::string_view name, float fallback) const;
  bool get_bool(std::string_view name, bool fallback) const;
  /// A list of numbers, converted like get_int(); nothing where it is missing or another kind of value.
  std::optional<std::vector<int32_t>> get_ints(std::string_view name) const;
  /// A string or key; nothing where it is missing or another kind of value.
  std::optional<std::string> get_text(std::string_view name) const;

  size_t size() const { return values_.size(); }

 private:
  /// A number as a double keeps every value that fits the types of the getters.
  using Value = std::variant<double, std::string, std::vector<double>>;
  template <typename T>
  const T* find(std::string_view name) const;

  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace leadline
