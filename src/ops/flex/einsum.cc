// SPDX-License-Identifier: Apache-2.0
// Flex ops that sum products: Einsum of one or two tensors, MatMul, BatchMatMul and its versions, Cross. One loop nest
// serves all: every axis is kept (part of the result) or summed, and each tensor has a stride along it, which may be 0.
#include <algorithm>
#include <string>

#include "ops/flex/families.h"
#include "ops/flex/flex.h"

namespace leadline::ops {
namespace {

/// An axis of the sum of products; strides are in elements, 0 where a tensor does not have the axis.
struct ProductAxis {
  int64_t size = 1;
  int64_t a = 0;
  int64_t b = 0;
};

struct ProductPlan {
  std::vector<ProductAxis> kept;    // in the order of the result
  std::vector<ProductAxis> summed;  // the innermost last
  Shape result;
  bool conjugate_a = false;
  bool conjugate_b = false;

  int64_t terms() const {
    int64_t count = 1;
    for (const ProductAxis& axis : summed) count *= axis.size;
    return count;
  }
};

template <typename T>
T conjugated(T value) {
  if constexpr (kIsComplex<T>)
    return std::conj(value);
  else
    return value;
}

template <typename T>
struct SumOf {
  using Type = T;
};
template <>
struct SumOf<kernels::Half> {
  using Type = float;
};
template <>
struct SumOf<kernels::BFloat16> {
  using Type = float;
};

/// Offsets of item `index` of the axes.
std::pair<int64_t, int64_t> offsets(const std::vector<ProductAxis>& axes, size_t count, int64_t index) {
  int64_t a = 0;
  int64_t b = 0;
  for (size_t i = count; i-- > 0;) {
    const int64_t at = index % axes[i].size;
    index /= axes[i].size;
    a += at * axes[i].a;
    b += at * axes[i].b;
  }
  return {a, b};
}

template <typename T>
std::unique_ptr<Kernel> product_kernel(ProductPlan plan) {
  if (plan.summed.empty()) plan.summed.push_back({});
  return make_kernel([plan = std::move(plan)](RunContext& run) {
    using Sum = typename SumOf<T>::Type;
    const T* a = run.input(0).as<T>();
    const T* b = run.input_count() > 1 ? run.input(1).as<T>() : nullptr;
    T* out = run.output(0).mutable_as<T>();
    const int64_t terms = plan.terms();
    const ProductAxis inner = plan.summed.back();
    const int64_t rounds = inner.size == 0 ? 0 : terms / inner.size;
    run.pool().for_pieces(plan.result.elements(), 8 + 2 * static_cast<double>(terms), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto [a0, b0] = offsets(plan.kept, plan.kept.size(), i);
        Sum sum(0);
        for (int64_t round = 0; round < rounds; ++round) {
          const auto [a1, b1] = offsets(plan.summed, plan.summed.size() - 1, round);
          const T* x = a + a0 + a1;
          const T* y = b + b0 + b1;
          for (int64_t k = 0; k < inner.size; ++k) {
            auto left = static_cast<Sum>(x[k * inner.a]);
            if (plan.conjugate_a) left = conjugated(left);
            if (b == nullptr) {
              sum = wrapping_add(sum, left);
              continue;
            }
            auto right = static_cast<Sum>(y[k * inner.b]);
            if (plan.conjugate_b) right = conjugated(right);
            sum = wrapping_add(sum, wrapping_mul(left, right));
          }
        }
        out[i] = static_cast<T>(sum);
      }
    });
  });
}

std::unique_ptr<Kernel> make_product(const OpContext& c, ProductPlan plan) {
  int64_t terms = 1;
  for (const ProductAxis& axis : plan.summed) terms = checked_multiply(c, terms, axis.size);
  return visit_number(c, c.input(0).dtype(), [&](auto type) -> std::unique_ptr<Kernel> {
    using T = decltype(type);
    if constexpr (std::is_same_v<T, bool>)
      c.fail(ErrorCode::kUnsupported, "type bool is not supported");
    else
      return product_kernel<T>(std::move(plan));
  });
}

void require_types(const OpContext& c) {
  for (int i = 1; i < c.input_count(); ++i) require_same_type(c, c.input(0), c.input(i));
  require_same_type(c, c.input(0), c.output(0));
}

/// Strides of a shape; those of size 1 are 0, so that they broadcast.
std::vector<int64_t> strides_of(const Shape& shape) {
  std::vector<int64_t> strides = element_strides(shape);
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1) strides[static_cast<size_t>(i)] = 0;
  }
  return strides;
}

// MatMul and BatchMatMul: axes before the last two broadcast

struct MatmulFlags {
  bool transpose_a = false, transpose_b = false, conjugate_a = false, conjugate_b = false;
};

ProductPlan matmul_plan(const OpContext& c, const MatmulFlags& flags) {
  const Shape& a = c.input(0).shape;
  const Shape& b = c.input(1).shape;
  c.require(a.rank() >= 2 && b.rank() >= 2, "inputs of shape {} and {} are not matrices", a.to_string(), b.to_string());
  const std::vector<int64_t> a_strides = strides_of(a);
  const std::vector<int64_t> b_strides = strides_of(b);
  const auto batch = [](const Shape& shape) {
    return Shape(shape.dims().first(static_cast<size_t>(shape.rank() - 2)));
  };
  ProductPlan plan;
  plan.conjugate_a = flags.conjugate_a;
  plan.conjugate_b = flags.conjugate_b;
  plan.result = broadcast_shapes(c, batch(a), batch(b));
  const int outer = plan.result.rank();
  c.require(outer <= kMaxRank - 2, "the result has too many dimensions");
  for (int i = 0; i < outer; ++i) {
    const int at_a = i - (outer - (a.rank() - 2));
    const int at_b = i - (outer - (b.rank() - 2));
    plan.kept.push_back({plan.result[i], at_a < 0 ? 0 : a_strides[static_cast<size_t>(at_a)],
                         at_b < 0 ? 0 : b_strides[static_cast<size_t>(at_b)]});
  }
  const int a_row = a.rank() - (flags.transpose_a ? 1 : 2);
  const int a_column = a.rank() - (flags.transpose_a ? 2 : 1);
  const int b_row = b.rank() - (flags.transpose_b ? 1 : 2);
  const int b_column = b.rank() - (flags.transpose_b ? 2 : 1);
  c.require(a[a_column] == b[b_row], "matrices of shape {} and {} do not fit", a.to_string(), b.to_string());
  plan.kept.push_back({a[a_row], a_strides[static_cast<size_t>(a_row)], 0});
  plan.kept.push_back({b[b_column], 0, b_strides[static_cast<size_t>(b_column)]});
  plan.summed.push_back({a[a_column], a_strides[static_cast<size_t>(a_column)], b_strides[static_cast<size_t>(b_row)]});
  plan.result.push_back(a[a_row]);
  plan.result.push_back(b[b_column]);
  return plan;
}

MatmulFlags matmul_flags(const OpContext& c) {
  return {node_def(c).flag("transpose_a", false), node_def(c).flag("transpose_b", false)};
}
MatmulFlags batch_flags(const OpContext& c) {
  const bool a = node_def(c).flag("adj_x", false);
  const bool b = node_def(c).flag("adj_y", false);
  return {a, b, a, b};
}

template <MatmulFlags (*kFlags)(const OpContext&)>
void infer_matmul(InferContext& c) {
  require_types(c);
  c.set_output_shape(0, matmul_plan(c, kFlags(c)).result);
}

template <MatmulFlags (*kFlags)(const OpContext&)>
std::unique_ptr<Kernel> prepare_matmul(PrepareContext& c) {
  return make_product(c, matmul_plan(c, kFlags(c)));
}

// Einsum

/// The labels of a tensor, with those of an ellipsis written out as numbers.
using Labels = std::vector<int>;

constexpr int kBroadcast = 256;  // and up: axes of an ellipsis, counted from the last

Labels labels_of(const OpContext& c, std::string_view term, int rank) {
  const size_t ellipsis = term.find("...");
  const auto named = static_cast<int>(term.size()) - (ellipsis == std::string_view::npos ? 0 : 3);
  c.require(ellipsis == std::string_view::npos ? named == rank : named <= rank,
            "the equation gives {} axes to a tensor of rank {}", named, rank);
  Labels labels;
  for (size_t i = 0; i < term.size(); ++i) {
    if (i == ellipsis) {
      for (int k = rank - named; k > 0; --k) labels.push_back(kBroadcast + k);
      i += 2;
      continue;
    }
    const char letter = term[i];
    c.require((letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z'),
              "the equation has a '{}', expected letters", letter);
    labels.push_back(static_cast<unsigned char>(letter));
  }
  return labels;
}

ProductPlan einsum_plan(const OpContext& c) {
  const std::string equation(node_def(c).text("equation", ""));
  const size_t arrow = equation.find("->");
  c.require(arrow != std::string::npos, "its equation '{}' has no '->'", equation);
  const size_t comma = equation.find(',');
  const auto count = static_cast<int>(std::count(equation.begin(), equation.end(), ',')) + 1;
  c.require(count == c.input_count(), "its equation '{}' has {} terms for {} inputs", equation, count, c.input_count());
  if (count > 2) c.fail(ErrorCode::kUnsupported, "it has {} inputs, expected one or two", count);
  std::vector<Labels> terms;
  terms.push_back(labels_of(c, std::string_view(equation).substr(0, std::min(comma, arrow)), c.input(0).shape.rank()));
  if (count == 2) {
    terms.push_back(
        labels_of(c, std::string_view(equation).substr(comma + 1, arrow - comma - 1), c.input(1).shape.rank()));
  }
  /// Size and strides of a label over both tensors. A label that a tensor has twice walks its diagonal.
  const auto axis_of = [&](int label) {
    ProductAxis axis;
    for (size_t t = 0; t < terms.size(); ++t) {
      const Shape& shape = c.input(static_cast<int>(t)).shape;
      const std::vector<int64_t> strides = strides_of(shape);
      for (size_t i = 0; i < terms[t].size(); ++i) {
        if (terms[t][i] != label) continue;
        const int64_t size = shape[static_cast<int>(i)];
        c.require(size == axis.size || size == 1 || axis.size == 1, "an axis of the equation '{}' has sizes {} and {}",
                  equation, axis.size, size);
        if (axis.size == 1) axis.size = size;
        (t == 0 ? axis.a : axis.b) += strides[i];
      }
    }
    return axis;
  };
  int broadcast = 0;
  for (const Labels& term : terms) {
    broadcast = std::max(broadcast, static_cast<int>(std::count_if(term.begin(), term.end(),
                                                                   [](int label) { return label > kBroadcast; })));
  }
  const std::string_view result = std::string_view(equation).substr(arrow + 2);
  const bool has_ellipsis = result.find("...") != std::string_view::npos;
  const Labels kept =
      labels_of(c, result, static_cast<int>(result.size()) - (has_ellipsis ? 3 : 0) + (has_ellipsis ? broadcast : 0));
  ProductPlan plan;
  c.require(kept.size() <= kMaxRank, "the result has {} dimensions, more than {}", kept.size(), kMaxRank);
  for (int label : kept) {
    const bool given = std::any_of(terms.begin(), terms.end(), [&](const Labels& term) {
      return std::find(term.begin(), term.end(), label) != term.end();
    });
    c.require(given, "a label of the result of '{}' is in no input", equation);
    plan.kept.push_back(axis_of(label));
    plan.result.push_back(plan.kept.back().size);
  }
  Labels done = kept;
  for (const Labels& term : terms) {
    for (int label : term) {
      if (std::find(done.begin(), done.end(), label) != done.end()) continue;
      done.push_back(label);
      plan.summed.push_back(axis_of(label));
    }
  }
  return plan;
}

void infer_einsum(InferContext& c) {
  c.require(c.input_count() >= 1, "it has no inputs");
  require_types(c);
  c.set_output_shape(0, einsum_plan(c).result);
}

std::unique_ptr<Kernel> prepare_einsum(PrepareContext& c) { return make_product(c, einsum_plan(c)); }

// Cross(a, b): of vectors of three numbers in the last axis

void infer_cross(InferContext& c) {
  node_def(c);
  require_types(c);
  const Shape& shape = c.input(0).shape;
  c.require(shape == c.input(1).shape && shape.rank() >= 1 && shape[shape.rank() - 1] == 3,
            "inputs have shapes {} and {}, expected the same with 3 last", shape.to_string(),
            c.input(1).shape.to_string());
  c.set_output_shape(0, shape);
}

std::unique_ptr<Kernel> prepare_cross(PrepareContext& c) {
  return visit_numeric(c, c.input(0).dtype(), [&](auto type) {
    using T = decltype(type);
    return make_kernel([](RunContext& run) {
      const T* a = run.input(0).as<T>();
      const T* b = run.input(1).as<T>();
      T* out = run.output(0).mutable_as<T>();
      run.pool().for_pieces(run.output(0).elements() / 3, 8, [&](int64_t begin, int64_t end) {
        for (int64_t i = 3 * begin; i < 3 * end; i += 3) {
          for (int64_t k = 0; k < 3; ++k) {
            const int64_t x = i + (k + 1) % 3;
            const int64_t y = i + (k + 2) % 3;
            out[i + k] = wrapping_sub(wrapping_mul(a[x], b[y]), wrapping_mul(a[y], b[x]));
          }
        }
      });
    });
  });
}

}  // namespace

void register_flex_einsum(Registry& registry) {
  const auto add = [&](std::string_view name, int inputs, Infer infer, Prepare prepare) {
    registry.add(flex_row(name, inputs, 1, infer, prepare, "all numbers"));
  };
  add("FlexEinsum", -1, infer_einsum, prepare_einsum);
  add("FlexMatMul", 2, infer_matmul<matmul_flags>, prepare_matmul<matmul_flags>);
  add("FlexBatchMatMul", 2, infer_matmul<batch_flags>, prepare_matmul<batch_flags>);
  add("FlexBatchMatMulV2", 2, infer_matmul<batch_flags>, prepare_matmul<batch_flags>);
  add("FlexBatchMatMulV3", 2, infer_matmul<batch_flags>, prepare_matmul<batch_flags>);
  add("FlexCross", 2, infer_cross, prepare_cross);
}

}  // namespace leadline::ops
