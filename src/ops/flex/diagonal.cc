// SPDX-License-Identifier: Apache-2.0
// Flex ops on diagonals of matrices: MatrixDiag, MatrixDiagPart, MatrixSetDiag in their three versions, Diag, DiagPart.
// Bands of diagonals are rows of a matrix, the highest first; shorter ones are padded on one side.
#include <algorithm>
#include <cstring>

#include "ops/flex/families.h"
#include "ops/flex/flex.h"

namespace leadline::ops {
namespace {

/// The diagonals from `low` to `high` of matrices.
struct Band {
  int64_t low = 0;
  int64_t high = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t longest = 0;  // elements in a row of the band
  bool left_above = true;
  bool left_below = true;

  int64_t count() const { return high - low + 1; }
  int64_t length(int64_t k) const {
    return std::min(rows + std::min<int64_t>(k, 0), columns - std::max<int64_t>(k, 0));
  }
  /// Where diagonal `k` begins in its row of the band.
  int64_t offset(int64_t k) const {
    const bool left = (k >= 0 && left_above) || (k <= 0 && left_below);
    return left ? 0 : longest - length(k);
  }
};

/// The third version aligns as an attribute says, the second to the left.
void read_alignment(const OpContext& c, Band& band, int version) {
  if (version < 3) return;
  const std::string_view align = node_def(c).text("align", "RIGHT_LEFT");
  c.require(align == "LEFT_RIGHT" || align == "RIGHT_LEFT" || align == "LEFT_LEFT" || align == "RIGHT_RIGHT",
            "its align is '{}'", align);
  band.left_above = align.starts_with("LEFT");
  band.left_below = align.ends_with("LEFT");
}

/// `input` holds one or two numbers of diagonals.
void read_diagonals(const OpContext& c, Band& band, int input) {
  c.require_input_type(input, {DType::kInt32});
  const std::vector<int64_t> k = known_ints(c, input);
  c.require(k.size() == 1 || k.size() == 2, "the diagonals are {} numbers, expected one or two", k.size());
  band.low = k.front();
  band.high = k.back();
  c.require(band.low <= band.high, "the diagonals {} to {} are in the wrong order", band.low, band.high);
}

void require_inside(const OpContext& c, const Band& band) {
  c.require((band.low > -band.rows && band.high < band.columns) || (band.low == 0 && band.high == 0),
            "diagonals {} to {} lie outside matrices of {} x {}", band.low, band.high, band.rows, band.columns);
}

void set_longest(Band& band) {
  band.longest = std::max<int64_t>(
      0, std::min(band.rows + std::min<int64_t>(band.high, 0), band.columns + std::min<int64_t>(-band.low, 0)));
}

/// Calls body(place in the matrix, place in the band) for the elements of the band.
template <typename Body>
void for_band(const Band& band, const Body& body) {
  for (int64_t k = band.high; k >= band.low; --k) {
    const int64_t first = (band.high - k) * band.longest + band.offset(k);
    for (int64_t n = 0; n < band.length(k); ++n) {
      const int64_t row = n + std::max<int64_t>(-k, 0);
      const int64_t column = n + std::max<int64_t>(k, 0);
      body(row * band.columns + column, first + n);
    }
  }
}

void check_diagonal_types(const InferContext& c, int padding_input) {
  require_movable(c, c.input(0), {});
  require_same_type(c, c.input(0), c.output(0));
  if (padding_input >= c.input_count() || padding_input < 0) return;
  require_same_type(c, c.input(0), c.input(padding_input));
  require_elements(c, padding_input, 1);
}

/// Fills `to` with `count` copies of an element, of zeros when there is none.
void fill_elements(std::byte* to, const std::byte* element, int64_t bytes, int64_t count) {
  for_items(count, 2, [&](int64_t i) {
    if (element == nullptr)
      std::memset(to + i * bytes, 0, static_cast<size_t>(bytes));
    else
      std::memcpy(to + i * bytes, element, static_cast<size_t>(bytes));
  });
}

/// The diagonals of the matrices that input 0 has. Since version 2, input number `diagonals` says which; nothing while
/// that is not known.
template <int kVersion>
std::optional<Band> band_of_matrices(const OpContext& c, int diagonals) {
  node_def(c);
  const Shape& shape = c.input(0).shape;
  c.require(shape.rank() >= 2, "the input has shape {}, expected matrices", shape.to_string());
  Band band;
  band.rows = shape[shape.rank() - 2];
  band.columns = shape[shape.rank() - 1];
  if (kVersion > 1) {
    if (!c.input(diagonals).known) return std::nullopt;
    read_diagonals(c, band, diagonals);
    read_alignment(c, band, kVersion);
  }
  require_inside(c, band);
  set_longest(band);
  return band;
}

/// The shape of these diagonals alone.
Shape shape_of_diagonals(const InferContext& c, const Band& band) {
  const Shape& shape = c.input(0).shape;
  std::vector<int64_t> sizes(shape.begin(), shape.end() - 2);
  if (band.count() > 1) sizes.push_back(band.count());
  sizes.push_back(band.longest);
  return checked_shape(c, sizes);
}

// MatrixDiagPart(input[, k, padding_value])

template <int kVersion>
void infer_diagonal_part(InferContext& c) {
  check_diagonal_types(c, 2);
  const auto band = band_of_matrices<kVersion>(c, 1);
  if (!band) return c.defer();
  c.set_output_shape(0, shape_of_diagonals(c, *band));
}

template <int kVersion>
std::unique_ptr<Kernel> prepare_diagonal_part(PrepareContext& c) {
  const Band band = band_of_matrices<kVersion>(c, 1).value_or(Band{});
  const int64_t bytes = element_bytes(c.input(0).dtype());
  return make_kernel([band, bytes](RunContext& run) {
    const std::byte* padding = kVersion > 1 ? run.input(2).data : nullptr;
    const int64_t size = band.count() * band.longest;
    const int64_t count = size == 0 ? 0 : run.output(0).elements() / size;
    for_items(count, 4 * static_cast<double>(size), [&](int64_t batch) {
      const std::byte* matrix = run.input(0).data + batch * band.rows * band.columns * bytes;
      std::byte* out = run.output(0).data + batch * size * bytes;
      fill_elements(out, padding, bytes, size);
      for_band(band, [&](int64_t place, int64_t at) {
        std::memcpy(out + at * bytes, matrix + place * bytes, static_cast<size_t>(bytes));
      });
    });
  });
}

// MatrixDiag(diagonal[, k, num_rows, num_cols, padding_value])

template <int kVersion>
std::optional<Band> new_band(const OpContext& c) {
  node_def(c);
  const Shape& shape = c.input(0).shape;
  c.require(shape.rank() >= 1, "the diagonal is a scalar, expected at least a vector");
  Band band;
  band.longest = shape[shape.rank() - 1];
  band.rows = band.columns = band.longest;
  if (kVersion == 1) return band;
  for (int i = 1; i < 4; ++i) {
    if (!c.input(i).known) return std::nullopt;
  }
  read_diagonals(c, band, 1);
  read_alignment(c, band, kVersion);
  c.require(band.count() == 1 || (shape.rank() >= 2 && shape[shape.rank() - 2] == band.count()),
            "{} diagonals do not fit shape {}", band.count(), shape.to_string());
  const int64_t least_rows = band.longest - std::min<int64_t>(band.high, 0);
  const int64_t least_columns = band.longest + std::max<int64_t>(band.low, 0);
  const int64_t rows = integer_of_input(c, 2);
  const int64_t columns = integer_of_input(c, 3);
  const bool square = rows == -1 && columns == -1;
  band.rows = square ? std::max(least_rows, least_columns) : (rows == -1 ? least_rows : rows);
  band.columns = square ? band.rows : (columns == -1 ? least_columns : columns);
  c.require(band.rows >= least_rows && band.columns >= least_columns,
            "diagonals of {} elements do not fit matrices of {} x {}", band.longest, band.rows, band.columns);
  require_inside(c, band);
  return band;
}

template <int kVersion>
void infer_diagonal_new(InferContext& c) {
  check_diagonal_types(c, 4);
  const auto band = new_band<kVersion>(c);
  if (!band) return c.defer();
  const Shape& shape = c.input(0).shape;
  std::vector<int64_t> sizes(shape.begin(), shape.end() - (band->count() > 1 ? 2 : 1));
  sizes.push_back(band->rows);
  sizes.push_back(band->columns);
  c.set_output_shape(0, checked_shape(c, sizes));
}

template <int kVersion>
std::unique_ptr<Kernel> prepare_diagonal_new(PrepareContext& c) {
  const Band band = new_band<kVersion>(c).value_or(Band{});
  const int64_t bytes = element_bytes(c.input(0).dtype());
  return make_kernel([band, bytes](RunContext& run) {
    const std::byte* padding = kVersion > 1 ? run.input(4).data : nullptr;
    const int64_t size = band.rows * band.columns;
    const int64_t count = size == 0 ? 0 : run.output(0).elements() / size;
    for_items(count, 4 * static_cast<double>(size), [&](int64_t batch) {
      const std::byte* from = run.input(0).data + batch * band.count() * band.longest * bytes;
      std::byte* out = run.output(0).data + batch * size * bytes;
      fill_elements(out, padding, bytes, size);
      for_band(band, [&](int64_t place, int64_t at) {
        std::memcpy(out + place * bytes, from + at * bytes, static_cast<size_t>(bytes));
      });
    });
  });
}

// MatrixSetDiag(input, diagonal[, k])

template <int kVersion>
void infer_diagonal_set(InferContext& c) {
  check_diagonal_types(c, -1);
  require_same_type(c, c.input(0), c.input(1));
  const auto band = band_of_matrices<kVersion>(c, 2);
  if (!band) return c.defer();
  const Shape expected = shape_of_diagonals(c, *band);
  c.require(c.input(1).shape == expected, "the diagonals have shape {}, expected {}", c.input(1).shape.to_string(),
            expected.to_string());
  c.set_output_shape(0, c.input(0).shape);
}

template <int kVersion>
std::unique_ptr<Kernel> prepare_diagonal_set(PrepareContext& c) {
  const Band band = band_of_matrices<kVersion>(c, 2).value_or(Band{});
  const int64_t bytes = element_bytes(c.input(0).dtype());
  return make_kernel([band, bytes](RunContext& run) {
    const TensorView& out = run.output(0);
    if (out.bytes == 0) return;
    copy_bytes(out.data, run.input(0).data, out.bytes);
    const int64_t size = band.rows * band.columns;
    for_items(out.elements() / size, 4 * static_cast<double>(size), [&](int64_t batch) {
      for_band(band, [&](int64_t place, int64_t at) {
        std::memcpy(out.data + (batch * size + place) * bytes,
                    run.input(1).data + (batch * band.count() * band.longest + at) * bytes, static_cast<size_t>(bytes));
      });
    });
  });
}

// Diag(diagonal): [a, b] becomes [a, b, a, b]; DiagPart(input) is the way back

void infer_tensor_diag(InferContext& c) {
  node_def(c);
  check_diagonal_types(c, -1);
  const Shape& shape = c.input(0).shape;
  std::vector<int64_t> sizes(shape.begin(), shape.end());
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  c.set_output_shape(0, checked_shape(c, sizes));
}

void infer_tensor_part(InferContext& c) {
  node_def(c);
  check_diagonal_types(c, -1);
  const Shape& shape = c.input(0).shape;
  const int half = shape.rank() / 2;
  c.require(shape.rank() % 2 == 0 && shape.rank() > 0 &&
                std::equal(shape.begin(), shape.begin() + half, shape.begin() + half),
            "the input has shape {}, expected two equal halves", shape.to_string());
  c.set_output_shape(0, Shape(shape.dims().first(static_cast<size_t>(half))));
}

template <bool kPart>
std::unique_ptr<Kernel> prepare_tensor_diag(PrepareContext& c) {
  const int64_t bytes = element_bytes(c.input(0).dtype());
  return make_kernel([bytes](RunContext& run) {
    const TensorView& out = run.output(0);
    const int64_t count = kPart ? out.elements() : run.input(0).elements();
    if (!kPart && out.bytes > 0) fill_bytes(out.data, std::byte{0}, out.bytes);
    for_items(count, 2, [&](int64_t i) {
      const int64_t place = i * (count + 1);
      std::memcpy(out.data + (kPart ? i : place) * bytes, run.input(0).data + (kPart ? place : i) * bytes,
                  static_cast<size_t>(bytes));
    });
  });
}

}  // namespace

void register_flex_diagonal(Registry& registry) {
  const auto add = [&](std::string_view name, int inputs, Infer infer, Prepare prepare) {
    registry.add(flex_row(name, inputs, 1, infer, prepare, "any of fixed size"));
  };
  add("FlexMatrixDiag", 1, infer_diagonal_new<1>, prepare_diagonal_new<1>);
  add("FlexBatchMatrixDiag", 1, infer_diagonal_new<1>, prepare_diagonal_new<1>);
  add("FlexMatrixDiagV2", 5, infer_diagonal_new<2>, prepare_diagonal_new<2>);
  add("FlexMatrixDiagV3", 5, infer_diagonal_new<3>, prepare_diagonal_new<3>);
  add("FlexMatrixDiagPart", 1, infer_diagonal_part<1>, prepare_diagonal_part<1>);
  add("FlexBatchMatrixDiagPart", 1, infer_diagonal_part<1>, prepare_diagonal_part<1>);
  add("FlexMatrixDiagPartV2", 3, infer_diagonal_part<2>, prepare_diagonal_part<2>);
  add("FlexMatrixDiagPartV3", 3, infer_diagonal_part<3>, prepare_diagonal_part<3>);
  add("FlexMatrixSetDiag", 2, infer_diagonal_set<1>, prepare_diagonal_set<1>);
  add("FlexBatchMatrixSetDiag", 2, infer_diagonal_set<1>, prepare_diagonal_set<1>);
  add("FlexMatrixSetDiagV2", 3, infer_diagonal_set<2>, prepare_diagonal_set<2>);
  add("FlexMatrixSetDiagV3", 3, infer_diagonal_set<3>, prepare_diagonal_set<3>);
  add("FlexDiag", 1, infer_tensor_diag, prepare_tensor_diag<false>);
  add("FlexDiagPart", 1, infer_tensor_part, prepare_tensor_diag<true>);
}

}  // namespace leadline::ops
