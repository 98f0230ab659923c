// SPDX-License-Identifier: Apache-2.0
// A checked view of the JSON in which Keras describes models. Everything in it is untrusted: each getter says what it
// expects and where, when the text has something else.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/json.h"
#include "leadline/error.h"

namespace leadline::keras {

/// The code of errors about a file.
inline constexpr ErrorCode kBad = ErrorCode::kInvalidModel;

/// One value of a JSON document, which it keeps alive.
class Config {
 public:
  /// Throws Error(kInvalidModel) for text that is not JSON or nests deeper than any model does.
  static Config parse(std::string_view text);

  bool is_null() const;
  bool is_text() const;
  bool is_number() const;
  bool is_integer() const;
  bool is_boolean() const;
  bool is_list() const;
  bool is_object() const;

  std::string text() const;
  double number() const;
  int64_t integer() const;
  bool boolean() const;
  /// Elements of a list, members of an object.
  size_t size() const;
  Config at(size_t index) const;
  std::vector<Config> items() const;
  /// Sorted by name, which is the order in which Keras takes the values of a dict.
  std::vector<std::pair<std::string, Config>> members() const;

  /// Whether the object has a member that is not null.
  bool has(std::string_view key) const;
  /// That member, or nothing.
  std::optional<Config> find(std::string_view key) const;
  /// That member; throws when there is none.
  Config get(std::string_view key) const;

  std::string text(std::string_view key) const { return get(key).text(); }
  std::string text(std::string_view key, std::string_view otherwise) const;
  double number(std::string_view key, double otherwise) const;
  int64_t integer(std::string_view key) const { return get(key).integer(); }
  int64_t integer(std::string_view key, int64_t otherwise) const;
  bool boolean(std::string_view key, bool otherwise) const;
  /// A list of integers; a single one is a list of one.
  std::vector<int64_t> integers() const;
  /// All numbers in lists of lists, in order; at most `limit` of them.
  std::vector<double> numbers(size_t limit) const;
  /// Exactly `count` integers; one stands for all. `otherwise` when the member is missing or null.
  std::vector<int64_t> integers(std::string_view key, size_t count, int64_t otherwise) const;

  /// The value as JSON text.
  std::string dump() const;

  /// "config.layers[3].config.strides": for messages.
  const std::string& where() const { return where_; }
  [[noreturn]] void wrong(std::string_view expected) const;

 private:
  Config(std::shared_ptr<const Json> document, const Json* value, std::string where)
      : document_(std::move(document)), value_(value), where_(std::move(where)) {}

  std::shared_ptr<const Json> document_;
  const Json* value_;
  std::string where_;
};

}  // namespace leadline::keras
