// SPDX-License-Identifier: Apache-2.0
// ADD_N: the sum of two or more tensors of one shape, added in the order of the inputs.
#include <algorithm>
#include <array>

#include "kernels/reference/contraction.h"
#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace {

// Elements whose sums are kept beside the output, which may be the memory of any input.
constexpr int64_t kSumBlock = 512;

void infer_add_n(InferContext& c) {
  c.require(c.has_input(0), "input 0 is absent");
  c.require_input_type(0, {DType::kFloat32, DType::kInt32});
  require_same_type(c, c.input(0), c.output(0));
  for (int i = 1; i < c.input_count(); ++i) {
    c.require(c.has_input(i), "input {} is absent", i);
    require_same_type(c, c.input(0), c.input(i));
    c.require(c.input(i).shape == c.input(0).shape, "input {} has shape {}, but input 0 has shape {}", i,
              c.input(i).shape.to_string(), c.input(0).shape.to_string());
  }
  c.set_output_shape(0, c.input(0).shape);
}

template <typename T>
T plus(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a + b;
  } else {
    return kernels::reference::wrapping_add(a, b);
  }
}

template <typename T>
void add_all(RunContext& c) {
  T* output = c.output(0).mutable_as<T>();
  const auto cost = static_cast<double>(c.input_count());
  c.pool().for_pieces(c.output(0).elements(), cost, [&](int64_t begin, int64_t end) {
    std::array<T, kSumBlock> sums;
    for (int64_t at = begin; at < end; at += kSumBlock) {
      const int64_t count = std::min(kSumBlock, end - at);
      std::copy_n(c.input(0).as<T>() + at, count, sums.data());
      for (int i = 1; i < c.input_count(); ++i) {
        const T* values = c.input(i).as<T>() + at;
        for (int64_t k = 0; k < count; ++k) {
          T& sum = sums[static_cast<size_t>(k)];
          sum = plus(sum, values[k]);
        }
      }
      std::copy_n(sums.data(), count, output + at);
    }
  });
}

std::unique_ptr<Kernel> prepare_add_n(PrepareContext& c) {
  return c.output(0).dtype() == DType::kFloat32 ? make_kernel(add_all<float>) : make_kernel(add_all<int32_t>);
}

}  // namespace

void register_add_n(Registry& registry) {
  registry.add({.id = op::kAddN,
                .min_inputs = 2,
                .max_inputs = -1,
                .required_inputs = 2,
                .options = builtin_options(82),
                .infer = infer_add_n,
                .prepare = prepare_add_n,
                .sharing = Sharing::kInPlace,
                .types = "f32 i32"});
}

}  // namespace leadline::ops
