// SPDX-License-Identifier: Apache-2.0
// Reads a SavedModel directory into flat functions: one per signature, calls written out, variables turned into
// constants, everything the outputs do not need left out. Ops keep TensorFlow's names and attributes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/saved_model/protos.h"
#include "ir/constant_source.h"
#include "leadline/budget.h"

namespace leadline::saved_model {

/// A tensor of a flat function.
struct ValueRef {
  enum class Kind : uint8_t { kNode, kInput, kConstant };
  Kind kind = Kind::kNode;
  int index = 0;   // of FlatFunction::nodes, FlatFunction::inputs or FlatModel::constants
  int output = 0;  // kNode
  friend bool operator==(const ValueRef&, const ValueRef&) = default;
};

/// An input or output. Functions of While, If and Case do not always have the shape.
struct FlatTensor {
  std::string name;
  TfType dtype = TfType::kInvalid;
  TensorShape shape{true, {}};
  std::string tensor = {};  // "StatefulPartitionedCall:0": of a signature, the tensor of the main graph
};

struct FlatNode {
  std::string_view op;
  std::string name;  // unique in its function
  std::vector<ValueRef> inputs;
  int outputs = 1;  // how many
  /// With the op's default for what the node leaves out, where the file defines the op. TensorFlow leaves attributes
  /// with default values out, and often the definitions of ops that are only in functions of control flow: code that
  /// needs an attribute must know its default.
  Attrs attrs;
  int table = -1;     // HashTableV2: the number of FlatModel::tables
  int variable = -1;  // VarHandleOp: the number of the saved value in FlatModel::constants
  /// What is known of outputs; only of ops that Leadline has no conversion for.
  std::vector<FlatTensor> output_tensors;
  /// While: condition, body; If: then, else; Case: the branches. Numbers of FlatModel::functions. The first input of
  /// If and Case chooses; all others are the inputs of each function. Those that were constants or variables are gone:
  /// the functions hold them. The attributes T, Tin and output_shapes match what is left.
  std::vector<int> functions;
};

struct FlatConstant {
  std::string name;
  TfType dtype = TfType::kInvalid;
  TensorShape shape;  // no unknown dimensions
  bool variable = false;
  std::shared_ptr<const ir::ConstantSource> source;
};

/// Nodes are in an order in which every input comes before its use. A variable given to an op that takes its handle
/// (ResourceGather, ResourceGatherNd, VariableShape) is the constant of its value. Variables that the model changes and
/// reads are not constants: their handles are nodes (VarHandleOp), and nodes that read and write them are in the order
/// in which TensorFlow runs them.
struct FlatFunction {
  std::string name;
  std::vector<FlatTensor> inputs;  // of a signature: sorted by name
  std::vector<FlatTensor> outputs;
  std::vector<ValueRef> output_values;
  std::vector<FlatNode> nodes;
};

/// Keys and values are constants with the same number of elements; -1 when the file does not have them.
struct FlatTable {
  std::string name;
  TfType key = TfType::kInvalid;
  TfType value = TfType::kInvalid;
  int keys = -1;
  int values = -1;
};

struct FlatModel {
  std::vector<FlatFunction> functions;
  std::vector<std::pair<std::string, int>> signatures;  // key, function
  std::vector<FlatConstant> constants;                  // of all functions; each variable once
  std::vector<FlatTable> tables;                        // those that are used
  std::shared_ptr<const MetaGraph> meta;                // what views point into, with `file`
  std::shared_ptr<WireFile> file;
};

struct ReadOptions {
  std::vector<std::string> tags = {"serve"};
  /// Empty: all signatures; of a Keras export, which has each twice, only serving_default.
  std::vector<std::string> signature_keys;
  /// Charged for the structures while the model lives, not for constants. Null: Budget::machine_default().
  std::shared_ptr<Budget> budget;
  /// Ops that Leadline has no conversion for become custom ops, when the shapes of their results are known.
  bool allow_custom_ops = false;
  /// Where assets/ is; the directory of the SavedModel.
  std::string directory = ".";
};

/// Throws Error: kIo (a file is missing), kInvalidModel (damaged), kInvalidArgument (no such tags or signature),
/// kUnsupported (TF1 control flow, variables that the function changes, ...), kBudget.
FlatModel read_saved_model(const std::string& directory, const ReadOptions& options = {});

class Bundle;

/// The same with the files open: saved_model.pb, and the variables or null.
FlatModel read_saved_model(std::shared_ptr<WireFile> file, std::shared_ptr<Bundle> variables,
                           const ReadOptions& options);

/// A text form for readers and tests: one line per node.
std::string to_text(const FlatModel& model);

}  // namespace leadline::saved_model
