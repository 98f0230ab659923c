// SPDX-License-Identifier: Apache-2.0
// Attributes of a node from names and values of a user.
#pragma once

#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/join.h"
#include "ir/attributes.h"
#include "leadline/model_builder.h"

namespace leadline {

/// Assigns the attributes that are named; what remains unused was not an attribute of the op.
class AttributeSetter final : public ir::FieldVisitor {
 public:
  AttributeSetter(const std::string& op, const std::map<std::string, AttributeValue>& values)
      : op_(op), values_(values) {}

  void field(const char* name, bool& v) override { number(name, v); }
  void field(const char* name, int8_t& v) override { number(name, v); }
  void field(const char* name, int32_t& v) override { number(name, v); }
  void field(const char* name, uint32_t& v) override { number(name, v); }
  void field(const char* name, int64_t& v) override { number(name, v); }
  void field(const char* name, float& v) override { number(name, v); }
  void field(const char* name, std::string& v) override {
    const AttributeValue* value = find(name);
    if (value == nullptr) return;
    const auto* text = std::get_if<std::string>(value);
    require(text != nullptr, ErrorCode::kInvalidArgument, "{}: attribute '{}' is a text", op_, name);
    v = *text;
  }
  void field(const char* name, std::vector<uint8_t>& v) override { list(name, v); }
  void field(const char* name, std::vector<int32_t>& v) override { list(name, v); }
  void field(const char* name, std::vector<uint32_t>& v) override { list(name, v); }
  void field(const char* name, std::vector<int64_t>& v) override { list(name, v); }
  void field(const char* name, std::vector<float>& v) override { list(name, v); }
  void skip() override {}

  void require_all_used() const {
    for (const auto& [name, value] : values_) {
      require(known_.contains(name), ErrorCode::kInvalidArgument, "{} has no attribute '{}'; it has: {}", op_, name,
              known_.empty() ? "none" : join(std::vector(known_.begin(), known_.end()), ", "));
    }
  }

 private:
  const AttributeValue* find(const char* name) {
    known_.insert(name);
    const auto it = values_.find(name);
    return it == values_.end() ? nullptr : &it->second;
  }

  template <typename T, typename Given>
  T converted(const char* name, Given given) const {
    if constexpr (std::is_same_v<T, bool>) {
      return given != Given{};
    } else if constexpr (std::is_integral_v<T>) {
      require(std::is_integral_v<Given>, ErrorCode::kInvalidArgument, "{}: attribute '{}' is an integer", op_, name);
      const auto integer = static_cast<int64_t>(given);
      require(std::in_range<T>(integer), ErrorCode::kInvalidArgument, "{}: attribute '{}' cannot be {}", op_, name,
              integer);
      return static_cast<T>(integer);
    } else {
      return static_cast<T>(given);
    }
  }

  template <typename T>
  void number(const char* name, T& v) {
    const AttributeValue* value = find(name);
    if (value == nullptr) return;
    std::visit(
        [&](const auto& given) {
          using Given = std::decay_t<decltype(given)>;
          if constexpr (std::is_arithmetic_v<Given>) {
            v = converted<T>(name, given);
          } else {
            fail(ErrorCode::kInvalidArgument, "{}: attribute '{}' is one number", op_, name);
          }
        },
        *value);
  }

  template <typename T>
  void list(const char* name, std::vector<T>& v) {
    const AttributeValue* value = find(name);
    if (value == nullptr) return;
    std::visit(
        [&](const auto& given) {
          using Given = std::decay_t<decltype(given)>;
          if constexpr (std::is_same_v<Given, std::vector<int64_t>> || std::is_same_v<Given, std::vector<double>>) {
            v.clear();
            for (const auto element : given) v.push_back(converted<T>(name, element));
          } else {
            fail(ErrorCode::kInvalidArgument, "{}: attribute '{}' is a list of numbers", op_, name);
          }
        },
        *value);
  }

  const std::string& op_;
  const std::map<std::string, AttributeValue>& values_;
  std::set<std::string> known_;
};

}  // namespace leadline
