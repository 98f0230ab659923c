// SPDX-License-Identifier: Apache-2.0
// Writes .tflite models from code.
//
//   leadline::ModelBuilder builder;
//   const int x = builder.add_tensor(0, {.name = "x", .shape = {1, 4}});
//   const int y = builder.add_tensor(0, {.name = "y", .shape = {1, 4}});
//   builder.add_node(0, {.op = "TANH", .inputs = {x}, .outputs = {y}});
//   builder.set_inputs(0, {x});
//   builder.set_outputs(0, {y});
//   std::vector<std::byte> file = builder.to_tflite();
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "leadline/model.h"

namespace leadline {

/// Value of an attribute. Numbers are converted to the type of the field when they fit it.
using AttributeValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>>;

/// A node before it is part of a model.
struct NodeSpec {
  std::string op;           ///< "CONV_2D", or the name of a custom op
  std::vector<int> inputs;  ///< tensor numbers; -1: absent
  std::vector<int> outputs;
  std::vector<int> intermediates = {};
  /// By their names in the format; others keep their defaults. Of a custom op: its options, written as a FlexBuffers
  /// map (with numbers of 32 bits), unless custom_options has them.
  std::map<std::string, AttributeValue> attributes = {};
  std::vector<std::byte> custom_options = {};
  int version = 0;  ///< 0: the oldest that LiteRT knows
  /// It is a custom op, whatever it is called. Not needed with custom_options, for registered ops, and for names that
  /// cannot be meant to be one of the format: those are written in upper case, and other names not close to them.
  bool custom = false;
};

/// Blocks of values that share a scale, in place of TensorInfo::scales. Both are tensors of the same subgraph.
struct BlockwiseQuantization {
  int scales = -1;
  int zero_points = -1;  ///< -1: none
  int block_size = 0;
};

/// The tensors that a node writes.
struct NodeResults {
  int count = 1;
  std::string name;           ///< with a number behind it where there are several; empty: the op's
  std::vector<DType> dtypes;  ///< one for each; empty: what the op always gives, else the type of the first input
  std::vector<Shape> shapes;  ///< one for each; empty: inferred
};

/// A model being built, with an empty subgraph 0. Nothing is inferred: tensors have the type and shape they are
/// given. All methods throw Error(kInvalidArgument) for a subgraph that does not exist. Not thread-safe.
class ModelBuilder {
 public:
  ModelBuilder();
  ~ModelBuilder();
  ModelBuilder(ModelBuilder&&) noexcept;
  ModelBuilder& operator=(ModelBuilder&&) noexcept;

  /// The number of a new, empty subgraph.
  int add_subgraph(const std::string& name);
  /// The number of a new tensor. Of `info`, index, constant, sparse and bytes are ignored; an empty shape_signature
  /// means that no dimension may change.
  int add_tensor(int subgraph, const TensorInfo& info);
  /// The same with contents, which are copied.
  int add_constant(int subgraph, const TensorInfo& info, std::span<const std::byte> data,
                   const std::optional<SparsityInfo>& sparsity = std::nullopt);
  void set_blockwise(int subgraph, int tensor, const BlockwiseQuantization& quantization);
  /// Throws Error(kInvalidArgument) for an attribute that the op does not have or a value that does not fit it, and for
  /// a name that seems to be a misspelt op of the format, unless the node says that it is custom.
  void add_node(int subgraph, const NodeSpec& node);
  /// The same for a node whose `outputs` are empty: makes the tensors it writes, and returns them. When it throws,
  /// there are none, and no node. Shapes that are not given follow from those of the inputs, and from constants; it is
  /// an Error(kInvalidArgument) when they depend on other data.
  std::vector<int> add_node(int subgraph, const NodeSpec& node, const NodeResults& results);
  void set_inputs(int subgraph, std::vector<int> tensors);
  void set_outputs(int subgraph, std::vector<int> tensors);
  void add_signature(SignatureInfo signature);

  /// The model as a .tflite file. Throws Error(kInvalidModel) when it is not legal.
  std::vector<std::byte> to_tflite() const;

 private:
  struct Data;
  void infer_shapes(int subgraph);
  std::unique_ptr<Data> data_;
};

}  // namespace leadline
