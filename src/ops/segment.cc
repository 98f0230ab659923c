// SPDX-License-Identifier: Apache-2.0
// SEGMENT_SUM and UNSORTED_SEGMENT_{SUM,PROD,MAX,MIN}: rows of the data that have the same segment id, reduced to one
// row. Ids are checked before anything is written.
#include <algorithm>
#include <limits>

#include "kernels/reference/contraction.h"
#include "ops/common.h"
#include "ops/families.h"
#include "ops/loops/split.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace segment {
namespace {

enum Input { kData = 0, kIds = 1, kSegments = 2 };

struct Sum {
  template <typename T>
  static constexpr T kInitial = 0;
  static float combine(float a, float b) { return a + b; }
  static int32_t combine(int32_t a, int32_t b) { return kernels::reference::wrapping_add(a, b); }
};
struct Product {
  template <typename T>
  static constexpr T kInitial = 1;
  static float combine(float a, float b) { return a * b; }
  static int32_t combine(int32_t a, int32_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
  }
};
struct Max {
  template <typename T>
  static constexpr T kInitial = std::numeric_limits<T>::lowest();
  template <typename T>
  static T combine(T a, T b) {
    return std::max(a, b);  // keeps `a` when b is NaN
  }
};
struct Min {
  template <typename T>
  static constexpr T kInitial = std::numeric_limits<T>::max();
  template <typename T>
  static T combine(T a, T b) {
    return std::min(a, b);
  }
};

struct SegmentSizes {
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t segments = 0;
};

/// For prepare: rows and row size of the data, segments of the output.
SegmentSizes segment_sizes(const OpContext& c, int id_rank) {
  const Shape& data = c.input(kData).shape;
  const Shape& output = c.output(0).shape;
  return {span_elements(data, 0, id_rank), span_elements(output, 1, output.rank()), output[0]};
}

/// Rows with a negative id belong nowhere.
template <typename T, typename Reduction>
void reduce_segments(RunContext& c, const SegmentSizes& s) {
  const TensorView& ids = c.input(kIds);
  const auto* id = ids.as<int32_t>();
  for_items(ids.elements(), 1, [&](int64_t i) {
    c.require(id[i] < s.segments, "segment id {} is not below the number of segments {}", id[i], s.segments);
  });
  const T* data = c.input(kData).as<T>();
  T* output = c.output(0).mutable_as<T>();
  // Threads divide the columns: a segment's rows are combined in their order.
  for_column_parts(c.pool(), s.inner, static_cast<double>(s.rows + s.segments), [&](IndexRange columns) {
    const auto width = static_cast<double>(columns.size());
    for_boxes<2>({{{{0, s.segments}}, {columns}}}, (width + 4) / width, [&](const auto& box) {
      for (int64_t r = box[0].begin; r < box[0].end; ++r) {
        T* row = output + r * s.inner;
        std::fill(row + box[1].begin, row + box[1].end, Reduction::template kInitial<T>);
      }
    });
    for_boxes<2>({{{{0, s.rows}}, {columns}}}, (width + 8) / width, [&](const auto& box) {
      for (int64_t r = box[0].begin; r < box[0].end; ++r) {
        if (id[r] < 0) continue;
        const T* from = data + r * s.inner;
        T* to = output + id[r] * s.inner;
        for (int64_t i = box[1].begin; i < box[1].end; ++i) to[i] = Reduction::combine(to[i], from[i]);
      }
    });
  });
}

template <typename Reduction>
std::unique_ptr<Kernel> make_reduction(const OpContext& c, const SegmentSizes& sizes) {
  if (c.output(0).dtype() == DType::kFloat32) {
    return make_kernel([sizes](RunContext& run) { reduce_segments<float, Reduction>(run, sizes); });
  }
  return make_kernel([sizes](RunContext& run) { reduce_segments<int32_t, Reduction>(run, sizes); });
}

void check_types(const InferContext& c) {
  c.require_input_type(kData, {DType::kFloat32, DType::kInt32});
  c.require_input_type(kIds, {DType::kInt32});
  require_same_type(c, c.input(kData), c.output(0));
}

/// Ids begin at 0 and grow by at most 1, so the last one shows how many segments there are.
void infer_sorted(InferContext& c) {
  check_types(c);
  const Shape& data = c.input(kData).shape;
  const Shape& ids = c.input(kIds).shape;
  c.require(data.rank() >= 1, "the data are a scalar, expected at least a vector");
  c.require(ids.rank() == 1 && ids[0] == data[0], "the segment ids have shape {}, expected [{}]", ids.to_string(),
            data[0]);
  if (!c.known(kIds)) return c.defer();
  int64_t last = -1;
  const std::span<const int32_t> known = c.input(kIds).values<int32_t>();
  for_items(static_cast<int64_t>(known.size()), 1, [&](int64_t i) {
    const int32_t id = known[static_cast<size_t>(i)];
    c.require(id >= 0 && (id == last || id == last + 1), "segment id {} follows {}, expected the same or the next", id,
              last);
    last = id;
  });
  Shape output = data;
  output.set(0, last + 1);
  c.set_output_shape(0, output);
}

std::unique_ptr<Kernel> prepare_sorted(PrepareContext& c) { return make_reduction<Sum>(c, segment_sizes(c, 1)); }

void infer_unsorted(InferContext& c) {
  check_types(c);
  c.require_input_type(kSegments, {DType::kInt32});
  const Shape& data = c.input(kData).shape;
  const Shape& ids = c.input(kIds).shape;
  const Shape& count = c.input(kSegments).shape;
  bool prefix = ids.rank() <= data.rank();
  for (int d = 0; prefix && d < ids.rank(); ++d) prefix = ids[d] == data[d];
  c.require(prefix, "the segment ids have shape {}, expected the first dimensions of {}", ids.to_string(),
            data.to_string());
  c.require(count.rank() == 0 || count == Shape{1}, "the number of segments has shape {}, expected one value",
            count.to_string());
  if (!c.known(kSegments)) return c.defer();
  std::vector<int64_t> dims = {known_ints(c, kSegments)[0]};
  dims.insert(dims.end(), data.begin() + ids.rank(), data.end());
  c.set_output_shape(0, checked_shape(c, dims));
}

template <typename Reduction>
std::unique_ptr<Kernel> prepare_unsorted(PrepareContext& c) {
  return make_reduction<Reduction>(c, segment_sizes(c, c.input(kIds).shape.rank()));
}

void add_unsorted(Registry& registry, const ir::OpId& id, OptionsTable options,
                  std::unique_ptr<Kernel> (*prepare)(PrepareContext&)) {
  registry.add({.id = id,
                .min_inputs = 3,
                .max_inputs = 3,
                .required_inputs = 3,
                .options = options,
                .infer = infer_unsorted,
                .prepare = prepare,
                .types = "f32 i32"});
}

}  // namespace
}  // namespace segment

void register_segment(Registry& registry) {
  using namespace segment;
  registry.add({.id = op::kSegmentSum,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(100),
                .infer = infer_sorted,
                .prepare = prepare_sorted,
                .types = "f32 i32"});
  add_unsorted(registry, op::kUnsortedSegmentProd, builtin_options(118), prepare_unsorted<Product>);
  add_unsorted(registry, op::kUnsortedSegmentMax, builtin_options(119), prepare_unsorted<Max>);
  add_unsorted(registry, op::kUnsortedSegmentSum, builtin_options(121), prepare_unsorted<Sum>);
  add_unsorted(registry, op::kUnsortedSegmentMin, builtin_options(120), prepare_unsorted<Min>);
}

}  // namespace leadline::ops
