// SPDX-License-Identifier: Apache-2.0
// Shapes and small contents of a subgraph's values, found without a session: for builders and passes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ops/op.h"

namespace leadline::ops {

/// Contents up to this size are computed while a graph is built: enough for shape arithmetic.
inline constexpr int64_t kSmallConstant = 4096;

/// Runs a node whose infer() has set `outputs`. Nothing when its results or its workspace are larger than `limit`, or
/// when the run fails: then the error is left to the run of the node.
std::optional<std::vector<std::vector<std::byte>>> evaluate(const ir::Subgraph& subgraph, int node, const OpDef& op,
                                                            std::span<const Operand> inputs, std::span<Operand> outputs,
                                                            Host& host, int64_t limit);

/// What is known about one value.
struct Fact {
  Shape shape;
  bool has_shape = false;
  bool known = false;  // the contents, in `data`, are those of every run
  std::vector<std::byte> data;
};

/// Walks the nodes of one subgraph for given input shapes. The graph may grow between calls; it must outlive this.
class Inference {
 public:
  Inference(const ir::Graph& graph, int subgraph, int depth = 0);
  ~Inference();

  void set_shape(int value, const Shape& shape);
  /// Infers node `index`, whose inputs have shapes, and computes small results. False when the shapes depend on data.
  /// Throws what the op's validation finds.
  bool infer(int index);
  /// Infers node `index` and runs it. Nothing when its inputs are not all known or a result is larger than `limit`.
  std::optional<std::vector<std::vector<std::byte>>> compute(int index, int64_t limit);
  /// The shape and, if known, the contents of `value`.
  const Fact& fact(int value);
  /// Knows from now on what `other`, of the same subgraph, knows.
  void take_facts(const Inference& other) { facts_ = other.facts_; }
  /// The same of one value.
  void take_fact(Inference& other, int value) {
    fact(value);
    facts_[static_cast<size_t>(value)] = other.fact(value);
  }
  /// Forgets values from `count` on: the nodes that made them are gone.
  void truncate(size_t count);

 private:
  class CallHost;
  const ir::Subgraph& subgraph() const { return graph_.subgraphs[static_cast<size_t>(index_)]; }
  Operand operand(int value, bool with_data);
  struct Operands {
    std::vector<Operand> inputs;
    std::vector<Operand> outputs;
    bool all_known = true;
  };
  /// Nothing when an input has no shape yet, or output shapes depend on data.
  std::optional<Operands> infer_operands(int index, const OpDef& op, bool calls);

  const ir::Graph& graph_;
  int index_;
  std::vector<Fact> facts_;
  std::unique_ptr<CallHost> host_;
};

}  // namespace leadline::ops
