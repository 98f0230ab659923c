// SPDX-License-Identifier: Apache-2.0
// The bytes of a tensor, who owns them, and their elements as C++ sees them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "leadline/types.h"

namespace leadline {

/// The type of tensors whose elements are T; nothing for std::byte, which stands for the bytes of any tensor. Types
/// without a C++ type of their own (float16, int4, string, ...) are reached through std::byte alone.
template <typename T>
constexpr std::optional<DType> element_type() {
  using E = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<E, std::byte>) {
    return std::nullopt;
  } else if constexpr (std::is_same_v<E, float>) {
    return DType::kFloat32;
  } else if constexpr (std::is_same_v<E, double>) {
    return DType::kFloat64;
  } else if constexpr (std::is_same_v<E, bool>) {
    return DType::kBool;
  } else {
    static_assert(std::is_integral_v<E> && !std::is_same_v<E, wchar_t>, "no tensor has elements of this type");
    constexpr bool kSigned = std::is_signed_v<E>;
    if constexpr (sizeof(E) == 1) return kSigned ? DType::kInt8 : DType::kUInt8;
    if constexpr (sizeof(E) == 2) return kSigned ? DType::kInt16 : DType::kUInt16;
    if constexpr (sizeof(E) == 4) return kSigned ? DType::kInt32 : DType::kUInt32;
    if constexpr (sizeof(E) == 8) return kSigned ? DType::kInt64 : DType::kUInt64;
  }
}

/// Which input or output is meant: by its position, or by its name.
class TensorKey {
 public:
  TensorKey(int position) : position_(position) {}           // NOLINT(google-explicit-constructor): input<float>(0)
  TensorKey(const char* name) : name_(name) {}               // NOLINT(google-explicit-constructor): input<float>("x")
  TensorKey(std::string_view name) : name_(name) {}          // NOLINT(google-explicit-constructor)
  TensorKey(const std::string& name) : name_(name) {}        // NOLINT(google-explicit-constructor)
  std::optional<int> position() const { return position_; }  ///< nothing: it is meant by name
  std::string_view name() const { return name_; }

 private:
  std::optional<int> position_;
  std::string_view name_;
};

/// Memory of an input, output or variable. The bytes live as long as someone holds `owner`, also when the interpreter
/// is resized or destroyed.
struct TensorMemory {
  std::shared_ptr<const void> owner;
  std::byte* data = nullptr;
  int64_t bytes = 0;
  DType dtype = DType::kFloat32;
  Shape shape;
  bool read_only = false;  ///< constants, and inputs that the caller bound as such: must not be written to

  /// The elements, for reading. Throws Error(kInvalidArgument) when the tensor's type is not that of T.
  template <typename T>
  std::span<const T> values() const {
    check_elements(element_type<T>(), false);
    return {reinterpret_cast<const T*>(data), static_cast<size_t>(bytes) / sizeof(T)};
  }
  /// The same for writing. Throws Error(kInvalidArgument) for read-only memory too.
  template <typename T>
  std::span<T> memory() const {
    check_elements(element_type<T>(), true);
    return {reinterpret_cast<T*>(data), static_cast<size_t>(bytes) / sizeof(T)};
  }

 private:
  void check_elements(std::optional<DType> wanted, bool write) const;
};

}  // namespace leadline
