// SPDX-License-Identifier: Apache-2.0
// What a Model says about itself: tensors, nodes, subgraphs, signatures, ops that cannot run. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "leadline/types.h"

namespace leadline {

/// Description of a tensor of the model.
struct TensorInfo {
  int index = 0;
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;                           ///< current shape (of an interpreter) or the file's
  std::vector<int32_t> shape_signature;  ///< -1 where the size may change; equals shape otherwise
  std::vector<float> scales;             ///< empty: not quantized
  std::vector<int64_t> zero_points;
  int quantized_dimension = 0;
  bool constant = false;
  bool variable = false;
  bool sparse = false;
  int64_t bytes = 0;
};

struct NodeInfo {
  int index = 0;
  std::string op;
  int version = 1;
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::string attributes;  ///< "stride_w=2 stride_h=2 ..."
  /// For convolutions and products of matrices: products for the shapes in the file, and which inputs are multiplied.
  int64_t macs = 0;  ///< 0: not such an op, or shapes that do not fit together
  int activations = -1;
  int weights = -1;
};

struct SubgraphInfo {
  std::string name;
  std::vector<int> inputs;
  std::vector<int> outputs;
  std::vector<TensorInfo> tensors;
  std::vector<NodeInfo> nodes;
};

struct SignatureInfo {
  std::string key;
  int subgraph = 0;
  std::vector<std::pair<std::string, int>> inputs;  ///< name and tensor index
  std::vector<std::pair<std::string, int>> outputs;
};

/// An op of a model that Leadline cannot run.
struct MissingOp {
  enum class Kind {
    kBuiltin,  ///< an op of the format without a kernel
    kCustom,   ///< a custom op that is not registered: see custom_op.h
    kFlex,     ///< a TensorFlow op ("Select TF op") inside a custom op whose name begins with Flex
  };
  std::string name;
  Kind kind = Kind::kBuiltin;
  int nodes = 0;  ///< how many nodes use it
  std::string reason;
};

/// How the values of a sparse constant are spread over its shape: one entry of `dimensions` per level, outermost first.
struct SparsityInfo {
  struct Dimension {
    bool compressed = false;
    int32_t dense_size = 0;         ///< of a dense dimension
    std::vector<int32_t> segments;  ///< of a compressed one: where each row of `indices` starts
    std::vector<int32_t> indices;
  };
  std::vector<int32_t> traversal_order;
  std::vector<int32_t> block_map;
  std::vector<Dimension> dimensions;
};

}  // namespace leadline
