// SPDX-License-Identifier: Apache-2.0
// Flex ops that sort elements into groups: TopK, Unique, segments, Bucketize; and softmax over the last axis.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "ops/flex/families.h"
#include "ops/flex/flex.h"
#include "ops/resources.h"

namespace leadline::ops {
namespace {

/// -1, 0 or 1. A total order, which sorting needs: no number is smaller than all numbers.
template <typename T>
int compare(T a, T b) {
  const auto x = static_cast<Compute<T>>(a);
  const auto y = static_cast<Compute<T>>(b);
  if constexpr (std::is_floating_point_v<Compute<T>>) {
    if (std::isnan(x) || std::isnan(y)) return static_cast<int>(std::isnan(y)) - static_cast<int>(std::isnan(x));
  }
  return static_cast<int>(x > y) - static_cast<int>(x < y);
}

/// compare() of two elements of a tensor: all that sorting compiles for each type.
using CompareAt = int (*)(const std::byte* values, int64_t a, int64_t b);

template <typename T>
int compare_at(const std::byte* values, int64_t a, int64_t b) {
  const T* elements = reinterpret_cast<const T*>(values);
  return compare(elements[a], elements[b]);
}

CompareAt comparison_of(const OpContext& c, DType type) {
  const auto compare_as = [](auto example) -> CompareAt { return compare_at<decltype(example)>; };
  return is_floating(type) ? visit_floating(c, type, compare_as) : visit_numeric(c, type, compare_as);
}

// TopK(input), attribute k; TopKV2(input, k)

void infer_top_k(InferContext& c) {
  require_same_type(c, c.input(0), c.output(0));
  c.require_output_type(1, {DType::kInt32, DType::kInt64, DType::kInt16});
  int64_t k = node_def(c).integer("k", 0);
  if (c.input_count() > 1) {
    c.require_input_type(1, {DType::kInt32, DType::kInt64, DType::kInt16});
    if (!c.known(1)) return c.defer();
    k = integer_of_input(c, 1);
  }
  Shape shape = c.input(0).shape;
  c.require(shape.rank() >= 1 && k >= 0 && k <= shape[shape.rank() - 1], "there are no {} largest of shape {}", k,
            shape.to_string());
  shape.set(shape.rank() - 1, k);
  c.set_output_shape(0, shape);
  c.set_output_shape(1, shape);
}

std::unique_ptr<Kernel> prepare_top_k(PrepareContext& c) {
  const Shape& shape = c.input(0).shape;
  const int64_t width = shape[shape.rank() - 1];
  c.request_scratch(checked_multiply(c, width, sizeof(int64_t)));
  const CompareAt compare_values = comparison_of(c, c.input(0).dtype());
  const int64_t bytes = dtype_bits(c.input(0).dtype()) / 8;
  return make_kernel([width, bytes, compare_values](RunContext& run) {
    const TensorView& values = run.output(0);
    const TensorView& indices = run.output(1);
    const int64_t k = values.shape[values.shape.rank() - 1];
    const int64_t rows = width == 0 ? 0 : run.input(0).elements() / width;
    auto* order = run.scratch_as<int64_t>();
    const double cost = static_cast<double>(width) * 8 + static_cast<double>(k) * 24;
    for_items(rows, cost, [&](int64_t row) {
      const std::byte* from = run.input(0).data + row * width * bytes;
      std::iota(order, order + width, 0);
      std::partial_sort(order, order + k, order + width, [&](int64_t a, int64_t b) {
        const int order_of = compare_values(from, a, b);
        return order_of != 0 ? order_of > 0 : a < b;
      });
      for (int64_t i = 0; i < k; ++i) {
        const int64_t at = row * k + i;
        std::memcpy(values.mutable_as<std::byte>() + at * bytes, from + order[i] * bytes, static_cast<size_t>(bytes));
        if (indices.dtype == DType::kInt16)
          indices.mutable_as<int16_t>()[at] = static_cast<int16_t>(order[i]);
        else
          put_index(indices, at, order[i]);
      }
    });
  });
}

// Unique(x), UniqueV2(x, axis), UniqueWithCounts(x), UniqueWithCountsV2(x, axis) -> y, idx[, count], in order of first
// appearance

/// Sorts `order` so that equal elements stand together, the first of them first.
void sort_equal(const std::byte* values, CompareAt compare_values, int64_t count, int64_t* order) {
  std::iota(order, order + count, 0);
  std::sort(order, order + count, [&](int64_t a, int64_t b) {
    const int order_of = compare_values(values, a, b);
    return order_of != 0 ? order_of < 0 : a < b;
  });
}

void infer_unique(InferContext& c) {
  node_def(c);
  require_same_type(c, c.input(0), c.output(0));
  for (int i = 1; i < c.output_count(); ++i) c.require_output_type(i, {DType::kInt32, DType::kInt64});
  c.require(c.input(0).shape.rank() == 1, "the input has shape {}, expected a vector", c.input(0).shape.to_string());
  if (!c.known(0)) return c.defer();
  const int64_t count = c.input(0).shape[0];
  const Workspace workspace(c.host().resources(), checked_multiply(c, count, sizeof(int64_t)));
  auto* order = reinterpret_cast<int64_t*>(workspace.data());
  const CompareAt compare_values = comparison_of(c, c.input(0).dtype());
  const std::byte* values = c.input(0).data;
  sort_equal(values, compare_values, count, order);
  int64_t distinct = 0;
  for (int64_t i = 0; i < count; ++i) distinct += i == 0 || compare_values(values, order[i], order[i - 1]) != 0;
  c.set_output_shape(0, {distinct});
  c.set_output_shape(1, {count});
  if (c.output_count() > 2) c.set_output_shape(2, {distinct});
}

std::unique_ptr<Kernel> prepare_unique(PrepareContext& c) {
  const int64_t count = c.input(0).shape[0];
  c.request_scratch(checked_multiply(c, count, 2 * sizeof(int64_t)));
  const CompareAt compare_values = comparison_of(c, c.input(0).dtype());
  const int64_t bytes = dtype_bits(c.input(0).dtype()) / 8;
  return make_kernel([count, bytes, compare_values](RunContext& run) {
    const std::byte* values = run.input(0).data;
    auto* order = run.scratch_as<int64_t>();
    int64_t* first = order + count;  // where the value of each element stands first
    sort_equal(values, compare_values, count, order);
    for (int64_t i = 0; i < count; ++i) {
      const bool same = i > 0 && compare_values(values, order[i], order[i - 1]) == 0;
      first[order[i]] = same ? first[order[i - 1]] : order[i];
    }
    const int64_t distinct = run.output(0).elements();
    if (run.output_count() > 2) {
      for (int64_t i = 0; i < distinct; ++i) put_index(run.output(2), i, 0);
    }
    int64_t found = 0;
    for_items(count, 4, [&](int64_t i) {
      int64_t number = found;
      if (first[i] == i) {
        if (found == distinct) return;
        std::byte* to = run.output(0).mutable_as<std::byte>() + found++ * bytes;
        std::memcpy(to, values + i * bytes, static_cast<size_t>(bytes));
      } else {
        number = index_at(run.output(1), first[i]);
      }
      put_index(run.output(1), i, number);
      if (run.output_count() > 2) put_index(run.output(2), number, index_at(run.output(2), number) + 1);
    });
  });
}

// Segments: SegmentSum(data, ids), UnsortedSegmentSum(data, ids, num_segments), ...

template <bool kUnsorted>
void infer_segment(InferContext& c) {
  node_def(c);
  require_indices(c, 1);
  require_same_type(c, c.input(0), c.output(0));
  const Shape& data = c.input(0).shape;
  const Shape& ids = c.input(1).shape;
  c.require(data.rank() >= ids.rank() && ids.rank() >= (kUnsorted ? 0 : 1) &&
                std::equal(ids.begin(), ids.end(), data.begin()),
            "data of shape {} does not fit segments of shape {}", data.to_string(), ids.to_string());
  int64_t count = 0;
  if (kUnsorted) {
    require_indices(c, 2);
    if (!c.known(2)) return c.defer();
    count = integer_of_input(c, 2);
  } else {
    if (!c.known(1)) return c.defer();
    const std::vector<int64_t> numbers = known_ints(c, 1);
    c.require(std::is_sorted(numbers.begin(), numbers.end()), "the segments are not in order");
    count = numbers.empty() ? 0 : numbers.back() + 1;
    c.require(numbers.empty() || numbers.front() >= 0, "a segment is {}, expected 0 or more", numbers.front());
  }
  std::vector<int64_t> sizes = {count};
  sizes.insert(sizes.end(), data.begin() + ids.rank(), data.end());
  c.set_output_shape(0, checked_shape(c, sizes));
}

enum class Group : uint8_t { kSum, kMean, kProduct, kLargest, kSmallest };

template <typename T>
T empty_group(Group group, bool unsorted) {
  if (group == Group::kProduct) return T(1);
  if (!unsorted || group == Group::kSum || group == Group::kMean) return T(0);
  return group == Group::kLargest ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
}

/// What a group is with one value more.
template <typename T>
T with_value(Group group, T sum, T value) {
  switch (group) {
    case Group::kProduct:
      return wrapping_mul(sum, value);
    case Group::kLargest:
      return std::max(sum, value);
    case Group::kSmallest:
      return std::min(sum, value);
    default:
      return wrapping_add(sum, value);
  }
}

template <typename T>
void run_segments(RunContext& run, Group group, bool unsorted, int64_t inner) {
  T* out = run.output(0).mutable_as<T>();
  const T* in = run.input(0).as<T>();
  const int64_t count = run.output(0).shape[0];
  auto* sizes = run.scratch_as<int64_t>();
  if (group == Group::kMean) std::fill_n(sizes, count, 0);
  for_items(run.output(0).elements(), 1, [&](int64_t i) { out[i] = empty_group<T>(group, unsorted); });
  int64_t last = -1;
  for_items(run.input(1).elements(), 2 * static_cast<double>(inner), [&](int64_t row) {
    const int64_t segment = index_at(run.input(1), row);
    if (unsorted && segment < 0) return;  // dropped, as TensorFlow does
    run.require(segment >= 0 && segment < count, "row {} is of segment {}, but there are {}", row, segment, count);
    const bool starts = !unsorted && segment != last;
    last = segment;
    if (group == Group::kMean) ++sizes[segment];
    for (int64_t k = 0; k < inner; ++k) {
      T& to = out[segment * inner + k];
      const T value = in[row * inner + k];
      to = starts ? value : with_value(group, to, value);
    }
  });
  if (group != Group::kMean) return;
  for_items(count, static_cast<double>(inner), [&](int64_t segment) {
    for (int64_t k = 0; sizes[segment] > 0 && k < inner; ++k) {
      out[segment * inner + k] = static_cast<T>(out[segment * inner + k] / static_cast<T>(sizes[segment]));
    }
  });
}

template <Group kGroup, bool kUnsorted>
std::unique_ptr<Kernel> prepare_segment(PrepareContext& c) {
  const Shape& data = c.input(0).shape;
  const int64_t inner = span_elements(data, c.input(1).shape.rank(), data.rank());
  if (kGroup == Group::kMean) c.request_scratch(checked_multiply(c, c.output(0).shape[0], sizeof(int64_t)));
  using RunSegments = void (*)(RunContext&, Group, bool, int64_t);
  const auto run_as = visit_numeric(c, c.input(0).dtype(), [&](auto example) -> RunSegments {
    using T = decltype(example);
    if constexpr (std::is_same_v<T, bool>)
      c.fail(ErrorCode::kUnsupported, "type bool is not supported");
    else
      return run_segments<T>;
  });
  return make_kernel([inner, run_as](RunContext& run) { run_as(run, kGroup, kUnsorted, inner); });
}

// Bucketize(input), attribute boundaries

void infer_bucketize(InferContext& c) {
  const std::vector<float> boundaries = node_def(c).numbers("boundaries");
  c.require(std::is_sorted(boundaries.begin(), boundaries.end()), "its boundaries are not in order");
  c.require_input_type(0, {DType::kInt32, DType::kInt64, DType::kFloat32, DType::kFloat64});
  c.require_output_type(0, {DType::kInt32});
  c.set_output_shape(0, c.input(0).shape);
}

std::unique_ptr<Kernel> prepare_bucketize(PrepareContext& c) {
  const std::vector<float> boundaries = node_def(c).numbers("boundaries");
  return visit_numeric(c, c.input(0).dtype(), [&](auto type) {
    using T = decltype(type);
    return make_kernel([boundaries](RunContext& run) {
      for_items(run.output(0).elements(), 16, [&](int64_t i) {
        const auto value = static_cast<double>(run.input(0).as<T>()[i]);
        const auto place = std::upper_bound(boundaries.begin(), boundaries.end(), value);
        run.output(0).mutable_as<int32_t>()[i] = static_cast<int32_t>(place - boundaries.begin());
      });
    });
  });
}

// Softmax, LogSoftmax over the last axis

void infer_softmax(InferContext& c) {
  node_def(c);
  require_same_type(c, c.input(0), c.output(0));
  c.require(c.input(0).shape.rank() >= 1, "the input is a scalar, expected at least a vector");
  c.set_output_shape(0, c.input(0).shape);
}

template <bool kLogarithm>
std::unique_ptr<Kernel> prepare_softmax(PrepareContext& c) {
  return visit_floating(c, c.input(0).dtype(), [](auto type) {
    using T = decltype(type);
    using Number = Compute<T>;
    return make_kernel([](RunContext& run) {
      const Shape& shape = run.input(0).shape;
      const int64_t width = shape[shape.rank() - 1];
      if (shape.elements() == 0) return;
      run.pool().for_pieces(shape.elements() / width, 30 * static_cast<double>(width), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const T* in = run.input(0).as<T>() + row * width;
          T* out = run.output(0).mutable_as<T>() + row * width;
          auto largest = static_cast<Number>(in[0]);
          for (int64_t i = 1; i < width; ++i) largest = std::max(largest, static_cast<Number>(in[i]));
          Number sum = 0;
          for (int64_t i = 0; i < width; ++i) sum += std::exp(static_cast<Number>(in[i]) - largest);
          const Number logarithm = std::log(sum);
          for (int64_t i = 0; i < width; ++i) {
            const Number shifted = static_cast<Number>(in[i]) - largest;
            out[i] = static_cast<T>(kLogarithm ? shifted - logarithm : std::exp(shifted) / sum);
          }
        }
      });
    });
  });
}

// SoftmaxCrossEntropyWithLogits(features, labels), Sparse...(features, label numbers) -> loss, gradient

template <bool kSparse>
void infer_cross_entropy(InferContext& c) {
  node_def(c);
  c.require_input_type(0, {DType::kFloat32, DType::kFloat64});
  const Shape& shape = c.input(0).shape;
  c.require(shape.rank() == 2 && shape[1] > 0, "the features have shape {}, expected [rows, classes]",
            shape.to_string());
  if (kSparse) {
    require_indices(c, 1);
    require_elements(c, 1, shape[0]);
  } else {
    require_same_type(c, c.input(0), c.input(1));
    c.require(c.input(1).shape == shape, "the labels have shape {}, expected {}", c.input(1).shape.to_string(),
              shape.to_string());
  }
  for (int i = 0; i < 2; ++i) require_same_type(c, c.input(0), c.output(i));
  c.set_output_shape(0, {shape[0]});
  c.set_output_shape(1, shape);
}

template <bool kSparse>
std::unique_ptr<Kernel> prepare_cross_entropy(PrepareContext& c) {
  return visit_numeric(c, c.input(0).dtype(), [](auto type) {
    using T = decltype(type);
    return make_kernel([](RunContext& run) {
      const int64_t classes = run.input(0).shape[1];
      for_items(run.input(0).shape[0], 40 * static_cast<double>(classes), [&](int64_t row) {
        const T* in = run.input(0).as<T>() + row * classes;
        T* gradient = run.output(1).mutable_as<T>() + row * classes;
        const auto largest = static_cast<double>(*std::max_element(in, in + classes));
        double sum = 0;
        for (int64_t i = 0; i < classes; ++i) sum += std::exp(static_cast<double>(in[i]) - largest);
        const int64_t label = kSparse ? index_at(run.input(1), row) : 0;
        run.require(!kSparse || (label >= 0 && label < classes), "row {} has label {}, but there are {} classes", row,
                    label, classes);
        double loss = 0;
        for (int64_t i = 0; i < classes; ++i) {
          const double shifted = static_cast<double>(in[i]) - largest;
          const double weight =
              kSparse ? static_cast<double>(i == label) : static_cast<double>(run.input(1).as<T>()[row * classes + i]);
          if (weight != 0) loss += weight * (std::log(sum) - shifted);
          gradient[i] = static_cast<T>(std::exp(shifted) / sum - weight);
        }
        run.output(0).mutable_as<T>()[row] = static_cast<T>(loss);
      });
    });
  });
}

}  // namespace

void register_flex_grouping(Registry& registry) {
  const auto add = [&](std::string_view name, int inputs, int outputs, Infer infer, Prepare prepare,
                       std::string_view types) {
    registry.add(flex_row(name, inputs, outputs, infer, prepare, types));
  };
  constexpr std::string_view kReal = "real numbers";
  add("FlexTopK", 1, 2, infer_top_k, prepare_top_k, kReal);
  add("FlexTopKV2", 2, 2, infer_top_k, prepare_top_k, kReal);
  add("FlexUnique", 1, 2, infer_unique, prepare_unique, kReal);
  add("FlexUniqueV2", 2, 2, infer_unique, prepare_unique, kReal);
  add("FlexUniqueWithCounts", 1, 3, infer_unique, prepare_unique, kReal);
  add("FlexUniqueWithCountsV2", 2, 3, infer_unique, prepare_unique, kReal);
  add("FlexSegmentSum", 2, 1, infer_segment<false>, prepare_segment<Group::kSum, false>, kReal);
  add("FlexSegmentMean", 2, 1, infer_segment<false>, prepare_segment<Group::kMean, false>, kReal);
  add("FlexSegmentProd", 2, 1, infer_segment<false>, prepare_segment<Group::kProduct, false>, kReal);
  add("FlexSegmentMax", 2, 1, infer_segment<false>, prepare_segment<Group::kLargest, false>, kReal);
  add("FlexSegmentMin", 2, 1, infer_segment<false>, prepare_segment<Group::kSmallest, false>, kReal);
  add("FlexUnsortedSegmentSum", 3, 1, infer_segment<true>, prepare_segment<Group::kSum, true>, kReal);
  add("FlexUnsortedSegmentProd", 3, 1, infer_segment<true>, prepare_segment<Group::kProduct, true>, kReal);
  add("FlexUnsortedSegmentMax", 3, 1, infer_segment<true>, prepare_segment<Group::kLargest, true>, kReal);
  add("FlexUnsortedSegmentMin", 3, 1, infer_segment<true>, prepare_segment<Group::kSmallest, true>, kReal);
  add("FlexBucketize", 1, 1, infer_bucketize, prepare_bucketize, "i32 i64 f32 f64");
  add("FlexSoftmaxCrossEntropyWithLogits", 2, 2, infer_cross_entropy<false>, prepare_cross_entropy<false>, "f32 f64");
  add("FlexSparseSoftmaxCrossEntropyWithLogits", 2, 2, infer_cross_entropy<true>, prepare_cross_entropy<true>,
      "f32 f64");
  add("FlexSoftmax", 1, 1, infer_softmax, prepare_softmax<false>, "f32 f64 f16 bf16");
  add("FlexLogSoftmax", 1, 1, infer_softmax, prepare_softmax<true>, "f32 f64 f16 bf16");
}

}  // namespace leadline::ops
