// SPDX-License-Identifier: Apache-2.0
// aeq.hadamard_rotation: multiplies pieces of the innermost axis by the orthonormal Hadamard matrix of hadamard_size,
// a power of two. Pieces lie one after the other from the tensor's first element; what is left of them stays as it is.
#include <algorithm>
#include <bit>
#include <cmath>

#include "io/flexbuffer_map.h"
#include "ops/common.h"
#include "ops/families.h"

namespace leadline::ops {
namespace {

int64_t read_size(const OpContext& c) {
  const auto map = FlexMap::parse(c.node().custom_options);
  c.require(map.has_value(), "the custom options are not a FlexBuffers map");
  const int32_t size = map->get_int("hadamard_size", 0);
  c.require(size > 0 && std::has_single_bit(static_cast<uint32_t>(size)),
            "hadamard_size is {}, expected a power of two", size);
  return size;
}

void infer_hadamard(InferContext& c) {
  read_size(c);
  c.require_input_type(0, {DType::kFloat32});
  c.require_output_type(0, {DType::kFloat32});
  const Shape& shape = c.input(0).shape;
  c.require(shape.rank() == 2 || shape.rank() == 3, "the input has shape {}, expected rank 2 or 3", shape.to_string());
  c.set_output_shape(0, shape);
}

/// Sums and differences of halves, from pairs up to the whole; then the factor that keeps lengths.
void rotate(float* data, int64_t size) {
  for (int64_t half = 1; half < size; half *= 2) {
    for (int64_t begin = 0; begin < size; begin += 2 * half) {
      float* low = data + begin;
      float* high = low + half;
      for (int64_t k = 0; k < half; ++k) {
        const float a = low[k];
        const float b = high[k];
        low[k] = a + b;
        high[k] = a - b;
      }
    }
  }
  const auto factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(size)));
  for (int64_t k = 0; k < size; ++k) data[k] *= factor;
}

std::unique_ptr<Kernel> prepare_hadamard(PrepareContext& c) {
  const int64_t size = read_size(c);
  const Shape& shape = c.input(0).shape;
  if (shape.elements() == 0) return make_kernel([](RunContext&) {});
  const int64_t features = shape[shape.rank() - 1];
  const int64_t pieces = shape.elements() / features * (features / size);
  return make_kernel([size, pieces](RunContext& run) {
    const float* input = run.input(0).as<float>();
    float* output = run.output(0).mutable_as<float>();
    std::copy_n(input, run.output(0).elements(), output);
    const auto work = static_cast<double>(size * std::bit_width(static_cast<uint64_t>(size)));
    run.pool().for_pieces(pieces, work, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) rotate(output + i * size, size);
    });
  });
}

}  // namespace

void register_hadamard(Registry& registry) {
  registry.add({.id = ir::OpId::custom("aeq.hadamard_rotation"),
                .max_version = 1,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .infer = infer_hadamard,
                .prepare = prepare_hadamard,
                .types = "f32"});
}

}  // namespace leadline::ops
