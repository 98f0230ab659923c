// SPDX-License-Identifier: Apache-2.0
// Flex ops on matrices in the last two axes: MatrixInverse, MatrixDeterminant, LogMatrixDeterminant, Cholesky,
// MatrixSolve, MatrixTriangularSolve, Qr, MatrixBandPart. They compute in double precision.
#include <algorithm>
#include <cmath>

#include "ops/flex/families.h"
#include "ops/flex/flex.h"

namespace leadline::ops {
namespace {

/// Rows and columns of the matrices in an input, and how many there are.
struct Matrices {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t count = 0;
  int64_t size() const { return rows * columns; }
};

Matrices matrices(const OpContext& c, int i) {
  const Shape& shape = c.input(i).shape;
  const int rank = shape.rank();
  c.require(rank >= 2, "input {} has shape {}, expected matrices", i, shape.to_string());
  return {shape[rank - 2], shape[rank - 1], span_elements(shape, 0, rank - 2)};
}

Matrices square_matrices(const OpContext& c, int i) {
  const Matrices m = matrices(c, i);
  c.require(m.rows == m.columns, "input {} has shape {}, expected square matrices", i, c.input(i).shape.to_string());
  return m;
}

double cube(int64_t n) { return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n); }

/// Calls body(T{}) for float32 and float64.
template <typename Body>
std::unique_ptr<Kernel> with_precision(const OpContext& c, const Body& body) {
  c.require_input_type(0, {DType::kFloat32, DType::kFloat64});
  return c.input(0).dtype() == DType::kFloat32 ? body(float{}) : body(double{});
}

/// Decomposes a square matrix in place by rows, P A = L U; returns the sign of the permutation, 0 when it is singular.
int decompose(double* a, int64_t n, int64_t* order) {
  int sign = 1;
  bool singular = false;
  for (int64_t i = 0; i < n; ++i) order[i] = i;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i) {
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    }
    if (pivot != k) {
      std::swap_ranges(a + k * n, a + (k + 1) * n, a + pivot * n);
      std::swap(order[k], order[pivot]);
      sign = -sign;
    }
    const double head = a[k * n + k];
    if (head == 0) {
      singular = true;
      continue;
    }
    for_items(n - k - 1, static_cast<double>(n - k), [&](int64_t step) {
      double* row = a + (k + 1 + step) * n;
      const double factor = row[k] /= head;
      for (int64_t j = k + 1; j < n; ++j) row[j] -= factor * a[k * n + j];
    });
  }
  return singular ? 0 : sign;
}

/// Workspace of decompose(): the matrix, its transpose or right sides, and the order of rows.
struct LuSpace {
  double* matrix;
  double* other;
  int64_t* order;
  LuSpace(const RunContext& run, int64_t n, int64_t columns)
      : matrix(run.scratch_as<double>()),
        other(matrix + n * n),
        order(reinterpret_cast<int64_t*>(matrix + n * n + n * columns)) {}
  static int64_t bytes(const OpContext& c, int64_t n, int64_t columns) {
    const int64_t numbers = checked_add(c, checked_multiply(c, n, n), checked_multiply(c, n, columns));
    return checked_multiply(c, checked_add(c, numbers, n), sizeof(double));
  }
};

/// Solves with what decompose() left, in place: `x` has `columns` right sides, already in the order of rows.
void solve(const double* lu, int64_t n, double* x, int64_t columns) {
  for_items(n, static_cast<double>(n * columns), [&](int64_t i) {
    for (int64_t k = 0; k < i; ++k) {
      for (int64_t j = 0; j < columns; ++j) x[i * columns + j] -= lu[i * n + k] * x[k * columns + j];
    }
  });
  for_items(n, static_cast<double>(n * columns), [&](int64_t step) {
    const int64_t i = n - 1 - step;
    for (int64_t k = i + 1; k < n; ++k) {
      for (int64_t j = 0; j < columns; ++j) x[i * columns + j] -= lu[i * n + k] * x[k * columns + j];
    }
    for (int64_t j = 0; j < columns; ++j) x[i * columns + j] /= lu[i * n + i];
  });
}

template <typename T>
void load(const T* from, int64_t n, bool transposed, double* to) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) to[i * n + j] = static_cast<double>(transposed ? from[j * n + i] : from[i * n + j]);
  }
}

// MatrixInverse, MatrixSolve

void infer_inverse(InferContext& c) {
  node_def(c);
  require_same_type(c, c.input(0), c.output(0));
  square_matrices(c, 0);
  c.set_output_shape(0, c.input(0).shape);
}

template <typename T>
void run_solve(RunContext& run, const Matrices& m, int64_t columns, bool adjoint, const T* sides) {
  const LuSpace space(run, m.rows, columns);
  const int64_t n = m.rows;
  for_items(m.count, kWholePiece, [&](int64_t batch) {
    load(run.input(0).as<T>() + batch * m.size(), n, adjoint, space.matrix);
    run.require(decompose(space.matrix, n, space.order) != 0, "matrix {} has no inverse", batch);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        space.other[i * columns + j] = sides == nullptr
                                           ? static_cast<double>(space.order[i] == j)
                                           : static_cast<double>(sides[(batch * n + space.order[i]) * columns + j]);
      }
    }
    solve(space.matrix, n, space.other, columns);
    T* out = run.output(0).mutable_as<T>() + batch * n * columns;
    for (int64_t i = 0; i < n * columns; ++i) out[i] = static_cast<T>(space.other[i]);
  });
}

std::unique_ptr<Kernel> prepare_inverse(PrepareContext& c) {
  const Matrices m = square_matrices(c, 0);
  const bool adjoint = node_def(c).flag("adjoint", false);
  c.request_scratch(LuSpace::bytes(c, m.rows, m.rows));
  return with_precision(c, [&](auto type) {
    using T = decltype(type);
    return make_kernel([m, adjoint](RunContext& run) { run_solve<T>(run, m, m.rows, adjoint, nullptr); });
  });
}

void infer_solve(InferContext& c) {
  node_def(c);
  require_same_type(c, c.input(0), c.input(1));
  require_same_type(c, c.input(0), c.output(0));
  const Matrices m = square_matrices(c, 0);
  const Matrices sides = matrices(c, 1);
  c.require(m.rows == sides.rows && m.count == sides.count, "matrices {} and right sides {} do not fit",
            c.input(0).shape.to_string(), c.input(1).shape.to_string());
  c.set_output_shape(0, c.input(1).shape);
}

std::unique_ptr<Kernel> prepare_solve(PrepareContext& c) {
  const Matrices m = square_matrices(c, 0);
  const int64_t columns = matrices(c, 1).columns;
  const bool adjoint = node_def(c).flag("adjoint", false);
  c.request_scratch(LuSpace::bytes(c, m.rows, columns));
  return with_precision(c, [&](auto type) {
    using T = decltype(type);
    return make_kernel([=](RunContext& run) { run_solve<T>(run, m, columns, adjoint, run.input(1).as<T>()); });
  });
}

// MatrixDeterminant, LogMatrixDeterminant

Shape batch_shape(const OpContext& c) {
  const Shape& shape = c.input(0).shape;
  return Shape(shape.dims().first(static_cast<size_t>(shape.rank() - 2)));
}

void infer_determinant(InferContext& c) {
  node_def(c);
  square_matrices(c, 0);
  for (int i = 0; i < c.output_count(); ++i) {
    require_same_type(c, c.input(0), c.output(i));
    c.set_output_shape(i, batch_shape(c));
  }
}

template <bool kLogarithm>
std::unique_ptr<Kernel> prepare_determinant(PrepareContext& c) {
  const Matrices m = square_matrices(c, 0);
  c.request_scratch(LuSpace::bytes(c, m.rows, 0));
  return with_precision(c, [&](auto type) {
    using T = decltype(type);
    return make_kernel([m](RunContext& run) {
      const LuSpace space(run, m.rows, 0);
      for_items(m.count, kWholePiece, [&](int64_t batch) {
        load(run.input(0).as<T>() + batch * m.size(), m.rows, false, space.matrix);
        int sign = decompose(space.matrix, m.rows, space.order);
        double product = sign;
        double logarithm = 0;
        for (int64_t i = 0; i < m.rows; ++i) {
          const double value = space.matrix[i * m.rows + i];
          product *= value;
          logarithm += std::log(std::abs(value));
          if (value < 0) sign = -sign;
        }
        if (kLogarithm) {
          run.output(0).mutable_as<T>()[batch] = static_cast<T>(sign);
          run.output(1).mutable_as<T>()[batch] = static_cast<T>(logarithm);
        } else {
          run.output(0).mutable_as<T>()[batch] = static_cast<T>(product);
        }
      });
    });
  });
}

// Cholesky

std::unique_ptr<Kernel> prepare_cholesky(PrepareContext& c) {
  const Matrices m = square_matrices(c, 0);
  c.request_scratch(checked_multiply(c, checked_multiply(c, m.rows, m.rows), sizeof(double)));
  return with_precision(c, [&](auto type) {
    using T = decltype(type);
    return make_kernel([m](RunContext& run) {
      const int64_t n = m.rows;
      auto* l = run.scratch_as<double>();
      for_items(m.count, kWholePiece, [&](int64_t batch) {
        load(run.input(0).as<T>() + batch * m.size(), n, false, l);
        for_items(n, cube(n) / static_cast<double>(std::max<int64_t>(n, 1)), [&](int64_t i) {
          for (int64_t j = 0; j <= i; ++j) {
            double sum = l[i * n + j];
            for (int64_t k = 0; k < j; ++k) sum -= l[i * n + k] * l[j * n + k];
            if (i == j) run.require(sum > 0, "matrix {} is not positive definite", batch);
            l[i * n + j] = i == j ? std::sqrt(sum) : sum / l[j * n + j];
          }
        });
        T* out = run.output(0).mutable_as<T>() + batch * m.size();
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < n; ++j) out[i * n + j] = j <= i ? static_cast<T>(l[i * n + j]) : T(0);
        }
      });
    });
  });
}

// MatrixTriangularSolve, with batches that broadcast

void infer_triangular(InferContext& c) {
  node_def(c);
  require_same_type(c, c.input(0), c.input(1));
  require_same_type(c, c.input(0), c.output(0));
  const Matrices m = square_matrices(c, 0);
  const Matrices sides = matrices(c, 1);
  c.require(m.rows == sides.rows, "matrices {} and right sides {} do not fit", c.input(0).shape.to_string(),
            c.input(1).shape.to_string());
  const auto batch = [&](int i) {
    const Shape& shape = c.input(i).shape;
    return Shape(shape.dims().first(static_cast<size_t>(shape.rank() - 2)));
  };
  Shape result = broadcast_shapes(c, batch(0), batch(1));
  c.require(result.rank() <= kMaxRank - 2, "the result has too many dimensions");
  result.push_back(sides.rows);
  result.push_back(sides.columns);
  c.set_output_shape(0, result);
}

std::unique_ptr<Kernel> prepare_triangular(PrepareContext& c) {
  const Matrices m = square_matrices(c, 0);
  const int64_t columns = matrices(c, 1).columns;
  const bool adjoint = node_def(c).flag("adjoint", false);
  const bool lower = node_def(c).flag("lower", true) != adjoint;
  const auto batch = [](const Shape& shape) {
    return Shape(shape.dims().first(static_cast<size_t>(shape.rank() - 2)));
  };
  const Shape batches = batch(c.output(0).shape);
  const auto plan = kernels::plan_broadcast<2>(batches, {batch(c.input(0).shape), batch(c.input(1).shape)});
  c.request_scratch(checked_multiply(c, checked_multiply(c, m.rows, columns), sizeof(double)));
  return with_precision(c, [&](auto type) {
    using T = decltype(type);
    return make_kernel([=](RunContext& run) {
      const int64_t n = m.rows;
      auto* x = run.scratch_as<double>();
      const auto solve_one = [&](int64_t at, int64_t from_a, int64_t from_b) {
        const T* a = run.input(0).as<T>() + from_a * n * n;
        const T* b = run.input(1).as<T>() + from_b * n * columns;
        const auto element = [&](int64_t i, int64_t j) {
          return static_cast<double>(adjoint ? a[j * n + i] : a[i * n + j]);
        };
        for_items(n, static_cast<double>(n * columns), [&](int64_t step) {
          const int64_t i = lower ? step : n - 1 - step;
          for (int64_t j = 0; j < columns; ++j) x[i * columns + j] = static_cast<double>(b[i * columns + j]);
          for (int64_t k = lower ? 0 : i + 1; k < (lower ? i : n); ++k) {
            for (int64_t j = 0; j < columns; ++j) x[i * columns + j] -= element(i, k) * x[k * columns + j];
          }
          run.require(element(i, i) != 0, "a triangular matrix has no inverse: element {} of its diagonal is 0", i);
          for (int64_t j = 0; j < columns; ++j) x[i * columns + j] /= element(i, i);
        });
        T* out = run.output(0).mutable_as<T>() + at * n * columns;
        for (int64_t i = 0; i < n * columns; ++i) out[i] = static_cast<T>(x[i]);
      };
      for_items(plan.elements, kWholePiece, [&](int64_t i) {
        kernels::for_each_row(plan, i, i + 1, [&](int64_t at, const std::array<int64_t, 2>& from, int64_t) {
          solve_one(at, from[0], from[1]);
        });
      });
    });
  });
}

// Qr, by Householder's reflections: the diagonal of R may be negative, as in LAPACK

void infer_qr(InferContext& c) {
  const bool full = node_def(c).flag("full_matrices", false);
  const Matrices m = matrices(c, 0);
  const int64_t inner = full ? m.rows : std::min(m.rows, m.columns);
  for (int i = 0; i < 2; ++i) require_same_type(c, c.input(0), c.output(i));
  Shape q = batch_shape(c);
  Shape r = q;
  q.push_back(m.rows);
  q.push_back(inner);
  r.push_back(inner);
  r.push_back(m.columns);
  c.set_output_shape(0, q);
  c.set_output_shape(1, r);
}

/// Makes R of `a` in place, and applies the same reflections to `q`, the identity at first, from the right.
void reflect(double* a, double* q, double* v, int64_t m, int64_t n) {
  for_items(std::min(m, n), static_cast<double>(m * (n + m)), [&](int64_t k) {
    double norm = 0;
    for (int64_t i = k; i < m; ++i) norm += a[i * n + k] * a[i * n + k];
    norm = std::sqrt(norm);
    if (norm == 0 || k == m - 1) return;
    const double head = a[k * n + k] >= 0 ? -norm : norm;
    double square = 0;
    for (int64_t i = k; i < m; ++i) {
      v[i] = a[i * n + k] - (i == k ? head : 0);
      square += v[i] * v[i];
    }
    if (square == 0) return;
    for (int64_t j = k; j < n; ++j) {
      double sum = 0;
      for (int64_t i = k; i < m; ++i) sum += v[i] * a[i * n + j];
      for (int64_t i = k; i < m; ++i) a[i * n + j] -= 2 * v[i] * sum / square;
    }
    for (int64_t i = 0; i < m; ++i) {
      double sum = 0;
      for (int64_t j = k; j < m; ++j) sum += q[i * m + j] * v[j];
      for (int64_t j = k; j < m; ++j) q[i * m + j] -= 2 * sum * v[j] / square;
    }
  });
}

std::unique_ptr<Kernel> prepare_qr(PrepareContext& c) {
  const Matrices m = matrices(c, 0);
  const int64_t inner = c.output(0).shape[c.output(0).shape.rank() - 1];
  const int64_t numbers = checked_add(c, checked_multiply(c, m.rows, m.columns), checked_multiply(c, m.rows, m.rows));
  c.request_scratch(checked_multiply(c, checked_add(c, numbers, m.rows), sizeof(double)));
  return with_precision(c, [&](auto type) {
    using T = decltype(type);
    return make_kernel([m, inner](RunContext& run) {
      auto* a = run.scratch_as<double>();
      double* q = a + m.size();
      double* v = q + m.rows * m.rows;
      for_items(m.count, kWholePiece, [&](int64_t batch) {
        const T* in = run.input(0).as<T>() + batch * m.size();
        for (int64_t i = 0; i < m.size(); ++i) a[i] = static_cast<double>(in[i]);
        for (int64_t i = 0; i < m.rows * m.rows; ++i) q[i] = i / m.rows == i % m.rows ? 1 : 0;
        reflect(a, q, v, m.rows, m.columns);
        T* out_q = run.output(0).mutable_as<T>() + batch * m.rows * inner;
        T* out_r = run.output(1).mutable_as<T>() + batch * inner * m.columns;
        for (int64_t i = 0; i < m.rows; ++i) {
          for (int64_t j = 0; j < inner; ++j) out_q[i * inner + j] = static_cast<T>(q[i * m.rows + j]);
        }
        for (int64_t i = 0; i < inner; ++i) {
          for (int64_t j = 0; j < m.columns; ++j) {
            out_r[i * m.columns + j] = j >= i ? static_cast<T>(a[i * m.columns + j]) : T(0);
          }
        }
      });
    });
  });
}

// MatrixBandPart(input, num_lower, num_upper), of any type

void infer_band(InferContext& c) {
  node_def(c);
  require_movable(c, c.input(0), {});
  require_same_type(c, c.input(0), c.output(0));
  matrices(c, 0);
  for (int i = 1; i < 3; ++i) {
    require_indices(c, i);
    require_elements(c, i, 1);
  }
  c.set_output_shape(0, c.input(0).shape);
}

std::unique_ptr<Kernel> prepare_band(PrepareContext& c) {
  const Matrices m = matrices(c, 0);
  const int64_t bytes = element_bytes(c.input(0).dtype());
  return make_kernel([m, bytes](RunContext& run) {
    const int64_t lower = index_at(run.input(1), 0);
    const int64_t upper = index_at(run.input(2), 0);
    run.require(lower <= m.rows && upper <= m.columns, "a band of {} and {} diagonals does not fit into {} x {}", lower,
                upper, m.rows, m.columns);
    for_items(m.count * m.rows, static_cast<double>(m.columns), [&](int64_t line) {
      const int64_t row = line % m.rows;
      const int64_t begin = lower < 0 ? 0 : std::clamp<int64_t>(row - lower, 0, m.columns);
      const int64_t end = upper < 0 ? m.columns : std::clamp<int64_t>(row + upper + 1, begin, m.columns);
      const std::byte* from = run.input(0).data + line * m.columns * bytes;
      std::byte* to = run.output(0).data + line * m.columns * bytes;
      std::memset(to, 0, static_cast<size_t>(begin * bytes));
      std::memcpy(to + begin * bytes, from + begin * bytes, static_cast<size_t>((end - begin) * bytes));
      std::memset(to + end * bytes, 0, static_cast<size_t>((m.columns - end) * bytes));
    });
  });
}

}  // namespace

void register_flex_linalg(Registry& registry) {
  const auto add = [&](std::string_view name, int inputs, int outputs, Infer infer, Prepare prepare) {
    registry.add(flex_row(name, inputs, outputs, infer, prepare, "f32 f64"));
  };
  add("FlexMatrixInverse", 1, 1, infer_inverse, prepare_inverse);
  add("FlexBatchMatrixInverse", 1, 1, infer_inverse, prepare_inverse);
  add("FlexMatrixSolve", 2, 1, infer_solve, prepare_solve);
  add("FlexMatrixDeterminant", 1, 1, infer_determinant, prepare_determinant<false>);
  add("FlexBatchMatrixDeterminant", 1, 1, infer_determinant, prepare_determinant<false>);
  add("FlexLogMatrixDeterminant", 1, 2, infer_determinant, prepare_determinant<true>);
  add("FlexCholesky", 1, 1, infer_inverse, prepare_cholesky);
  add("FlexBatchCholesky", 1, 1, infer_inverse, prepare_cholesky);
  add("FlexMatrixTriangularSolve", 2, 1, infer_triangular, prepare_triangular);
  add("FlexBatchMatrixTriangularSolve", 2, 1, infer_triangular, prepare_triangular);
  add("FlexQr", 1, 2, infer_qr, prepare_qr);
  registry.add(flex_row("FlexMatrixBandPart", 3, 1, infer_band, prepare_band, "any of fixed size"));
  registry.add(flex_row("FlexBatchMatrixBandPart", 3, 1, infer_band, prepare_band, "any of fixed size"));
}

}  // namespace leadline::ops
