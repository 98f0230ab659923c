// SPDX-License-Identifier: Apache-2.0
// A loaded, verified model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "leadline/budget.h"
#include "leadline/error.h"
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
    kCustom,   ///< a custom op nobody registered: see custom_op.h
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

/// An immutable model, shared by all its interpreters together with the weights they pack. Cheap to copy (a handle).
/// Thread-safe.
class Model {
 public:
  /// Maps the file (no copy) and verifies it. The file must not change while the model lives.
  /// `budget` is charged for the file and the graph; null means Budget::machine_default().
  /// Throws Error: kIo, kInvalidModel, kUnsupported; BudgetError.
  static Model load(const std::string& path, std::shared_ptr<Budget> budget = nullptr);

  /// The same from memory. `owner` keeps `bytes` alive; without an owner the bytes are copied.
  static Model from_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner = nullptr,
                          std::shared_ptr<Budget> budget = nullptr);

  const std::string& description() const;
  int subgraph_count() const;
  /// Throws Error(kInvalidArgument) when there is no such subgraph.
  SubgraphInfo subgraph(int index) const;
  /// The sparsity of a tensor; nothing for a dense one. Throws Error(kInvalidArgument) when there is no such tensor.
  std::optional<SparsityInfo> sparsity(int subgraph, int tensor) const;
  std::vector<SignatureInfo> signatures() const;
  /// Names and bytes of the metadata entries.
  std::vector<std::pair<std::string, int64_t>> metadata() const;
  /// Ops that cannot run now, in the order of their first use; registered custom ops can.
  std::vector<MissingOp> missing_ops() const;
  /// Bytes of the file.
  int64_t file_bytes() const;
  /// Bytes charged now for this model: its file, graph and packed weights.
  int64_t memory_bytes() const;
  /// One line per node, for people.
  std::string to_text() const;

  /// The model as a new .tflite file. Throws Error(kUnsupported) beyond 2 GiB.
  std::vector<std::byte> to_tflite() const;

  /// What this model is charged to.
  const std::shared_ptr<Budget>& budget() const;

  struct Data;
  const std::shared_ptr<Data>& data() const { return data_; }

 private:
  explicit Model(std::shared_ptr<Data> data) : data_(std::move(data)) {}
  std::shared_ptr<Data> data_;
};

}  // namespace leadline
