// SPDX-License-Identifier: Apache-2.0
// MEAN SUM REDUCE_MAX REDUCE_MIN REDUCE_PROD REDUCE_ANY REDUCE_ALL.
//
// Without values to reduce the result is the reduction's neutral element; the mean of no floats is NaN.
#include "ops/reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>

#include "kernels/quant/fixed_point.h"
#include "kernels/reduce/mean.h"
#include "kernels/reduce/reduce.h"
#include "ops/common.h"
#include "ops/families.h"
#include "ops/half_activations.h"
#include "ops/loops/reduce.h"
#include "ops/quantization_rules.h"

namespace leadline::ops {
namespace {

using kernels::Multiplier;
using kernels::ReducePlan;

enum class Reduction { kMean, kSum, kMax, kMin, kProd, kAny, kAll };

/// Which axes are reduced; repeated and negative axes are fine. A scalar has none, whatever the list says.
std::array<bool, kMaxRank> reduced_axes(const OpContext& c) {
  std::array<bool, kMaxRank> reduce{};
  const int rank = c.input(0).shape.rank();
  if (rank == 0) return reduce;
  for (int64_t axis : known_ints(c, 1)) reduce[static_cast<size_t>(resolve_axis(c, axis, rank))] = true;
  return reduce;
}

bool quantized_type(DType type) { return type == DType::kInt8 || type == DType::kUInt8 || type == DType::kInt16; }

template <Reduction reduction>
void check_reduce_types(const OpContext& c) {
  if (reduction == Reduction::kAny || reduction == Reduction::kAll) {
    c.require_input_type(0, {DType::kBool});
  } else {
    c.require_input_type(0,
                         {DType::kFloat32, DType::kInt32, DType::kInt64, DType::kUInt8, DType::kInt8, DType::kInt16});
  }
  c.require_output_type(0, {c.input(0).dtype()});
  c.require_input_type(1, {DType::kInt32, DType::kInt64});
  const DType type = c.input(0).dtype();
  if (!quantized_type(type)) return;
  const Quantization& in = c.input(0).quantization();
  const Quantization& out = c.output(0).quantization();
  if (type == DType::kInt16) {
    c.require(in.zero_point0() == 0 && out.zero_point0() == 0, "int16 zero points are {} and {}, expected 0",
              in.zero_point0(), out.zero_point0());
  }
  if (reduction == Reduction::kMax || reduction == Reduction::kMin) {
    c.require(in.scale0() == out.scale0() && in.zero_point0() == out.zero_point0(),
              "input and output are quantized differently");
    return;
  }
  if (reduction == Reduction::kProd) {
    if (!in.quantized()) return;
    c.require_input_type(0, {DType::kInt8, DType::kInt16});
  }
  c.require_quantized(c.input(0), "input");
  c.require_quantized(c.output(0), "output");
}

template <Reduction reduction>
void infer_reduce(InferContext& c) {
  check_reduce_types<reduction>(c);
  if (!c.known(1) && c.input(0).shape.rank() > 0) return c.defer();
  const Shape& in = c.input(0).shape;
  const auto reduce = reduced_axes(c);
  const bool keep_dims = c.attributes<ReduceAttributes>().keep_dims;
  Shape out;
  for (int i = 0; i < in.rank(); ++i) {
    if (!reduce[static_cast<size_t>(i)]) {
      out.push_back(in[i]);
    } else if (keep_dims) {
      out.push_back(1);
    }
  }
  c.set_output_shape(0, out);
}

/// Runs one reduction over all outputs.
template <typename T, typename Op, typename Finish>
void run_reduce(RunContext& c, const ReducePlan& plan, const Op& op, const Finish& finish) {
  reduce(c.pool(), plan, op, c.input(0).as<T>(), finish);
}

template <typename T, typename Op>
std::unique_ptr<Kernel> plain_reduce_kernel(const ReducePlan& plan) {
  return make_kernel([plan](RunContext& c) {
    T* out = c.output(0).mutable_as<T>();
    run_reduce<T>(c, plan, Op{}, [out](typename Op::Acc acc, int64_t o) { out[o] = static_cast<T>(acc); });
  });
}

/// The reduced axes lie together outside kept ones, as those of an NHWC image's pixels do.
bool reduces_columns(const ReducePlan& plan) { return !plan.inner_reduced && plan.reduced.rank <= 1; }

/// Calls columns(ColumnSums<T>, rows, state) for blocks of neighbouring outputs, in parallel; see reduces_columns().
template <typename T, typename Columns>
void run_columns(RunContext& c, const ReducePlan& plan, const Columns& columns) {
  constexpr int64_t kMostColumns = 256;
  constexpr int64_t kLeastColumns = 64 / static_cast<int64_t>(sizeof(T));  // a cache line
  // As many blocks for each thread; the last one takes the rest.
  const int64_t share = (plan.inner + c.pool().size() - 1) / c.pool().size();
  const int64_t pieces = share / kMostColumns + 1;
  const int64_t block = std::max<int64_t>(1, share / pieces / kLeastColumns) * kLeastColumns;
  const int64_t blocks = std::max<int64_t>(1, plan.inner / block);
  const int64_t stride = plan.reduced.rank == 0 ? 0 : plan.reduced.stride[0];
  // Vectors of 16 bytes at least.
  const double work =
      static_cast<double>(plan.reduced_count) * static_cast<double>(block * static_cast<int64_t>(sizeof(T))) / 16.0;
  c.pool().for_pieces(plan.kept.count * blocks, work, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t number = b % blocks;
      const int64_t first = number * block;
      const int64_t size = number + 1 == blocks ? plan.inner - first : block;
      const kernels::ColumnSums<T> sums{c.input(0).as<T>() + plan.kept.offset(b / blocks) + first, stride,
                                        plan.reduced.count, size,
                                        c.output(0).mutable_as<T>() + b / blocks * plan.inner + first};
      if (work <= kLongPieceCost) {
        columns(sums, {0, sums.rows}, nullptr);
        continue;
      }
      kernels::ColumnState state;
      for_boxes<1>({{{{0, sums.rows}, kernels::kColumnSumRows}}}, work / static_cast<double>(sums.rows),
                   [&](const auto& box) { columns(sums, box[0], &state); });
    }
  });
}

/// Sums of floats, divided.
std::unique_ptr<Kernel> float_sum_kernel(const ReducePlan& plan, double divisor) {
  if (reduces_columns(plan)) {
    return make_kernel([plan, divisor, columns = kernels::mean_columns_f32()](RunContext& c) {
      run_columns<float>(c, plan,
                         [&](const kernels::ColumnSums<float>& sums, IndexRange rows, kernels::ColumnState* state) {
                           columns(sums, divisor, rows, state);
                         });
    });
  }
  if (!plan.inner_reduced) {
    return make_kernel([plan, divisor](RunContext& c) {
      auto* out = c.output(0).mutable_as<float>();
      run_reduce<float>(c, plan, kernels::SumOp<float>{},
                        [=](double sum, int64_t o) { out[o] = static_cast<float>(sum / divisor); });
    });
  }
  return make_kernel([plan, divisor, add_row = kernels::add_row_f32()](RunContext& c) {
    const auto* in = c.input(0).as<float>();
    auto* out = c.output(0).mutable_as<float>();
    const double work = static_cast<double>(plan.reduced_count) / 4.0;
    c.pool().for_pieces(plan.kept.count, work, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const float* base = in + plan.kept.offset(o);
        double sum = 0.0;
        for_boxes<2>({{{{0, plan.reduced.count}}, {{0, plan.inner}, kernels::kAddRowGrain}}}, 0.25,
                     [&](const auto& box) {
                       for (int64_t r = box[0].begin; r < box[0].end; ++r) {
                         sum = add_row(sum, base + plan.reduced.offset(r) + box[1].begin, box[1].size());
                       }
                     });
        out[o] = static_cast<float>(sum / divisor);
      }
    });
  });
}

/// Means of integers are cut off towards zero.
template <typename T>
std::unique_ptr<Kernel> mean_kernel(const ReducePlan& plan) {
  return make_kernel([plan](RunContext& c) {
    T* out = c.output(0).mutable_as<T>();
    run_reduce<T>(c, plan, kernels::SumOp<T>{}, [out, n = plan.reduced_count](uint64_t sum, int64_t o) {
      out[o] = static_cast<T>(static_cast<int64_t>(sum) / n);
    });
  });
}

/// TFLite's fixed-point mean: 1/n is folded into the multiplier without losing its precision.
Multiplier divided_multiplier(Multiplier m, int64_t n) {
  int shift = std::min(63 - std::countl_zero(static_cast<uint64_t>(n)), 32);
  shift = std::max(0, std::min(shift, 31 + m.shift));
  return {static_cast<int32_t>((int64_t{m.value} << shift) / n), m.shift - shift};
}

/// XNNPACK's mean of 8-bit values, which LiteRT uses: one float32 factor, rounded half to even.
template <typename T>
std::unique_ptr<Kernel> direct_mean_kernel(const PrepareContext& c, const ReducePlan& plan) {
  const Quantization& in_q = c.input(0).quantization();
  const Quantization& out_q = c.output(0).quantization();
  const float scale = in_q.scale0() / out_q.scale0() / static_cast<float>(plan.reduced_count);
  const int64_t offset = -int64_t{in_q.zero_point0()} * plan.reduced_count;
  if (reduces_columns(plan) && plan.reduced_count <= kernels::kMaxSummedRows8 && std::abs(offset) <= int64_t{1} << 30 &&
      std::isfinite(scale)) {
    const kernels::MeanLevel level{static_cast<int32_t>(offset), scale, out_q.zero_point0()};
    return make_kernel([plan, level, columns = kernels::mean_columns_8<T>()](RunContext& run) {
      run_columns<T>(run, plan, [&](const kernels::ColumnSums<T>& sums, IndexRange rows, kernels::ColumnState* state) {
        columns(sums, level, rows, state);
      });
    });
  }
  return make_kernel([plan, scale, in_zero = in_q.zero_point0(), out_zero = out_q.zero_point0()](RunContext& run) {
    T* out = run.output(0).mutable_as<T>();
    const auto lo = static_cast<float>(std::numeric_limits<T>::min() - out_zero);
    const auto hi = static_cast<float>(std::numeric_limits<T>::max() - out_zero);
    run_reduce<T>(run, plan, kernels::SumOp<T>{}, [&](uint64_t sum, int64_t o) {
      const int64_t shifted = static_cast<int64_t>(sum) - in_zero * plan.reduced_count;
      const float level = std::clamp(static_cast<float>(shifted) * scale, lo, hi);
      out[o] = static_cast<T>(static_cast<int32_t>(std::lrint(level)) + out_zero);
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> quantized_mean_kernel(const PrepareContext& c, const ReducePlan& plan) {
  const Quantization& in_q = c.input(0).quantization();
  const Quantization& out_q = c.output(0).quantization();
  if (sizeof(T) == 1 && plan.reduced_count > 0) return direct_mean_kernel<T>(c, plan);
  const Multiplier whole = kernels::quantize_multiplier(static_cast<double>(in_q.scale0()) / out_q.scale0());
  const Multiplier m = divided_multiplier(whole, plan.reduced_count);
  return make_kernel([plan, m, in_zero = in_q.zero_point0(), out_zero = out_q.zero_point0()](RunContext& run) {
    T* out = run.output(0).mutable_as<T>();
    run_reduce<T>(run, plan, kernels::SumOp<T>{}, [&](uint64_t sum, int64_t o) {
      const int64_t shifted = static_cast<int64_t>(sum) - in_zero * plan.reduced_count;
      const int64_t value = int64_t{kernels::multiply(kernels::saturate_i32(shifted), m)} + out_zero;
      out[o] = static_cast<T>(std::clamp<int64_t>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    });
  });
}

/// TFLite rescales quantized sums in floats.
template <typename T>
std::unique_ptr<Kernel> quantized_sum_kernel(const PrepareContext& c, const ReducePlan& plan) {
  const Quantization& in_q = c.input(0).quantization();
  const Quantization& out_q = c.output(0).quantization();
  const float scale = in_q.scale0() / out_q.scale0();
  const float bias = static_cast<float>(-in_q.zero_point0()) * scale * static_cast<float>(plan.reduced_count);
  return make_kernel([plan, scale, bias, out_zero = out_q.zero_point0()](RunContext& run) {
    T* out = run.output(0).mutable_as<T>();
    run_reduce<T>(run, plan, kernels::SumOp<T>{}, [&](uint64_t sum, int64_t o) {
      const float real = std::round(static_cast<float>(static_cast<int64_t>(sum)) * scale + bias);
      // An infinite scale times zero is not a number; the lowest value is as good as any then.
      const float level = std::isnan(real) ? -std::numeric_limits<float>::max() : real;
      out[o] = static_cast<T>(std::clamp(level + static_cast<float>(out_zero),
                                         static_cast<float>(std::numeric_limits<T>::min()),
                                         static_cast<float>(std::numeric_limits<T>::max())));
    });
  });
}

/// x * m with the factor reduced to 16 bits, as multiply_wide computes it, but wrapping around where that saturates:
/// products that overflow are noise, yet the same noise as TFLite's.
int32_t rescale_product(int64_t x, Multiplier m) {
  const int total_shift = 15 - m.shift;
  if (total_shift <= 0) return kernels::multiply_wide(x, m);
  const int64_t reduced = m.value < 0x7FFF0000 ? (m.value + (1 << 15)) >> 16 : 0x7FFF;
  return static_cast<int32_t>((x * reduced + (int64_t{1} << (total_shift - 1))) >> total_shift);
}

/// Products are rescaled after every factor, so the values are taken in order, output by output.
template <typename T>
std::unique_ptr<Kernel> quantized_prod_kernel(const PrepareContext& c, const ReducePlan& plan) {
  const Quantization& in_q = c.input(0).quantization();
  const Quantization& out_q = c.output(0).quantization();
  const double root = std::pow(static_cast<double>(out_q.scale0()), 1.0 / static_cast<double>(plan.reduced_count));
  const Multiplier m = kernels::quantize_multiplier(static_cast<double>(in_q.scale0()) / root);
  return make_kernel([plan, m, in_zero = in_q.zero_point0(), out_zero = out_q.zero_point0()](RunContext& run) {
    const T* in = run.input(0).as<T>();
    T* out = run.output(0).mutable_as<T>();
    const int64_t inner_kept = plan.inner_reduced ? 1 : plan.inner;
    const int64_t inner_reduced = plan.inner_reduced ? plan.inner : 1;
    const double work = 8.0 * static_cast<double>(plan.reduced_count);
    run.pool().for_pieces(plan.kept.count * inner_kept, work, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const T* base = in + plan.kept.offset(o / inner_kept) + o % inner_kept;
        int32_t product = 0;
        for_boxes<2>({{{{0, plan.reduced.count}}, {{0, inner_reduced}}}}, 8, [&](const auto& box) {
          for (int64_t r = box[0].begin; r < box[0].end; ++r) {
            const T* row = base + plan.reduced.offset(r);
            for (int64_t i = box[1].begin; i < box[1].end; ++i) {
              const int32_t factor = row[i] - in_zero;
              product = r + i == 0 ? factor : rescale_product(int64_t{product} * factor, m);
            }
          }
        });
        const int64_t value = int64_t{rescale_product(product, m)} + out_zero;
        out[o] =
            static_cast<T>(std::clamp<int64_t>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
      }
    });
  });
}

/// Nothing to reduce along: the values themselves.
std::unique_ptr<Kernel> copy_kernel() {
  return make_kernel([](RunContext& c) {
    if (c.output(0).bytes > 0) copy_bytes(c.output(0).data, c.input(0).data, c.output(0).bytes);
  });
}

/// The input has no values, but the output may have some.
template <Reduction reduction, typename T>
std::unique_ptr<Kernel> fill_kernel(const PrepareContext& c) {
  T value{};
  if (quantized_type(c.input(0).dtype()) && (reduction == Reduction::kSum || reduction == Reduction::kMean)) {
    value = static_cast<T>(c.output(0).quantization().zero_point0());
  } else if (reduction == Reduction::kMean) {
    value = std::numeric_limits<T>::quiet_NaN();  // 0 for integers
  } else if (reduction == Reduction::kMax) {
    value = std::numeric_limits<T>::lowest();
  } else if (reduction == Reduction::kMin) {
    value = std::numeric_limits<T>::max();
  } else if (reduction == Reduction::kProd || reduction == Reduction::kAll) {
    value = T{1};
  }
  return make_kernel([value](RunContext& run) {
    T* out = run.output(0).mutable_as<T>();
    for_pieces(run.output(0).elements(), 1,
               [&](int64_t begin, int64_t end) { std::fill(out + begin, out + end, value); });
  });
}

template <Reduction reduction, typename T>
std::unique_ptr<Kernel> typed_kernel(const PrepareContext& c, const ReducePlan& plan) {
  constexpr bool kQuantized = sizeof(T) <= 2;
  if constexpr (reduction == Reduction::kMax) return plain_reduce_kernel<T, kernels::ExtremeOp<T, true>>(plan);
  if constexpr (reduction == Reduction::kMin) return plain_reduce_kernel<T, kernels::ExtremeOp<T, false>>(plan);
  if constexpr (reduction == Reduction::kSum) {
    if constexpr (kQuantized) {
      return quantized_sum_kernel<T>(c, plan);
    } else if constexpr (std::is_same_v<T, float>) {
      return float_sum_kernel(plan, 1.0);
    } else {
      return plain_reduce_kernel<T, kernels::SumOp<T>>(plan);
    }
  }
  if constexpr (reduction == Reduction::kMean) {
    if constexpr (kQuantized) {
      return quantized_mean_kernel<T>(c, plan);
    } else if constexpr (std::is_same_v<T, float>) {
      return float_sum_kernel(plan, static_cast<double>(plan.reduced_count));
    } else {
      return mean_kernel<T>(plan);
    }
  }
  if constexpr (reduction == Reduction::kProd) {
    if constexpr (kQuantized) {
      if (c.input(0).quantization().quantized()) return quantized_prod_kernel<T>(c, plan);
    }
    return plain_reduce_kernel<T, kernels::ProdOp<T>>(plan);
  }
}

template <Reduction reduction>
std::unique_ptr<Kernel> prepare_reduce(PrepareContext& c) {
  const Shape& in = c.input(0).shape;
  const auto reduce = reduced_axes(c);
  const bool empty = in.elements() == 0;
  ReducePlan plan;
  if (!empty) plan = kernels::fold_shape(in.dims(), reduce);
  if constexpr (reduction == Reduction::kAny || reduction == Reduction::kAll) {
    if (empty) return fill_kernel<reduction, uint8_t>(c);
    return plain_reduce_kernel<uint8_t, kernels::LogicOp<reduction == Reduction::kAny>>(plan);
  } else {
    // TFLite copies a product of one factor without rescaling it.
    if (!empty && reduction == Reduction::kProd && plan.reduced_count == 1) return copy_kernel();
    auto make = [&](auto zero) -> std::unique_ptr<Kernel> {
      using T = decltype(zero);
      if (empty) return fill_kernel<reduction, T>(c);
      return typed_kernel<reduction, T>(c, plan);
    };
    switch (c.input(0).dtype()) {
      case DType::kFloat32:
        return make(float{});
      case DType::kInt32:
        return make(int32_t{});
      case DType::kInt64:
        return make(int64_t{});
      case DType::kUInt8:
        return make(uint8_t{});
      case DType::kInt8:
        return make(int8_t{});
      default:
        return make(int16_t{});
    }
  }
}

template <Reduction reduction>
OpDef reduction_op(const ir::OpId& id, int version, std::string_view types, const QuantizationRule& rule = {},
                   std::string_view fast = {}) {
  return {.id = id,
          .max_version = version,
          .min_inputs = 2,
          .max_inputs = 2,
          .required_inputs = 2,
          .options = builtin_options(27),
          .make_attributes = make_attributes<ReduceAttributes>,
          .infer = AlsoHalf<infer_reduce<reduction>, prepare_reduce<reduction>>::infer,
          .prepare = AlsoHalf<infer_reduce<reduction>, prepare_reduce<reduction>>::prepare,
          .quantize = rule,
          .types = types,
          .fast = fast};
}

}  // namespace

void register_reduce(Registry& registry) {
  constexpr std::string_view kTypes = "f32 f16 i32 i64 u8 i8 i16";
  registry.add(reduction_op<Reduction::kMean>(op::kMean, 3, kTypes, free_rule({.int8 = 2, .int16 = 3}), "f32 i8 u8"));
  registry.add(reduction_op<Reduction::kSum>(op::kSum, 2, kTypes, free_rule({.int8 = 2}), "f32"));
  registry.add(reduction_op<Reduction::kProd>(op::kReduceProd, 2, kTypes, free_rule({.int8 = 2, .int16 = 2})));
  registry.add(reduction_op<Reduction::kMax>(op::kReduceMax, 3, kTypes, same_scale_rule({.int8 = 2, .int16 = 3})));
  registry.add(reduction_op<Reduction::kMin>(op::kReduceMin, 3, kTypes, same_scale_rule({.int8 = 2, .int16 = 3})));
  registry.add(reduction_op<Reduction::kAny>(op::kReduceAny, 1, "bool"));
  registry.add(reduction_op<Reduction::kAll>(op::kReduceAll, 1, "bool"));
}

}  // namespace leadline::ops
