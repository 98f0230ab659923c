// SPDX-License-Identifier: Apache-2.0
#include "quantize/rotation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "core/cancel.h"
#include "io/flexbuffer_map_builder.h"
#include "ops/registry.h"
#include "ops/reshape.h"
#include "quantize/float_reading.h"

namespace leadline::quantize {
namespace {

/// The largest power of two that divides a number.
int64_t two_power_in(int64_t number) { return number & -number; }

class RotatedSource final : public ir::PlannedSource {
 public:
  RotatedSource(FloatConstant constant, int64_t size) : constant_(std::move(constant)), size_(size) {}
  int64_t bytes() const override { return constant_.elements() * static_cast<int64_t>(sizeof(float)); }
  int64_t extra_bytes() const override {
    return reading_bytes(constant_) + size_ * static_cast<int64_t>(sizeof(float));
  }
  void read(std::span<std::byte> out) const override {
    std::vector<float> piece(static_cast<size_t>(size_));
    const size_t bytes = piece.size() * sizeof(float);
    with_floats(constant_, [&](const std::byte* floats) {
      PacedCheck check;
      for (size_t at = 0; at + bytes <= out.size(); at += bytes) {
        check.count(8 * size_);
        std::memcpy(piece.data(), floats + at, bytes);
        rotate(piece.data(), size_);
        std::memcpy(out.data() + at, piece.data(), bytes);
      }
    });
  }

 private:
  FloatConstant constant_;
  int64_t size_;
};

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void rotate(float* values, int64_t size) {
  for (int64_t half = 1; half < size; half *= 2) {
    for (int64_t begin = 0; begin < size; begin += 2 * half) {
      for (int64_t i = begin; i < begin + half; ++i) {
        const float a = values[i];
        const float b = values[i + half];
        values[i] = a + b;
        values[i + half] = a - b;
      }
    }
  }
  const auto factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(size)));
  for (int64_t i = 0; i < size; ++i) values[i] *= factor;
}

int64_t rotation_size(WeightRotation rotation, const Shape& weights, const ir::Value& activations) {
  if (weights.rank() != 2 || weights.elements() == 0 || activations.dtype != DType::kFloat32) return 1;
  const Shape& read = activations.shape;
  const int64_t size = two_power_in(weights[1]);
  if (rotation == WeightRotation::kHadamard) {  // takes pieces of the innermost axis alone
    const bool fits = (read.rank() == 2 || read.rank() == 3) && read[read.rank() - 1] > 0;
    return fits ? std::min(size, two_power_in(read[read.rank() - 1])) : 1;
  }
  // Reshaping leaves the first size open, and no other.
  const auto& open = activations.signature;
  const bool fits =
      read.rank() > 0 && (!open || std::none_of(open->begin() + 1, open->end(), [](int32_t n) { return n < 0; }));
  return fits ? size : 1;
}

FloatConstant rotated(FloatConstant constant, int64_t size) {
  FloatConstant result;
  result.shape = constant.shape;
  result.source = std::make_shared<RotatedSource>(std::move(constant), size);
  return result;
}

int Rotator::rotated(int v, WeightRotation rotation, int64_t size, std::vector<ir::Node>& nodes) {
  const std::tuple key(v, rotation, size);
  if (const auto found = made_.find(key); found != made_.end()) return found->second;
  const int result =
      rotation == WeightRotation::kHadamard ? by_custom_op(v, size, nodes) : by_builtin_ops(v, size, nodes);
  made_[key] = result;
  return result;
}

int Rotator::by_custom_op(int v, int64_t size, std::vector<ir::Node>& nodes) {
  const int result = add_activation(v, "_rotated", subgraph_.value(v).shape);
  subgraph_.value(result).signature = subgraph_.value(v).signature;
  ir::Node node = ops::make_node(ir::OpId::custom("aeq.hadamard_rotation"), {v}, {result});
  const auto options =
      std::make_shared<std::vector<std::byte>>(build_flex_map({{"hadamard_size", static_cast<int32_t>(size)}}));
  graph_.storage.push_back(options);
  node.custom_options = *options;
  nodes.push_back(std::move(node));
  return result;
}

int Rotator::by_builtin_ops(int v, int64_t size, std::vector<ir::Node>& nodes) {
  const Shape shape = subgraph_.value(v).shape;
  const Shape pieces{shape.elements() / size, size};
  const int cut = add_activation(v, "_pieces", pieces);
  const bool open = subgraph_.value(v).signature.has_value();
  if (open) subgraph_.value(cut).signature = {-1, static_cast<int32_t>(size)};
  nodes.push_back(
      ops::make_node(op::kReshape, {v, shape_constant(v, "_pieces_shape", {-1, static_cast<int32_t>(size)})}, {cut}));
  const int turned = add_activation(v, "_pieces_rotated", pieces);
  if (open) subgraph_.value(turned).signature = subgraph_.value(cut).signature;
  nodes.push_back(ops::make_node(op::kFullyConnected, {cut, matrix(size)}, {turned}));
  std::vector<int32_t> sizes(shape.begin(), shape.end());
  sizes[0] = -1;
  const int result = add_activation(v, "_rotated", shape);
  subgraph_.value(result).signature = subgraph_.value(v).signature;
  nodes.push_back(ops::make_node(op::kReshape, {turned, shape_constant(v, "_rotated_shape", sizes)}, {result}));
  return result;
}

/// Rows of the matrix are what becomes of unit vectors.
int Rotator::matrix(int64_t size) {
  if (const auto found = matrices_.find(size); found != matrices_.end()) return found->second;
  std::vector<float> values(static_cast<size_t>(size * size), 0.0F);
  for (int64_t i = 0; i < size; ++i) {
    values[static_cast<size_t>(i * size + i)] = 1.0F;
    rotate(values.data() + i * size, size);
  }
  const int result =
      add_constant("hadamard_" + std::to_string(size), DType::kFloat32, Shape{size, size}, bytes_of(values));
  matrices_[size] = result;
  return result;
}

int Rotator::shape_constant(int like, const char* suffix, const std::vector<int32_t>& sizes) {
  return add_constant(subgraph_.value(like).name + suffix, DType::kInt32, Shape{static_cast<int64_t>(sizes.size())},
                      bytes_of(sizes));
}

int Rotator::add_activation(int like, const char* suffix, const Shape& shape) {
  ir::Value made;
  made.name = subgraph_.value(like).name + suffix;
  made.shape = shape;
  made.has_rank = true;
  subgraph_.values.push_back(std::move(made));
  return static_cast<int>(subgraph_.values.size()) - 1;
}

int Rotator::add_constant(std::string name, DType type, const Shape& shape, std::vector<std::byte> bytes) {
  ir::Value made;
  made.name = std::move(name);
  made.dtype = type;
  made.shape = shape;
  made.has_rank = true;
  made.constant = true;
  made.source = ir::owned_source(std::move(bytes));
  subgraph_.values.push_back(std::move(made));
  return static_cast<int>(subgraph_.values.size()) - 1;
}

}  // namespace leadline::quantize
