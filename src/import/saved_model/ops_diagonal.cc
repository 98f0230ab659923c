// SPDX-License-Identifier: Apache-2.0
// Matrices by their diagonals. The format's ops know the main diagonal only.
#include "import/saved_model/op_functions.h"

namespace leadline::saved_model {
namespace {

constexpr int64_t kMaxMask = 1 << 24;

void require_matrices(OpCall& call, int x) {
  require(call.e.rank(x) >= 2, kBad, "the input has rank {}, expected at least 2", call.e.rank(x));
}

/// Input `i`, if there is one, must be this number.
void require_main_diagonal(OpCall& call, size_t i) {
  if (i < call.inputs.size()) {
    const std::vector<int64_t> k = call.ints(i, "a number of a diagonal");
    for (const int64_t diagonal : k) call.refuse_if(diagonal != 0, "takes another than the main diagonal");
  }
}

/// 0, 1, ... n - 1 for the axis `axis` of `x`.
int count_along(OpCall& call, int x, int axis) {
  Emitter& e = call.e;
  const int size = e.reshape(e.shape_part(x, axis, axis + 1), {});
  return call.sized("RANGE", {e.integer(0), size, e.integer(1)}, DType::kInt32, {-1});
}

/// Whether position minus other position is at most `limit`; everywhere when that is negative.
int within(OpCall& call, int from, int to, int limit) {
  Emitter& e = call.e;
  const int near = e.compare("LESS_EQUAL", e.sub(from, to), limit);
  return e.binary("LOGICAL_OR", e.compare("LESS", limit, e.integer(0)), near);
}

}  // namespace

/// Zero outside a band around the main diagonal.
Outputs band_part(OpCall& call) {
  Emitter& e = call.e;
  const int x = call.in();
  require_matrices(call, x);
  const int rank = e.rank(x);
  const Dims dims = e.dims(x);
  const int64_t rows = dims[static_cast<size_t>(rank) - 2];
  const int64_t columns = dims[static_cast<size_t>(rank) - 1];
  const auto lower = call.builder().known_ints(call.in(1));
  const auto upper = call.builder().known_ints(call.in(2));
  int mask = -1;
  if (lower && upper && lower->size() == 1 && upper->size() == 1 && rows >= 0 && columns >= 0 && rows <= kMaxMask &&
      columns <= kMaxMask && rows * columns <= kMaxMask) {
    std::vector<uint8_t> inside;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t k = 0; k < columns; ++k) {
        inside.push_back((lower->front() < 0 || i - k <= lower->front()) &&
                         (upper->front() < 0 || k - i <= upper->front()));
      }
    }
    mask = call.builder().constant(e.name("Band"), DType::kBool, {rows, columns}, inside);
  } else {
    const int row = e.reshape(count_along(call, x, rank - 2), {-1, 1});
    const int column = e.reshape(count_along(call, x, rank - 1), {1, -1});
    mask = e.binary("LOGICAL_AND", within(call, row, column, call.in32(1)), within(call, column, row, call.in32(2)));
  }
  return {e.select(mask, x, call.zero_of(e.dtype(x)))};
}

/// Inputs: the diagonal, and in newer versions k, rows, columns, padding.
Outputs matrix_diag(OpCall& call) {
  const int x = call.in();
  const Dims dims = call.e.dims(x);
  require(!dims.empty(), kBad, "the diagonal is a scalar");
  require_main_diagonal(call, 1);
  for (const size_t i : {2U, 3U}) {
    if (i >= call.inputs.size()) continue;
    const int64_t size = call.integer(i, "a size");
    call.refuse_if(size != -1 && size != dims.back(), "makes matrices that are not square");
  }
  return {call.builder().node("MATRIX_DIAG", {x}, call.name())};
}

Outputs matrix_set_diag(OpCall& call) {
  require_matrices(call, call.in());
  require_main_diagonal(call, 2);
  return {call.builder().node("MATRIX_SET_DIAG", {call.in(0), call.in(1)}, call.name())};
}

/// Every (columns + 1)-th element of a matrix written out row by row.
Outputs matrix_diag_part(OpCall& call) {
  Emitter& e = call.e;
  const int x = call.in();
  require_matrices(call, x);
  require_main_diagonal(call, 1);
  const int rank = e.rank(x);
  const Dims dims = e.dims(x);
  const int64_t rows = dims[static_cast<size_t>(rank) - 2];
  const int64_t columns = dims[static_cast<size_t>(rank) - 1];
  call.refuse_if(rows < 0 || columns < 0, "takes the diagonal of matrices of unknown size");
  require(rows <= kMaxMask && columns <= kMaxMask && rows * columns <= kMaxMask, ErrorCode::kUnsupported,
          "matrices of {} x {} are too large", rows, columns);
  std::vector<Emitter::Size> sizes;
  for (int axis = 0; axis + 2 < rank; ++axis) sizes.emplace_back(x, axis);
  sizes.emplace_back(-1, rows * columns);
  std::vector<int32_t> places;
  for (int64_t i = 0; i < std::min(rows, columns); ++i) places.push_back(small(i * (columns + 1)));
  return {e.gather(e.reshape_like(x, sizes), e.ints(places), rank - 2)};
}

}  // namespace leadline::saved_model
