// SPDX-License-Identifier: Apache-2.0
// ARG_MAX ARG_MIN. Of equal values the first wins; NaN loses against every number.
#include "ops/arg_min_max.h"

#include <algorithm>
#include <cmath>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

constexpr int64_t kSearchBlock = 64;  // neighbouring outputs searched together

template <bool kMax>
void infer_arg_min_max(InferContext& c) {
  c.require_input_type(
      0, {DType::kFloat32, DType::kUInt8, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kBool});
  c.require_input_type(1, {DType::kInt32, DType::kInt64});
  c.require_output_type(0, {DType::kInt32, DType::kInt64});
  const DType wanted = c.attributes<ArgMinMaxAttributes>().output_type;
  c.require(wanted == c.output(0).dtype(), "output_type is {}, but the output '{}' has type {}", dtype_name(wanted),
            c.output(0).value->name, dtype_name(c.output(0).dtype()));
  const Shape& in = c.input(0).shape;
  c.require(in.rank() >= 1, "the input is a scalar, expected at least one dimension");
  c.require(c.input(1).shape.elements() == 1, "axis has shape {}, expected one value", c.input(1).shape.to_string());
  if (!c.known(1)) return c.defer();
  const int axis = resolve_axis(c, known_ints(c, 1)[0], in.rank());
  c.require(in[axis] > 0, "axis {} of shape {} is empty", axis, in.to_string());
  Shape out;
  for (int i = 0; i < in.rank(); ++i) {
    if (i != axis) out.push_back(in[i]);
  }
  c.set_output_shape(0, out);
}

template <bool kMax, typename T>
bool better(T candidate, T best) {
  if constexpr (std::is_floating_point_v<T>) {
    return !std::isnan(candidate) && (std::isnan(best) || (kMax ? candidate > best : candidate < best));
  } else {
    return kMax ? candidate > best : candidate < best;
  }
}

/// `n` neighbouring outputs: value i of output k lies at in[i * stride + k].
template <bool kMax, typename T, typename Index>
void search(const T* in, int64_t size, int64_t stride, int64_t n, Index* out) {
  T best[kSearchBlock];
  Index index[kSearchBlock];
  for (int64_t k = 0; k < n; ++k) {
    best[k] = in[k];
    index[k] = 0;
  }
  for_items(size, static_cast<double>(n), [&](int64_t i) {
    const T* row = in + i * stride;
    for (int64_t k = 0; k < n; ++k) {
      const bool wins = better<kMax>(row[k], best[k]);
      best[k] = wins ? row[k] : best[k];
      index[k] = wins ? static_cast<Index>(i) : index[k];
    }
  });
  std::copy_n(index, n, out);
}

/// One output whose values are neighbours. Integers: a plain extreme first, which vectorises, then its place.
template <bool kMax, typename T, typename Index>
Index search_row(const T* in, int64_t size) {
  if constexpr (std::is_floating_point_v<T>) {
    int64_t index = 0;
    for_items(size, 1, [&](int64_t i) {
      if (better<kMax>(in[i], in[index])) index = i;
    });
    return static_cast<Index>(index);
  } else {
    T best = in[0];
    for_pieces(size, 0.25, [&](int64_t begin, int64_t end) {
      T extreme = best;
      for (int64_t i = begin; i < end; ++i) extreme = kMax ? std::max(extreme, in[i]) : std::min(extreme, in[i]);
      best = extreme;
    });
    int64_t index = 0;
    for_pieces(size, 1, [&](int64_t begin, int64_t end) {
      index = std::find(in + begin, in + end, best) - in;
      return index == end;
    });
    return static_cast<Index>(index);
  }
}

template <bool kMax, typename T, typename Index>
std::unique_ptr<Kernel> make_search(int64_t outer, int64_t size, int64_t inner) {
  return make_kernel([=](RunContext& c) {
    const T* in = c.input(0).as<T>();
    Index* out = c.output(0).mutable_as<Index>();
    if (inner == 1) {
      c.pool().for_pieces(outer, static_cast<double>(size), [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) out[o] = search_row<kMax, T, Index>(in + o * size, size);
      });
      return;
    }
    const int64_t blocks = (inner + kSearchBlock - 1) / kSearchBlock;
    const double work = static_cast<double>(size) * static_cast<double>(kSearchBlock);
    c.pool().for_pieces(outer * blocks, work, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t o = b / blocks;
        const int64_t k = b % blocks * kSearchBlock;
        search<kMax>(in + o * size * inner + k, size, inner, std::min(kSearchBlock, inner - k), out + o * inner + k);
      }
    });
  });
}

template <bool kMax>
std::unique_ptr<Kernel> prepare_arg_min_max(PrepareContext& c) {
  const Shape& in = c.input(0).shape;
  if (c.output(0).shape.elements() == 0) return make_kernel([](RunContext&) {});
  const int axis = resolve_axis(c, known_ints(c, 1)[0], in.rank());
  int64_t outer = 1;
  int64_t inner = 1;
  for (int i = 0; i < axis; ++i) outer *= in[i];
  for (int i = axis + 1; i < in.rank(); ++i) inner *= in[i];
  const bool wide = c.output(0).dtype() == DType::kInt64;
  auto make = [&](auto zero) -> std::unique_ptr<Kernel> {
    using T = decltype(zero);
    if (wide) return make_search<kMax, T, int64_t>(outer, in[axis], inner);
    return make_search<kMax, T, int32_t>(outer, in[axis], inner);
  };
  switch (c.input(0).dtype()) {
    case DType::kFloat32:
      return make(float{});
    case DType::kInt8:
      return make(int8_t{});
    case DType::kInt16:
      return make(int16_t{});
    case DType::kInt32:
      return make(int32_t{});
    case DType::kInt64:
      return make(int64_t{});
    default:
      return make(uint8_t{});  // also bool, stored as 0 and 1
  }
}

template <bool kMax>
OpDef arg_op(const ir::OpId& id, OptionsTable options) {
  return {.id = id,
          .max_version = 3,
          .min_inputs = 2,
          .max_inputs = 2,
          .required_inputs = 2,
          .options = options,
          .make_attributes = make_attributes<ArgMinMaxAttributes>,
          .infer = infer_arg_min_max<kMax>,
          .prepare = prepare_arg_min_max<kMax>,
          .quantize = free_rule({.int8 = 2}),
          .types = "f32 u8 i8 i16 i32 i64 bool"};
}

}  // namespace

void register_arg_min_max(Registry& registry) {
  registry.add(arg_op<true>(op::kArgMax, builtin_options(40)));
  registry.add(arg_op<false>(op::kArgMin, builtin_options(57)));
}

}  // namespace leadline::ops
