// SPDX-License-Identifier: Apache-2.0
// SPARSE_TO_DENSE: a tensor of one value but for the elements that the indices name. The last of equal indices counts.
#include "ops/sparse_to_dense.h"

#include <cstring>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace sparse_to_dense {
namespace {

enum Input { kIndices = 0, kShape = 1, kValues = 2, kDefault = 3 };

void infer_sparse_to_dense(InferContext& c) {
  c.require_input_type(kIndices, {DType::kInt32, DType::kInt64});
  c.require_input_type(kShape, {DType::kInt32, DType::kInt64});
  const Shape& indices = c.input(kIndices).shape;
  const Shape& shape = c.input(kShape).shape;
  const Shape& values = c.input(kValues).shape;
  require_movable(c, c.input(kValues), {});
  require_same_type(c, c.input(kValues), c.output(0));
  require_same_type(c, c.input(kDefault), c.output(0));
  require_elements(c, kDefault, 1);
  c.require(indices.rank() <= 2, "the indices have shape {}, expected rank 2 or less", indices.to_string());
  c.require(shape.rank() == 1, "the output shape is given as a tensor of shape {}, expected rank 1", shape.to_string());
  c.require(values.rank() <= 1, "the values have shape {}, expected a number or a list", values.to_string());
  const int64_t numbers = indices.rank() == 2 ? indices[1] : 1;
  const int64_t count = indices.rank() == 0 ? 1 : indices[0];
  c.require(shape[0] == numbers, "indices of {} numbers do not fit an output of rank {}", numbers, shape[0]);
  c.require(values.rank() == 0 || values[0] == count, "{} values for {} indices", values.elements(), count);
  if (!c.known(kShape)) return c.defer();
  c.set_output_shape(0, checked_shape(c, known_ints(c, kShape)));
}

/// Row-major position of index `i`, or -1 when it is outside.
int64_t position_of(const TensorView& indices, int64_t i, const Shape& shape) {
  int64_t position = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t at = load_index(indices.data, indices.dtype, i * shape.rank() + d);
    if (at < 0 || at >= shape[d]) return -1;
    position = position * shape[d] + at;
  }
  return position;
}

void run_sparse_to_dense(RunContext& run) {
  const TensorView& indices = run.input(kIndices);
  const TensorView& values = run.input(kValues);
  const TensorView& out = run.output(0);
  const int64_t size = element_bytes(out.dtype);
  const int64_t count = indices.shape.rank() == 0 ? 1 : indices.shape[0];
  for_items(count, 8, [&](int64_t i) {
    run.require(position_of(indices, i, out.shape) >= 0, "index {} is outside an output of shape {}", i,
                out.shape.to_string());
  });
  fill_elements(out.data, out.elements(), run.input(kDefault).data, size);
  const int64_t step = values.shape.rank() == 0 ? 0 : size;
  for_items(count, 16, [&](int64_t i) {
    std::memcpy(out.data + position_of(indices, i, out.shape) * size, values.data + i * step,
                static_cast<size_t>(size));
  });
}

std::unique_ptr<Kernel> prepare_sparse_to_dense(PrepareContext&) { return make_kernel(run_sparse_to_dense); }

}  // namespace
}  // namespace sparse_to_dense

void register_sparse_to_dense(Registry& registry) {
  using namespace sparse_to_dense;
  registry.add({.id = op::kSparseToDense,
                .max_version = 3,
                .min_inputs = 4,
                .max_inputs = 4,
                .required_inputs = 4,
                .options = builtin_options(50),
                .make_attributes = make_attributes<SparseToDenseAttributes>,
                .infer = infer_sparse_to_dense,
                .prepare = prepare_sparse_to_dense,
                .types = "all but strings"});
}

}  // namespace leadline::ops
