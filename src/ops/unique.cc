// SPDX-License-Identifier: Apache-2.0
// UNIQUE: the different values of a list in the order in which they come first, and for every element the place of its
// value among them. How many there are is known only by counting, which takes as much workspace as the run itself.
#include "ops/unique.h"

#include <bit>
#include <cstring>
#include <limits>

#include "ops/families.h"
#include "ops/movement.h"
#include "ops/resources.h"

namespace leadline::ops {
namespace {

enum Output { kValues = 0, kPlaces = 1 };

/// A set of the first elements of a list, by open addressing.
struct Slot {
  int32_t first = -1;  // element with this value; -1: free
  int32_t place = 0;   // of the value among the different ones
};

int64_t hash_slots(int64_t elements) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, 2 * elements))));
}
int64_t workspace_bytes(int64_t elements) { return hash_slots(elements) * static_cast<int64_t>(sizeof(Slot)); }

/// The bits that stand for a value: equal for equal values. Every NaN equals itself alone.
template <typename T>
uint64_t bits_of(T value) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<uint32_t>(value == 0.0F ? 0.0F : value);
  return static_cast<uint64_t>(value);
}

/// Calls visit(element, place, is_new) for every element in order; returns the number of different values.
template <typename T, typename Visit>
int64_t for_each_place(const T* values, int64_t count, std::byte* workspace, const Visit& visit) {
  auto* slots = reinterpret_cast<Slot*>(workspace);
  const auto mask = static_cast<uint64_t>(hash_slots(count)) - 1;
  for_items(static_cast<int64_t>(mask) + 1, 1, [&](int64_t i) { slots[i] = Slot{}; });
  // Multiplying by 2^64 / golden ratio spreads neighbours; the upper half depends on all bits.
  const auto first_slot = [&](int64_t i) { return ((bits_of(values[i]) * 0x9E3779B97F4A7C15ULL) >> 32) & mask; };
  int32_t found = 0;
  int64_t i = 0;
  uint64_t at = count > 0 ? first_slot(0) : 0;
  // Step by step, since all elements may need the same slot.
  repeat_while(16, [&] {
    if (i == count) return false;
    const bool is_new = slots[at].first < 0;
    if (!is_new && bits_of(values[slots[at].first]) != bits_of(values[i])) {
      at = (at + 1) & mask;
      return true;
    }
    if (is_new) slots[at] = {static_cast<int32_t>(i), found++};
    visit(i, slots[at].place, is_new);
    if (++i < count) at = first_slot(i);
    return true;
  });
  return found;
}

template <typename Body>
auto visit_type(const OpContext& c, DType type, const Body& body) {
  switch (type) {
    case DType::kFloat32:
      return body(float{});
    case DType::kInt8:
      return body(int8_t{});
    case DType::kUInt8:
      return body(uint8_t{});
    case DType::kInt16:
      return body(int16_t{});
    case DType::kInt32:
      return body(int32_t{});
    case DType::kInt64:
      return body(int64_t{});
    default:
      c.fail(ErrorCode::kUnsupported, "type {} is not supported", dtype_name(type));
  }
}

void infer_unique(InferContext& c) {
  c.require_input_type(0, {DType::kFloat32, DType::kInt8, DType::kUInt8, DType::kInt16, DType::kInt32, DType::kInt64});
  require_same_type(c, c.input(0), c.output(kValues));
  // Whatever the attribute says but int64 means int32, as in TFLite.
  const bool wide = c.attributes<UniqueAttributes>().idx_out_type == DType::kInt64;
  c.require_output_type(kPlaces, {wide ? DType::kInt64 : DType::kInt32});
  const Shape& shape = c.input(0).shape;
  c.require(shape.rank() == 1, "the input has shape {}, expected rank 1", shape.to_string());
  const int64_t count = shape[0];
  c.require(count <= std::numeric_limits<int32_t>::max(), "{} elements are too many", count);
  c.set_output_shape(kPlaces, shape);
  if (!c.known(0)) return c.defer();
  const Workspace workspace(c.host().resources(), workspace_bytes(count));
  const int64_t different = visit_type(c, c.input(0).dtype(), [&](auto zero) {
    const auto values = c.input(0).values<decltype(zero)>();
    return for_each_place(values.data(), count, workspace.data(), [](int64_t, int32_t, bool) {});
  });
  c.set_output_shape(kValues, {different});
}

template <typename T, typename Place>
void run_unique(const RunContext& run) {
  const T* in = run.input(0).as<T>();
  T* values = run.output(kValues).mutable_as<T>();
  auto* places = run.output(kPlaces).mutable_as<Place>();
  for_each_place(in, run.input(0).elements(), run.scratch(), [&](int64_t i, int32_t place, bool is_new) {
    places[i] = place;
    if (is_new) values[place] = in[i];
  });
}

std::unique_ptr<Kernel> prepare_unique(PrepareContext& c) {
  c.request_scratch(workspace_bytes(c.input(0).shape[0]));
  const bool wide = c.output(kPlaces).dtype() == DType::kInt64;
  return visit_type(c, c.input(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    return wide ? make_kernel(run_unique<T, int64_t>) : make_kernel(run_unique<T, int32_t>);
  });
}

}  // namespace

void register_unique(Registry& registry) {
  registry.add({.id = op::kUnique,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .min_outputs = 2,
                .max_outputs = 2,
                .options = builtin_options(80),
                .make_attributes = make_attributes<UniqueAttributes>,
                .infer = infer_unique,
                .prepare = prepare_unique,
                .types = "f32 i8 u8 i16 i32 i64"});
}

}  // namespace leadline::ops
