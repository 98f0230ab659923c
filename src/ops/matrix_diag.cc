// SPDX-License-Identifier: Apache-2.0
// MATRIX_DIAG: square matrices that are zero but for a given diagonal. MATRIX_SET_DIAG: matrices with their diagonal
// replaced. Zero means zero bytes, also in quantized tensors, as in TFLite.
#include <algorithm>
#include <cstring>
#include <vector>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace {

struct Matrices {
  int64_t count = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t element = 0;  // bytes

  int64_t diagonal() const { return std::min(rows, columns); }
};

/// The last two axes of a shape of at least rank 2; no matrices when it has no elements.
Matrices matrices_of(const Operand& operand) {
  const Shape& shape = operand.shape;
  const int rank = shape.rank();
  return {span_elements(shape, 0, rank - 2), shape[rank - 2], shape[rank - 1], element_bytes(operand.dtype())};
}

void write_diagonals(const Matrices& m, const std::byte* diagonal, std::byte* output) {
  const auto size = static_cast<size_t>(m.element);
  const int64_t length = m.diagonal();
  for_items(m.count * length, 8, [&](int64_t i) {
    std::byte* matrix = output + i / length * m.rows * m.columns * m.element;
    std::memcpy(matrix + i % length * (m.columns + 1) * m.element, diagonal + i * m.element, size);
  });
}

void infer_diag(InferContext& c) {
  require_movable(c, c.input(0), {});
  require_same_type(c, c.input(0), c.output(0));
  const Shape& diagonal = c.input(0).shape;
  c.require(diagonal.rank() >= 1, "the diagonal is a scalar, expected at least a vector");
  std::vector<int64_t> dims(diagonal.begin(), diagonal.end());
  dims.push_back(dims.back());
  c.set_output_shape(0, checked_shape(c, dims));
}

std::unique_ptr<Kernel> prepare_diag(PrepareContext& c) {
  return make_kernel([m = matrices_of(c.output(0))](RunContext& run) {
    const TensorView& output = run.output(0);
    if (output.bytes == 0) return;
    fill_bytes(output.data, std::byte{0}, output.bytes);
    write_diagonals(m, run.input(0).data, output.data);
  });
}

void infer_set_diag(InferContext& c) {
  require_movable(c, c.input(0), {});
  require_same_type(c, c.input(0), c.input(1));
  require_same_type(c, c.input(0), c.output(0));
  const Shape& input = c.input(0).shape;
  c.require(input.rank() >= 2, "the input has shape {}, expected at least rank 2", input.to_string());
  const Matrices m = matrices_of(c.input(0));
  const int64_t wanted = m.count * m.diagonal();
  // TFLite looks at the number of values only.
  c.require(m.count == 0 || c.input(1).shape.elements() == wanted,
            "the diagonals have shape {}, expected {} matrices of {} values", c.input(1).shape.to_string(), m.count,
            m.diagonal());
  c.set_output_shape(0, input);
}

std::unique_ptr<Kernel> prepare_set_diag(PrepareContext& c) {
  return make_kernel([m = matrices_of(c.input(0))](RunContext& run) {
    const TensorView& input = run.input(0);
    const TensorView& output = run.output(0);
    if (output.bytes == 0) return;
    // Matrices of one element may be the diagonals' memory: nothing of the input is left then.
    const bool all = m.rows == 1 && m.columns == 1;
    if (!all && input.data != output.data) copy_bytes(output.data, input.data, output.bytes);
    if (run.input(1).data != output.data) write_diagonals(m, run.input(1).data, output.data);
  });
}

}  // namespace

void register_matrix_diag(Registry& registry) {
  registry.add({.id = op::kMatrixDiag,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(88),
                .infer = infer_diag,
                .prepare = prepare_diag,
                .types = "all but sub-byte and strings"});
  registry.add({.id = op::kMatrixSetDiag,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(90),
                .infer = infer_set_diag,
                .prepare = prepare_set_diag,
                .sharing = Sharing::kInPlace,
                .types = "all but sub-byte and strings"});
}

}  // namespace leadline::ops
