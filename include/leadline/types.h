// SPDX-License-Identifier: Apache-2.0
// Element types and shapes, the words every other header speaks in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace leadline {

/// Element type of a tensor. The numbers are those of the .tflite format.
enum class DType : int8_t {
  kFloat32 = 0,
  kFloat16 = 1,
  kInt32 = 2,
  kUInt8 = 3,
  kInt64 = 4,
  kString = 5,
  kBool = 6,
  kInt16 = 7,
  kComplex64 = 8,
  kInt8 = 9,
  kFloat64 = 10,
  kComplex128 = 11,
  kUInt64 = 12,
  kResource = 13,
  kVariant = 14,
  kUInt32 = 15,
  kUInt16 = 16,
  kInt4 = 17,
  kBFloat16 = 18,
  kInt2 = 19,
  kUInt4 = 20,
  kFloat8E4M3FN = 21,
  kFloat8E5M2 = 22,
};
inline constexpr int kDTypeCount = 23;

/// "float32", "int8", ...; never null, also for values outside the enumeration.
const char* dtype_name(DType type) noexcept;

/// Bits one element takes; 0 for types without a fixed size (string, variant). A resource is a 32-bit number.
int dtype_bits(DType type) noexcept;

/// The type called `name` ("float32", "int8", ...), if there is one.
std::optional<DType> dtype_from_name(std::string_view name) noexcept;

/// The largest rank of a tensor. TFLite's own kernels stop at 6 or 8.
inline constexpr int kMaxRank = 8;

/// Dimensions of a tensor, outermost first; rank 0 is a scalar. A value type without heap memory.
/// Invariant: 0 <= rank <= kMaxRank and every dimension >= 0.
class Shape {
 public:
  Shape() = default;
  /// Throws Error(kInvalidArgument) when the rank is above kMaxRank or a dimension is negative.
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);
  explicit Shape(std::span<const int32_t> dims);

  int rank() const noexcept { return rank_; }
  int64_t operator[](int axis) const noexcept { return dims_[static_cast<size_t>(axis)]; }
  std::span<const int64_t> dims() const noexcept { return {dims_.data(), static_cast<size_t>(rank_)}; }
  const int64_t* begin() const noexcept { return dims_.data(); }
  const int64_t* end() const noexcept { return dims_.data() + rank_; }

  /// Sets one dimension; `axis` must be inside the rank and `size` not negative.
  void set(int axis, int64_t size) noexcept { dims_[static_cast<size_t>(axis)] = size; }
  /// Adds an innermost dimension. Throws Error(kInvalidArgument) beyond kMaxRank and for a negative size.
  void push_back(int64_t size);

  /// Number of elements. Shapes that come out of a Graph or of inference fit in int64; others give its maximum.
  int64_t elements() const noexcept;
  /// Number of elements, or nothing when the product does not fit in int64.
  std::optional<int64_t> checked_elements() const noexcept;

  /// "[1, 224, 224, 3]"; "[]" for a scalar.
  std::string to_string() const;

  friend bool operator==(const Shape& a, const Shape& b) noexcept;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

/// Bytes that a tensor of `type` and `shape` takes, sub-byte types packed; nothing when it does not fit
/// in int64. Types without a fixed size give 0.
std::optional<int64_t> storage_bytes(DType type, const Shape& shape) noexcept;

/// `text` (a name from a model, a message about one) fit for a terminal or a log: control characters, marks that change
/// the direction of writing and bytes that are not UTF-8 are written as numbers (a backslash, x1b). With
/// `keep_newlines` line ends stay too.
std::string printable(std::string_view text, bool keep_newlines = false);

}  // namespace leadline
