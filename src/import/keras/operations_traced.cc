// SPDX-License-Identifier: Apache-2.0
// What only models have whose layers were followed while they ran (leadline.jobs.traced_config): variables and arrays
// that a layer uses as they are, and arithmetic on sizes that are not known before a run.
#include "import/keras/importer.h"
#include "import/keras/operations.h"
#include "ops/slice.h"

namespace leadline::keras {
namespace {

DType type_setting(const Call& call, DType otherwise) {
  const auto name = setting(call, SIZE_MAX, "dtype");
  if (!name) return otherwise;
  const auto type = dtype_from_name(name->text());
  require(type.has_value(), ErrorCode::kUnsupported, "the type '{}' is unknown", printable(name->text()));
  return *type;
}

/// The size of an axis of a tensor, as a scalar.
Outputs size_of_axis(Call& call) {
  Emitter& e = call.e;
  const int axis = e.axis(call.x(), integer_setting(call, 1, "axis", 0));
  return {e.reshape(e.shape_part(call.x(), axis, axis + 1), {})};
}

Outputs counted_range(Call& call) {
  Emitter& e = call.e;
  const DType type = type_setting(call, DType::kInt32);
  const bool real = type == DType::kFloat32;
  const int like = real ? e.scalar(0.0F) : e.integer(0);
  std::vector<int> inputs;
  for (const char* name : {"start", "stop", "step"}) {
    const int number = operand(call, inputs.size(), name, like);
    inputs.push_back(e.reshape(e.cast(number, real ? DType::kFloat32 : DType::kInt32), {}));
  }
  ops::NodeSpec spec;
  spec.op = "RANGE";
  spec.inputs = inputs;
  spec.outputs = {{e.name("Range"), e.dtype(like), {}, Dims{-1}}};
  return {e.cast(e.builder().add(std::move(spec))[0], type)};
}

Outputs filled(Call& call) {
  Emitter& e = call.e;
  const DType type = type_setting(call, DType::kFloat32);
  int sizes = computed_sizes(call, SIZE_MAX, "shape");
  if (sizes < 0) {
    const auto shape = setting(call, SIZE_MAX, "shape");
    require(shape.has_value(), kBad, "the shape is missing");
    std::vector<int32_t> numbers;
    for (const int64_t size : shape->integers()) {
      require(size >= 0 && size <= INT32_MAX, kBad, "a size is {}, expected 0 to {}", size, INT32_MAX);
      numbers.push_back(static_cast<int32_t>(size));
    }
    sizes = e.ints(numbers);
  }
  const DType made = type == DType::kFloat32 ? type : DType::kInt32;
  const int value = operand(call, SIZE_MAX, "fill_value", made == DType::kFloat32 ? e.scalar(0.0F) : e.integer(0));
  return {e.cast(e.builder().node("FILL", {sizes, e.cast(value, made)}, e.name("Fill"), made), type)};
}

/// One end of a slice: at `axis` of a vector of `rank` zeros.
int slice_end(Call& call, const Argument* given, int axis, int rank) {
  Emitter& e = call.e;
  const auto zeros = [](int count) { return std::vector<int32_t>(static_cast<size_t>(count), 0); };
  if (given == nullptr) return e.ints(zeros(rank));
  if (given->tensor < 0) {
    std::vector<int32_t> all = zeros(rank);
    const int64_t number = given->constant->integer();
    require(number >= INT32_MIN && number <= INT32_MAX, kBad, "an end of {} does not fit 32 bits", number);
    all[static_cast<size_t>(axis)] = static_cast<int32_t>(number);
    return e.ints(all);
  }
  std::vector<int> parts;
  if (axis > 0) parts.push_back(e.ints(zeros(axis)));
  parts.push_back(e.reshape(e.cast(given->tensor, DType::kInt32), {1}));
  if (axis + 1 < rank) parts.push_back(e.ints(zeros(rank - axis - 1)));
  return e.concat(parts, 0);
}

/// x[:, start:stop] along one axis, where the ends may be tensors.
Outputs slice_axis(Call& call) {
  Emitter& e = call.e;
  const int x = call.x();
  const int rank = e.rank(x);
  const int axis = e.axis(x, integer_setting(call, SIZE_MAX, "axis", 0));
  const Argument* start = call.arguments.find(SIZE_MAX, "start");
  const Argument* stop = call.arguments.find(SIZE_MAX, "stop");
  const auto all = static_cast<int32_t>((1U << static_cast<unsigned>(rank)) - 1);
  const auto bit = static_cast<int32_t>(1U << static_cast<unsigned>(axis));
  auto attributes = std::make_shared<ops::StridedSliceAttributes>();
  attributes->begin_mask = start == nullptr ? all : all & ~bit;
  attributes->end_mask = stop == nullptr ? all : all & ~bit;
  ops::NodeSpec spec;
  spec.op = "STRIDED_SLICE";
  spec.inputs = {x, slice_end(call, start, axis, rank), slice_end(call, stop, axis, rank),
                 e.ints(std::vector<int32_t>(static_cast<size_t>(rank), 1))};
  Dims dims = e.dims(x);
  dims[static_cast<size_t>(axis)] = -1;
  spec.outputs = {{e.name("StridedSlice"), e.dtype(x), {}, dims, e.builder().samples(x)}};
  spec.attributes = attributes;
  return e.builder().add(std::move(spec));
}

constexpr LayerClass kTracedOperations[] = {
    {"SizeOfAxis", size_of_axis},
    {"CountedRange", counted_range},
    {"Filled", filled},
    {"SliceAxis", slice_axis},
};

}  // namespace

std::span<const LayerClass> traced_operations() { return kTracedOperations; }

/// A variable or an array of the program that a layer computes with.
Outputs captured_variable(Call& call) {
  require(call.weight_count() == 1, kBad, "the contents are missing");
  const Weight& weight = call.weights()[0];
  const Dims dims(weight.shape);
  const DType type = weight.dtype;
  const bool whole = type == DType::kInt32 || type == DType::kInt64 || type == DType::kBool || type == DType::kInt8 ||
                     type == DType::kUInt8 || type == DType::kInt16;
  if (!whole) return {call.constant(0, "value", dims)};
  call.weight(0, "value", dims);
  return {call.e.builder().constant(call.e.name("value"), type, dims, weight.source)};
}

}  // namespace leadline::keras
