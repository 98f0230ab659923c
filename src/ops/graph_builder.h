// SPDX-License-Identifier: Apache-2.0
// Builds graphs in code: for importers, passes and tests.
//
//   GraphBuilder b;
//   const int x = b.input("x", DType::kFloat32, {1, 4});
//   const int y = b.node("RELU", {x}, "y");
//   auto graph = b.finish({y});
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ops/registry.h"

namespace leadline::ops {

/// One subgraph that grows node by node; every node is validated and its output shapes inferred as it is added.
class GraphBuilder {
 public:
  GraphBuilder();

  /// A graph input. -1 in `signature` marks dimensions that may change.
  int input(const std::string& name, DType dtype, const Shape& shape, Quantization quantization = {});
  /// A constant; the bytes are copied.
  int constant(const std::string& name, DType dtype, const Shape& shape, std::span<const std::byte> bytes,
               Quantization quantization = {});
  template <typename T>
  int constant(const std::string& name, DType dtype, const Shape& shape, const std::vector<T>& values,
               Quantization quantization = {}) {
    return constant(name, dtype, shape, std::as_bytes(std::span(values)), std::move(quantization));
  }

  /// Adds op `op` with one output called `name`, of the type of its first input unless `dtype` says otherwise.
  /// Throws what the op's validation finds.
  int node(const std::string& op, const std::vector<int>& inputs, const std::string& name);
  int node(const std::string& op, const std::vector<int>& inputs, const std::string& name,
           std::shared_ptr<const ir::Attributes> attributes, DType dtype, Quantization quantization = {});

  const ir::Value& value(int index) const { return subgraph().values[static_cast<size_t>(index)]; }

  /// The verified graph, with signature serving_default. The builder is empty afterwards.
  std::shared_ptr<const ir::Graph> finish(const std::vector<int>& outputs);

 private:
  ir::Subgraph& subgraph() { return graph_->subgraphs[0]; }
  const ir::Subgraph& subgraph() const { return graph_->subgraphs[0]; }
  int add_value(const std::string& name, DType dtype, const Shape& shape, Quantization quantization);
  void infer_last_node();

  std::shared_ptr<ir::Graph> graph_;
};

}  // namespace leadline::ops
