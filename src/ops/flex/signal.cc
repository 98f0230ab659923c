// SPDX-License-Identifier: Apache-2.0
// Flex ops that are discrete Fourier transforms over the last one, two or three axes: FFT, IFFT, RFFT, IRFFT and their
// 2D and 3D forms. They compute in double precision, any length.
#include <algorithm>
#include <array>
#include <complex>

#include "ops/flex/families.h"
#include "ops/flex/flex.h"
#include "ops/loops/fft.h"

namespace leadline::ops {
namespace {

enum class Transform : uint8_t { kForward, kInverse, kReal, kInverseReal };

constexpr bool takes_length(Transform t) { return t == Transform::kReal || t == Transform::kInverseReal; }

/// What is transformed: `axes` inner axes of these lengths, for each of `batches`.
struct Geometry {
  int axes = 1;
  std::array<int64_t, 3> length = {1, 1, 1};  // of the complex transform
  std::array<int64_t, 3> given = {1, 1, 1};   // of the input
  std::array<int64_t, 3> result = {1, 1, 1};  // of the output
  int64_t batches = 1;

  int64_t volume() const { return length[0] * length[1] * length[2]; }
};

std::optional<Geometry> geometry(const OpContext& c, Transform transform, int axes) {
  const Shape& shape = c.input(0).shape;
  c.require(shape.rank() >= axes, "the input has shape {}, expected rank {} or more", shape.to_string(), axes);
  Geometry g;
  g.axes = axes;
  g.batches = span_elements(shape, 0, shape.rank() - axes);
  for (int i = 0; i < axes; ++i) {
    g.given[static_cast<size_t>(i)] = shape[shape.rank() - axes + i];
  }
  g.length = g.result = g.given;
  if (!takes_length(transform)) return g;
  c.require_input_type(1, {DType::kInt32});
  require_elements(c, 1, axes);
  if (!c.input(1).known) return std::nullopt;
  const std::vector<int64_t> lengths = known_ints(c, 1);
  constexpr int64_t kLongest = int64_t{1} << 30;
  for (int i = 0; i < axes; ++i) {
    const int64_t length = lengths[static_cast<size_t>(i)];
    c.require(length >= 0 && length <= kLongest, "the length of axis {} is {}, expected 0 to {}", i, length, kLongest);
    g.length[static_cast<size_t>(i)] = g.result[static_cast<size_t>(i)] = length;
  }
  const auto last = static_cast<size_t>(axes - 1);
  if (transform == Transform::kReal) g.result[last] = g.length[last] == 0 ? 0 : g.length[last] / 2 + 1;
  return g;
}

template <Transform kTransform, int kAxes>
void infer_transform(InferContext& c) {
  node_def(c);
  const bool real_input = kTransform == Transform::kReal;
  const bool real_output = kTransform == Transform::kInverseReal;
  if (real_input)
    c.require_input_type(0, {DType::kFloat32, DType::kFloat64});
  else
    c.require_input_type(0, {DType::kComplex64, DType::kComplex128});
  if (real_output)
    c.require_output_type(0, {DType::kFloat32, DType::kFloat64});
  else
    c.require_output_type(0, {DType::kComplex64, DType::kComplex128});
  const auto g = geometry(c, kTransform, kAxes);
  if (!g) return c.defer();
  Shape shape = c.input(0).shape;
  for (int i = 0; i < kAxes; ++i) shape.set(shape.rank() - kAxes + i, g->result[static_cast<size_t>(i)]);
  c.set_output_shape(0, shape);
}

/// Offsets of the parts of the workspace, in complex numbers.
struct Workspace3 {
  std::array<int64_t, 3> table = {};
  int64_t line = 0;
  int64_t inner = 0;
  int64_t total = 0;
};

Workspace3 workspace(const OpContext& c, const Geometry& g) {
  Workspace3 w;
  int64_t at = checked_multiply(c, checked_multiply(c, g.length[0], g.length[1]), g.length[2]);
  int64_t longest = 0;
  int64_t inner = 0;
  for (size_t i = 0; i < static_cast<size_t>(g.axes); ++i) {
    if (g.length[i] == 0) continue;
    const Fft fft(g.length[i]);
    w.table[i] = at;
    at = checked_add(c, at, fft.table_size());
    longest = std::max(longest, g.length[i]);
    inner = std::max(inner, fft.workspace_size());
  }
  w.line = at;
  w.inner = checked_add(c, w.line, longest);
  w.total = checked_add(c, w.inner, inner);
  return w;
}

/// Transforms all lines of `data` along axis `axis` forward.
void transform_axis(const Geometry& g, size_t axis, const Complex* table, Complex* data, Complex* line,
                    Complex* inner) {
  const int64_t length = g.length[axis];
  const Fft fft(length);
  int64_t stride = 1;
  for (size_t i = axis + 1; i < 3; ++i) stride *= g.length[i];
  const int64_t lines = g.volume() / length;
  for (int64_t l = 0; l < lines; ++l) {
    Complex* first = data + l / stride * stride * length + l % stride;
    if (stride == 1) {
      fft.forward(table, first, inner);
      continue;
    }
    for (int64_t k = 0; k < length; ++k) line[k] = first[k * stride];
    fft.forward(table, line, inner);
    for (int64_t k = 0; k < length; ++k) first[k * stride] = line[k];
  }
}

/// Calls body(position in a block of shape `outer`, position in a block of shape `inner`) for what both contain.
template <typename Body>
void for_common(const std::array<int64_t, 3>& a, const std::array<int64_t, 3>& b, const Body& body) {
  for (int64_t i = 0; i < std::min(a[0], b[0]); ++i) {
    for (int64_t j = 0; j < std::min(a[1], b[1]); ++j) {
      for (int64_t k = 0; k < std::min(a[2], b[2]); ++k) {
        body((i * a[1] + j) * a[2] + k, (i * b[1] + j) * b[2] + k);
      }
    }
  }
}

/// Axes are counted from the last: a transform over one axis has two axes of size 1 before it.
Geometry aligned(const Geometry& g) {
  Geometry result = g;
  for (auto member : {&Geometry::length, &Geometry::given, &Geometry::result}) {
    std::array<int64_t, 3> sizes = {1, 1, 1};
    for (int i = 0; i < g.axes; ++i) sizes[static_cast<size_t>(3 - g.axes + i)] = (g.*member)[static_cast<size_t>(i)];
    result.*member = sizes;
  }
  result.axes = 3;
  return result;
}

/// Completes the bins that a real signal's spectrum leaves out: bin -k is the conjugate of bin k.
void complete_spectrum(const Geometry& g, Complex* data) {
  const auto [a, b, n] = g.length;
  for (int64_t i = 0; i < a; ++i) {
    for (int64_t j = 0; j < b; ++j) {
      for (int64_t k = n / 2 + 1; k < n; ++k) {
        const int64_t from = ((a - i) % a * b + (b - j) % b) * n + (n - k);
        data[(i * b + j) * n + k] = std::conj(data[from]);
      }
    }
  }
}

template <Transform kTransform, typename In, typename Out>
std::unique_ptr<Kernel> transform_kernel(const Geometry& g, const Workspace3& w) {
  return make_kernel([g, w](RunContext& run) {
    auto* data = run.scratch_as<Complex>();
    const int64_t volume = g.volume();
    const int64_t in_size = g.given[0] * g.given[1] * g.given[2];
    const int64_t out_size = g.result[0] * g.result[1] * g.result[2];
    if (volume == 0 || out_size == 0) return;
    for (size_t axis = 0; axis < 3; ++axis) Fft(g.length[axis]).fill_table(data + w.table[axis]);
    constexpr bool kInverts = kTransform == Transform::kInverse || kTransform == Transform::kInverseReal;
    const double scale = kInverts ? 1.0 / static_cast<double>(volume) : 1.0;
    for_items(g.batches, kWholePiece, [&](int64_t batch) {
      const In* in = run.input(0).as<In>() + batch * in_size;
      Out* out = run.output(0).mutable_as<Out>() + batch * out_size;
      std::fill_n(data, volume, Complex(0));
      std::array<int64_t, 3> read = g.given;
      if (kTransform == Transform::kInverseReal) read[2] = std::min(read[2], g.length[2] / 2 + 1);
      for_common(g.length, g.given, [&](int64_t to, int64_t from) {
        if (from % g.given[2] < read[2]) data[to] = Complex(in[from]);
      });
      if (kTransform == Transform::kInverseReal) complete_spectrum(g, data);
      // The inverse transform is the conjugate of the transform of the conjugate.
      if (kInverts) std::transform(data, data + volume, data, [](const Complex& z) { return std::conj(z); });
      for (size_t axis = 0; axis < 3; ++axis) {
        transform_axis(g, axis, data + w.table[axis], data, data + w.line, data + w.inner);
      }
      for_common(g.length, g.result, [&](int64_t from, int64_t to) {
        const Complex value = (kInverts ? std::conj(data[from]) : data[from]) * scale;
        if constexpr (kTransform == Transform::kInverseReal)
          out[to] = static_cast<Out>(value.real());
        else
          out[to] = static_cast<Out>(value);
      });
    });
  });
}

template <Transform kTransform, int kAxes>
std::unique_ptr<Kernel> prepare_transform(PrepareContext& c) {
  const auto found = geometry(c, kTransform, kAxes);
  c.require(found.has_value(), "its length is not known");
  const Geometry g = aligned(*found);
  const Workspace3 w = workspace(c, g);
  c.request_scratch(checked_multiply(c, w.total, sizeof(Complex)));
  const bool wide_in = dtype_bits(c.input(0).dtype()) == (kTransform == Transform::kReal ? 64 : 128);
  const bool wide_out = dtype_bits(c.output(0).dtype()) == (kTransform == Transform::kInverseReal ? 64 : 128);
  c.require(wide_in == wide_out, "input and output have different precisions");
  const auto make = [&](auto precision) -> std::unique_ptr<Kernel> {
    using T = decltype(precision);
    using Z = std::complex<T>;
    if constexpr (kTransform == Transform::kReal)
      return transform_kernel<kTransform, T, Z>(g, w);
    else if constexpr (kTransform == Transform::kInverseReal)
      return transform_kernel<kTransform, Z, T>(g, w);
    else
      return transform_kernel<kTransform, Z, Z>(g, w);
  };
  return wide_in ? make(double{}) : make(float{});
}

template <Transform kTransform>
void add_forms(Registry& registry, std::string_view one, std::string_view two, std::string_view three) {
  constexpr int kInputs = takes_length(kTransform) ? 2 : 1;
  constexpr std::string_view kTypes = kTransform == Transform::kReal ? "f32 f64" : "c64 c128";
  registry.add(flex_row(one, kInputs, 1, infer_transform<kTransform, 1>, prepare_transform<kTransform, 1>, kTypes));
  registry.add(flex_row(two, kInputs, 1, infer_transform<kTransform, 2>, prepare_transform<kTransform, 2>, kTypes));
  registry.add(flex_row(three, kInputs, 1, infer_transform<kTransform, 3>, prepare_transform<kTransform, 3>, kTypes));
}

}  // namespace

void register_flex_signal(Registry& registry) {
  add_forms<Transform::kForward>(registry, "FlexFFT", "FlexFFT2D", "FlexFFT3D");
  add_forms<Transform::kInverse>(registry, "FlexIFFT", "FlexIFFT2D", "FlexIFFT3D");
  add_forms<Transform::kReal>(registry, "FlexRFFT", "FlexRFFT2D", "FlexRFFT3D");
  add_forms<Transform::kInverseReal>(registry, "FlexIRFFT", "FlexIRFFT2D", "FlexIRFFT3D");
}

}  // namespace leadline::ops
