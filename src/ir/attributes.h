// SPDX-License-Identifier: Apache-2.0
// Attributes of a node: a plain struct beside its op, read, written and printed through one list of fields.
//
// A struct derives from AttributeSet and lists its fields in the order of the format's table slots:
//
//   struct PackAttributes : ir::AttributeSet<PackAttributes> {
//     int32_t values_count = 0;   // the initial value is the format's default
//     int32_t axis = 0;
//     void fields(ir::FieldVisitor& v) { v.field("values_count", values_count); v.field("axis", axis); }
//   };
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "leadline/types.h"

namespace leadline::ir {

/// Walks the fields of an attribute struct in slot order. Readers assign, writers and printers look.
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void field(const char* name, bool& value) = 0;
  virtual void field(const char* name, int8_t& value) = 0;
  virtual void field(const char* name, int32_t& value) = 0;
  virtual void field(const char* name, uint32_t& value) = 0;
  virtual void field(const char* name, int64_t& value) = 0;
  virtual void field(const char* name, float& value) = 0;
  virtual void field(const char* name, std::string& value) = 0;
  virtual void field(const char* name, std::vector<uint8_t>& value) = 0;
  virtual void field(const char* name, std::vector<int32_t>& value) = 0;
  virtual void field(const char* name, std::vector<uint32_t>& value) = 0;
  virtual void field(const char* name, std::vector<int64_t>& value) = 0;
  virtual void field(const char* name, std::vector<float>& value) = 0;
  /// Index of a subgraph that the op calls.
  virtual void subgraph(const char* name, int32_t& index) { field(name, index); }
  virtual void subgraphs(const char* name, std::vector<int32_t>& indices) { field(name, indices); }
  /// A slot of the format that is deprecated and carries nothing.
  virtual void skip() = 0;
  /// What no file has and only passes for runs set, 0 at first: it is printed and compared, but not read or written.
  virtual void run_only(const char* /*name*/, int32_t& /*value*/) {}

  /// An enumeration stored in one byte with the values 0 .. count-1.
  template <typename E>
  void choice(const char* name, E& value, int count) {
    static_assert(std::is_enum_v<E>);
    auto raw = static_cast<int8_t>(value);
    field(name, raw);
    require(raw >= 0 && raw < count, ErrorCode::kInvalidModel, "attribute '{}' is {}, expected 0 to {}", name, raw,
            count - 1);
    value = static_cast<E>(raw);
  }
  void choice(const char* name, DType& value) { choice(name, value, kDTypeCount); }
};

/// Type-erased attributes as a Node holds them.
class Attributes {
 public:
  virtual ~Attributes() = default;
  virtual void visit(FieldVisitor& visitor) = 0;
  virtual std::unique_ptr<Attributes> clone() const = 0;
  /// Identifies the struct: the address that T::tag() returns.
  virtual const void* type() const = 0;
  /// Bytes beyond those of a few plain fields.
  virtual int64_t extra_bytes() const { return 0; }
};

/// Holds a struct with `fields(FieldVisitor&)` in a Node.
template <typename T>
struct AttributeSet : Attributes {
  void visit(FieldVisitor& visitor) final { static_cast<T*>(this)->fields(visitor); }
  std::unique_ptr<Attributes> clone() const final { return std::make_unique<T>(static_cast<const T&>(*this)); }
  const void* type() const final { return tag(); }
  static const void* tag() {
    static constexpr char address = 0;
    return &address;
  }
};

/// The attributes as struct A. Throws Error(kInternal) when they are another one.
template <typename A>
const A& attributes_as(const Attributes& attributes) {
  require(attributes.type() == A::tag(), ErrorCode::kInternal, "attributes of another op than expected");
  return static_cast<const A&>(attributes);
}
template <typename A>
A& attributes_as(Attributes& attributes) {
  return const_cast<A&>(attributes_as<A>(static_cast<const Attributes&>(attributes)));
}
/// Null when they are another struct.
template <typename A>
const A* attributes_if(const Attributes& attributes) {
  return attributes.type() == A::tag() ? &static_cast<const A&>(attributes) : nullptr;
}

/// For ops without fields.
struct NoAttributes : AttributeSet<NoAttributes> {
  void fields(FieldVisitor&) {}
};

enum class Padding : int8_t { kSame = 0, kValid = 1 };
inline constexpr int kPaddingCount = 2;

/// Activation fused into an arithmetic op.
enum class Activation : int8_t { kNone = 0, kRelu = 1, kReluN1To1 = 2, kRelu6 = 3, kTanh = 4, kSignBit = 5 };
inline constexpr int kActivationCount = 6;

}  // namespace leadline::ir
