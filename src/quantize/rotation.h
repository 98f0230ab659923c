// SPDX-License-Identifier: Apache-2.0
// Hadamard rotation: rows of a dense layer's weights are multiplied with an orthogonal matrix, and what the layer reads
// with the same, so that the results stay, and a few large weights become many middling ones.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "ir/graph.h"
#include "leadline/names.h"
#include "quantize/constants.h"

namespace leadline::quantize {

/// Multiplies `size` values, a power of two, with the orthonormal Hadamard matrix.
void rotate(float* values, int64_t size);

/// The size of the pieces that rows of `weights` are rotated in: the largest power of two that divides them, and that
/// nodes can apply to what the layer reads. 1: they cannot be rotated.
int64_t rotation_size(WeightRotation rotation, const Shape& weights, const ir::Value& activations);

/// The same constant with rows rotated in pieces of `size`. Extra memory: the tensor, where it is not in memory.
FloatConstant rotated(FloatConstant constant, int64_t size);

/// Adds the nodes that rotate values to a subgraph, once for each value.
class Rotator {
 public:
  Rotator(ir::Graph& graph, ir::Subgraph& subgraph) : graph_(graph), subgraph_(subgraph) {}

  /// The rotated form of value `v`. The nodes that make it, if there are none yet, are added to `nodes`.
  int rotated(int v, WeightRotation rotation, int64_t size, std::vector<ir::Node>& nodes);

 private:
  int add_activation(int like, const char* suffix, const Shape& shape);
  int add_constant(std::string name, DType type, const Shape& shape, std::vector<std::byte> bytes);
  int shape_constant(int like, const char* suffix, const std::vector<int32_t>& sizes);
  int by_custom_op(int v, int64_t size, std::vector<ir::Node>& nodes);
  int by_builtin_ops(int v, int64_t size, std::vector<ir::Node>& nodes);
  int matrix(int64_t size);

  ir::Graph& graph_;
  ir::Subgraph& subgraph_;
  std::map<std::tuple<int, WeightRotation, int64_t>, int> made_;
  std::map<int64_t, int> matrices_;
};

}  // namespace leadline::quantize
