// SPDX-License-Identifier: Apache-2.0
// The verified form of a model. Users of a Graph may rely on it: every index is in range, every
// shape fits in memory arithmetic, every constant has exactly its tensor's bytes, nodes are in an order
// in which every input is computed before it is used, and subgraph calls have no cycles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/quantization.h"
#include "io/mapped_file.h"
#include "ir/attributes.h"
#include "ir/constant_source.h"
#include "ir/op_id.h"
#include "leadline/types.h"

namespace leadline::ir {

/// Index of an absent optional operand.
inline constexpr int kAbsent = -1;

/// One dimension of a sparse constant, in traversal order.
struct SparseDimension {
  bool dense = true;
  int32_t dense_size = 0;         // dense only
  std::vector<int32_t> segments;  // CSR only
  std::vector<int32_t> indices;   // CSR only
};

/// How the values of a sparse constant are laid out (TACO-style, as the format has it).
struct Sparsity {
  std::vector<int32_t> traversal_order;
  std::vector<int32_t> block_map;
  std::vector<SparseDimension> dimensions;
};

/// A tensor of a subgraph.
struct Value {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;                                    // as written in the file; inference may find another
  std::optional<std::vector<int32_t>> signature;  // the shape with -1 for what may change
  bool has_rank = false;
  bool variable = false;  // state kept between runs, zero at first
  Quantization quantization;
  std::shared_ptr<const Sparsity> sparsity;
  // Constant bytes, inside Graph::bytes or Graph::storage. `constant` separates an empty constant from none.
  bool constant = false;
  std::span<const std::byte> data;
  // Instead of `data`, in graphs that are being built: the bytes are made when the file is written.
  std::shared_ptr<const ConstantSource> source;
};

/// One operation.
struct Node {
  OwnedOpId op;
  int version = 1;
  std::vector<int> inputs;  // value indices; kAbsent for an optional operand that is not there
  std::vector<int> outputs;
  std::vector<int> intermediates;
  std::shared_ptr<const Attributes> attributes;  // never null
  std::span<const std::byte> custom_options;     // inside Graph::bytes or Graph::storage
};

struct Subgraph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<int> inputs;
  std::vector<int> outputs;

  Value& value(int index) { return values[static_cast<size_t>(index)]; }
  const Value& value(int index) const { return values[static_cast<size_t>(index)]; }
};

/// A named way to call a subgraph. `inputs` and `outputs` pair a name with a value index.
struct Signature {
  std::string key;
  int subgraph = 0;
  std::vector<std::pair<std::string, int>> inputs;
  std::vector<std::pair<std::string, int>> outputs;
};

struct Metadata {
  std::string name;
  std::span<const std::byte> data;
};

/// A whole model. Subgraph 0 is the main one.
struct Graph {
  uint32_t version = 3;
  std::string description;
  std::vector<Subgraph> subgraphs;
  std::vector<Signature> signatures;
  std::vector<Metadata> metadata;
  std::shared_ptr<ModelBytes> bytes;                                   // what `data` spans point into
  std::vector<std::shared_ptr<const std::vector<std::byte>>> storage;  // constants made after reading
};

/// The attributes of a node as struct A, which must be the struct of its op's row. Throws Error(kInternal) otherwise.
template <typename A>
const A& attributes_as(const Node& node) {
  require(node.attributes->type() == A::tag(), ErrorCode::kInternal, "{} has other attributes than expected",
          node.op.name());
  return static_cast<const A&>(*node.attributes);
}

/// "CONV_2D #17 'block3/conv'": how messages call a node (its first output's name).
std::string describe_node(const Subgraph& subgraph, int node_index);

/// Attributes as "stride_w=2 stride_h=2 ..."; empty when there are none.
std::string attributes_text(const Attributes& attributes);

/// Bytes of a constant, wherever they are.
inline int64_t constant_bytes(const Value& value) {
  return value.source ? value.source->bytes() : static_cast<int64_t>(value.data.size());
}

/// Heap bytes the graph's own structures take (not the constants it points to, nor what sources hold).
int64_t graph_bytes(const Graph& graph);

/// The part of graph_bytes that one value takes, itself included.
int64_t value_bytes(const Value& value);

/// A text form for readers and tests: one line per node.
std::string to_text(const Graph& graph);

}  // namespace leadline::ir
