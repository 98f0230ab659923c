// SPDX-License-Identifier: Apache-2.0
// Complex numbers, which the format has hardly any ops for: a complex tensor is two real ones until a part of it is
// asked for. Transforms are products with the matrix of the transform, whose sizes may be unknown.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "import/saved_model/op_functions.h"

namespace leadline::saved_model {
namespace {

constexpr double kTurn = 6.283185307179586;
constexpr int64_t kMostInMatrix = 1 << 14;  // elements of a matrix that is a constant of the file

using Parts = std::array<int, 2>;

bool is_complex(OpCall& call, int value) {
  return call.importer.is_pair(value) || call.e.dtype(value) == DType::kComplex64;
}

Parts parts_of(OpCall& call, int value) {
  if (call.importer.is_pair(value)) {
    const auto [real, imaginary] = call.importer.pair(value);
    return {real, imaginary};
  }
  require(call.e.dtype(value) == DType::kComplex64, kBad, "an operand has type {}, expected complex numbers",
          dtype_name(call.e.dtype(value)));
  const auto part = [&](const char* op) { return call.builder().node(op, {value}, call.e.name(op), DType::kFloat32); };
  return {part("REAL"), part("IMAG")};
}

Outputs joined(OpCall& call, int real, int imaginary) { return {call.importer.make_pair(real, imaginary)}; }

/// cos and sin of 2 pi i k / n for i and k from 0 to n; n is an int32 vector of one element, or known.
Parts turns(OpCall& call, int64_t size, int n) {
  Emitter& e = call.e;
  if (size >= 0 && size * size <= kMostInMatrix) {
    std::vector<float> cosines;
    std::vector<float> sines;
    for (int64_t i = 0; i < size * size; ++i) {
      const double angle = kTurn * static_cast<double>((i / size) * (i % size) % size) / static_cast<double>(size);
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
    return {e.floats(cosines, {size, size}), e.floats(sines, {size, size})};
  }
  const int scalar = e.reshape(n, {});
  ops::NodeSpec spec;
  spec.op = "RANGE";
  spec.inputs = {e.integer(0), scalar, e.integer(1)};
  spec.outputs = {{e.name("Range"), DType::kInt32, {}, Dims{size}}};
  const int line = call.builder().add(std::move(spec))[0];
  const int product = e.mul(e.reshape(line, {-1, 1}), e.reshape(line, {1, -1}));
  const int step = e.div(e.scalar(static_cast<float>(kTurn)), e.cast(scalar, DType::kFloat32));
  const int angle = e.mul(e.cast(e.binary("FLOOR_MOD", product, scalar), DType::kFloat32), step);
  return {e.unary("COS", angle), e.unary("SIN", angle)};
}

/// The transform along one axis.
Parts transformed(OpCall& call, Parts x, int axis, bool inverse) {
  Emitter& e = call.e;
  const int rank = e.rank(x[0]);
  std::vector<int> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(axis)], order.back());
  const int64_t size = e.dims(x[0])[static_cast<size_t>(axis)];
  const int n = e.shape_part(x[0], axis, axis + 1);
  const auto [cosine, sine] = turns(call, size, n);
  for (int& part : x) {
    part = e.transpose(part, order);
    if (rank == 1) part = e.expand_dims(part, 0);
  }
  const int straight = e.matmul(x[0], cosine);
  const int crossed = e.matmul(x[1], sine);
  const int upright = e.matmul(x[1], cosine);
  const int turned = e.matmul(x[0], sine);
  Parts y = inverse ? Parts{e.sub(straight, crossed), e.add(upright, turned)}
                    : Parts{e.add(straight, crossed), e.sub(upright, turned)};
  for (int& part : y) {
    if (inverse) part = e.div(part, e.cast(e.reshape(n, {}), DType::kFloat32));
    if (rank == 1) part = e.squeeze(part, 0);
    part = e.transpose(part, order);
  }
  return y;
}

int64_t axes_of(std::string_view op) { return op.ends_with("3D") ? 3 : op.ends_with("2D") ? 2 : 1; }

}  // namespace

bool acts_on_parts(std::string_view op, bool pairs) {
  static constexpr std::string_view kSums[] = {"Add", "AddN", "AddV2", "Mean", "Neg", "Sub", "Sum"};
  static constexpr std::string_view kMoves[] = {
      "BatchToSpaceND", "BroadcastTo", "Concat",   "ConcatV2",     "ExpandDims",
      "Fill",           "Gather",      "GatherNd", "GatherV2",     "Identity",
      "MirrorPad",      "Pack",        "Pad",      "Reshape",      "ReverseV2",
      "Roll",           "Select",      "SelectV2", "Slice",        "SpaceToBatchND",
      "Split",          "SplitV",      "Squeeze",  "StopGradient", "StridedSlice",
      "Tile",           "Transpose",   "Unpack",   "ZerosLike"};
  const auto is_op = [&](std::string_view other) { return op == other; };
  return std::any_of(std::begin(kSums), std::end(kSums), is_op) ||
         (pairs && std::any_of(std::begin(kMoves), std::end(kMoves), is_op));
}

Outputs on_parts(OpCall& call) {
  const std::vector<int> whole = call.inputs;
  std::array<Outputs, 2> made;
  for (size_t part = 0; part < 2; ++part) {
    for (size_t i = 0; i < whole.size(); ++i) {
      call.inputs[i] = is_complex(call, whole[i]) ? parts_of(call, whole[i])[part] : whole[i];
    }
    made[part] = call.row.emit(call);
  }
  Outputs result;
  for (size_t i = 0; i < made[0].size(); ++i) result.push_back(call.importer.make_pair(made[0][i], made[1][i]));
  return result;
}

Outputs complex_op(OpCall& call) {
  Emitter& e = call.e;
  const int imaginary = call.in(1);
  // The parts may be broadcast, and each must have the size of both.
  const bool same = e.dims(call.in(0)) == e.dims(imaginary);
  if (same) return joined(call, call.in(0), imaginary);
  const int zero = e.mul(e.add(call.in(0), imaginary), 0.0);
  return joined(call, e.add(call.in(0), zero), e.add(imaginary, zero));
}

Outputs complex_part_of(OpCall& call) {
  Emitter& e = call.e;
  if (!call.importer.is_pair(call.in())) {
    if (call.e.dtype(call.in()) == DType::kComplex64 && *call.row.target != '\0') {
      return {call.builder().node(call.row.target, {call.in()}, call.name(), DType::kFloat32)};
    }
  }
  const auto [real, imaginary] = parts_of(call, call.in());
  const std::string_view op = call.node.op;
  if (op == "Real") return {real};
  if (op == "Imag") return {imaginary};
  if (op == "Angle") return {e.binary("ATAN2", imaginary, real)};
  if (op == "Conj") return joined(call, real, e.unary("NEG", imaginary));
  return {e.unary("SQRT", e.add(e.mul(real, real), e.mul(imaginary, imaginary)))};
}

Outputs complex_arithmetic(OpCall& call) {
  Emitter& e = call.e;
  const std::string_view op = call.node.op;
  const auto [a, b] = parts_of(call, call.in(0));
  if (op == "Exp") {
    const int length = e.unary("EXP", a);
    return joined(call, e.mul(length, e.unary("COS", b)), e.mul(length, e.unary("SIN", b)));
  }
  if (op == "Square") return joined(call, e.sub(e.mul(a, a), e.mul(b, b)), e.mul(e.mul(a, b), 2.0));
  const auto [c, d] = parts_of(call, call.in(1));
  if (op == "RealDiv" || op == "Div") {
    const int size = e.add(e.mul(c, c), e.mul(d, d));
    return joined(call, e.div(e.add(e.mul(a, c), e.mul(b, d)), size), e.div(e.sub(e.mul(b, c), e.mul(a, d)), size));
  }
  call.refuse_if(call.attr_bool("adj_x", false) || call.attr_bool("adj_y", false),
                 "multiplies with a conjugate matrix, which is not converted; conjugate and transpose it before");
  const auto product = [&](int left, int right) {
    call.inputs[0] = left;
    call.inputs[1] = right;
    return call.row.emit(call)[0];
  };
  const int real = e.sub(product(a, c), product(b, d));
  return joined(call, real, e.add(product(a, d), product(b, c)));
}

Outputs complex_cast(OpCall& call) {
  Emitter& e = call.e;
  if (is_complex(call, call.in())) {
    const DType to = call.attr_type("DstT", DType::kComplex64);
    const int real = parts_of(call, call.in())[0];
    return to == DType::kComplex64 ? call.inputs : Outputs{e.cast(real, to)};
  }
  const int real = e.cast(call.in(), DType::kFloat32);
  return joined(call, real, call.builder().node("ZEROS_LIKE", {real}, e.name("ZerosLike")));
}

Outputs fourier(OpCall& call) {
  Parts x = parts_of(call, call.in());
  const int rank = call.e.rank(x[0]);
  const int64_t axes = axes_of(call.node.op);
  require(rank >= axes, kBad, "the input has rank {}, expected at least {}", rank, axes);
  for (int64_t i = 1; i <= axes; ++i) {
    x = transformed(call, x, rank - static_cast<int>(i), call.node.op.find("IFFT") != std::string_view::npos);
  }
  return joined(call, x[0], x[1]);
}

/// Half a spectrum to a real signal: what is missing is the mirror image of what is there.
Outputs inverse_real_fourier(OpCall& call) {
  Emitter& e = call.e;
  Parts x = parts_of(call, call.in());
  const std::vector<int64_t> lengths = call.ints(1, "a length");
  const int rank = e.rank(x[0]);
  const int64_t axes = axes_of(call.node.op);
  require(static_cast<int64_t>(lengths.size()) == axes && rank >= axes, kBad, "{} lengths for rank {}", lengths.size(),
          rank);
  const int64_t n = lengths.back();
  const int64_t half = n / 2 + 1;
  require(n >= 1 && half * n <= (1 << 22), ErrorCode::kUnsupported, "a length is {}, expected 1 to 2896", n);
  const Dims dims = e.dims(x[0]);
  for (int64_t i = 2; i <= axes; ++i) {
    const int axis = rank - static_cast<int>(i);
    call.refuse_if(dims[static_cast<size_t>(axis)] != lengths[static_cast<size_t>(axes - i)],
                   "has another length than its input, which is not converted; pad or cut the input");
    x = transformed(call, x, axis, true);
  }
  call.refuse_if(dims.back() < half, "transforms a spectrum of unknown size or with too few elements");
  if (dims.back() > half) {
    for (int& part : x) part = e.slice(part, rank - 1, 0, half);
  }
  std::vector<float> cosines;
  std::vector<float> sines;
  for (int64_t k = 0; k < half; ++k) {
    const bool once = k == 0 || 2 * k == n;
    for (int64_t i = 0; i < n; ++i) {
      const double angle = kTurn * static_cast<double>(k * i % n) / static_cast<double>(n);
      const double weight = (once ? 1.0 : 2.0) / static_cast<double>(n);
      cosines.push_back(static_cast<float>(weight * std::cos(angle)));
      sines.push_back(static_cast<float>(weight * std::sin(angle)));
    }
  }
  for (int& part : x) {
    if (rank == 1) part = e.expand_dims(part, 0);
  }
  const int y = e.sub(e.matmul(x[0], e.floats(cosines, {half, n})), e.matmul(x[1], e.floats(sines, {half, n})));
  return {rank == 1 ? e.squeeze(y, 0) : y};
}

}  // namespace leadline::saved_model
