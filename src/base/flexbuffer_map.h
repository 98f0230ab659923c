// SPDX-License-Identifier: Apache-2.0
// A reader for the options of custom ops: a FlexBuffers map of scalars, from bytes nobody has checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace leadline {

/// Names and numbers of a FlexBuffers map. Values of other kinds (strings, vectors, maps, null) are left out.
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

  size_t size() const { return values_.size(); }

 private:
  using Number = std::variant<int64_t, uint64_t, double>;
  std::optional<double> number(std::string_view name) const;

  std::map<std::string, Number, std::less<>> values_;
};

}  // namespace leadline
