// SPDX-License-Identifier: Apache-2.0
// BUCKETIZE: for every value the number of boundaries that are not above it.
#include "ops/bucketize.h"

#include <algorithm>

#include "ops/common.h"
#include "ops/families.h"

namespace leadline::ops {
namespace {

void infer_bucketize(InferContext& c) {
  c.require_input_type(0, {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64});
  c.require_output_type(0, {DType::kInt32});
  const std::vector<float>& boundaries = c.attributes<BucketizeAttributes>().boundaries;
  c.require(std::is_sorted(boundaries.begin(), boundaries.end()), "the boundaries are not in ascending order");
  c.set_output_shape(0, c.input(0).shape);
}

template <typename T>
void bucketize(const RunContext& run, std::span<const float> boundaries) {
  const T* in = run.input(0).as<T>();
  auto* out = run.output(0).mutable_as<int32_t>();
  run.pool().for_pieces(run.input(0).elements(), 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      // Integers are compared as float32, doubles as they are: the language's rules are TFLite's too. A NaN is above
      // every boundary.
      const auto above = std::upper_bound(boundaries.begin(), boundaries.end(), in[i], [](T value, float boundary) {
        using Common = std::conditional_t<std::is_same_v<T, double>, double, float>;
        return static_cast<Common>(value) < static_cast<Common>(boundary);
      });
      out[i] = static_cast<int32_t>(above - boundaries.begin());
    }
  });
}

std::unique_ptr<Kernel> prepare_bucketize(PrepareContext& c) {
  // The graph outlives its kernels.
  const std::span<const float> boundaries = c.attributes<BucketizeAttributes>().boundaries;
  return make_kernel([boundaries](RunContext& run) {
    switch (run.input(0).dtype) {
      case DType::kFloat32:
        return bucketize<float>(run, boundaries);
      case DType::kFloat64:
        return bucketize<double>(run, boundaries);
      case DType::kInt32:
        return bucketize<int32_t>(run, boundaries);
      default:
        return bucketize<int64_t>(run, boundaries);
    }
  });
}

}  // namespace

void register_bucketize(Registry& registry) {
  registry.add({.id = op::kBucketize,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(115),
                .make_attributes = make_attributes<BucketizeAttributes>,
                .infer = infer_bucketize,
                .prepare = prepare_bucketize,
                .types = "f32 f64 i32 i64"});
}

}  // namespace leadline::ops
