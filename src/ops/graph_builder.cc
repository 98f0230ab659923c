// SPDX-License-Identifier: Apache-2.0
#include "ops/graph_builder.h"

#include "base/error.h"
#include "ir/verifier.h"
#include "ops/verify.h"

namespace leadline::ops {
namespace {

/// Nodes that call subgraphs or touch variables need a session; they cannot be built here.
class NoHost final : public Host {
 public:
  Callee& callee(int, int) override {
    fail(ErrorCode::kUnsupported, "this op calls subgraphs: it cannot be built here");
  }
  const ir::Subgraph& subgraph(int) const override {
    fail(ErrorCode::kUnsupported, "this op calls subgraphs: it cannot be built here");
  }
  Resources& resources() override { fail(ErrorCode::kUnsupported, "this op uses variables: it cannot be built here"); }
  void checkpoint() override {}
};

const OpDef& find_op(const std::string& name) {
  const OpDef* row = registry().find(name);
  require(row != nullptr, ErrorCode::kInvalidArgument, "there is no op called '{}'", name);
  return *row;
}

}  // namespace

GraphBuilder::GraphBuilder() : graph_(std::make_shared<ir::Graph>()) {
  graph_->bytes = ModelBytes::copy({});
  graph_->subgraphs.emplace_back();
  subgraph().name = "main";
}

int GraphBuilder::add_value(const std::string& name, DType dtype, const Shape& shape, Quantization quantization) {
  ir::Value value;
  value.name = name;
  value.dtype = dtype;
  value.shape = shape;
  value.has_rank = true;
  value.quantization = std::move(quantization);
  subgraph().values.push_back(std::move(value));
  return static_cast<int>(subgraph().values.size()) - 1;
}

int GraphBuilder::input(const std::string& name, DType dtype, const Shape& shape, Quantization quantization) {
  const int index = add_value(name, dtype, shape, std::move(quantization));
  subgraph().inputs.push_back(index);
  return index;
}

int GraphBuilder::constant(const std::string& name, DType dtype, const Shape& shape, std::span<const std::byte> bytes,
                           Quantization quantization) {
  const int index = add_value(name, dtype, shape, std::move(quantization));
  graph_->storage.push_back(std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end()));
  ir::Value& value = subgraph().values.back();
  value.constant = true;
  value.data = *graph_->storage.back();
  return index;
}

int GraphBuilder::node(const std::string& op, const std::vector<int>& inputs, const std::string& name) {
  return node(op, inputs, name, new_attributes(find_op(op)), inputs.empty() ? DType::kFloat32 : value(inputs[0]).dtype);
}

int GraphBuilder::node(const std::string& op, const std::vector<int>& inputs, const std::string& name,
                       std::shared_ptr<const ir::Attributes> attributes, DType dtype, Quantization quantization) {
  const OpDef& row = find_op(op);
  const int output = add_value(name, dtype, {}, std::move(quantization));
  ir::Node node;
  node.code = row.code;
  node.op = row.name;
  node.inputs = inputs;
  node.outputs = {output};
  node.attributes = std::move(attributes);
  subgraph().nodes.push_back(std::move(node));
  infer_last_node();
  return output;
}

void GraphBuilder::infer_last_node() {
  const auto index = static_cast<int>(subgraph().nodes.size()) - 1;
  const ir::Node& node = subgraph().nodes.back();
  std::vector<Operand> inputs(node.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (node.inputs[i] == ir::kAbsent) continue;
    const ir::Value& source = value(node.inputs[i]);
    inputs[i] = {&source, source.shape, source.data.data(), static_cast<int64_t>(source.data.size()), source.constant};
  }
  std::vector<Operand> outputs(1);
  outputs[0].value = &value(node.outputs[0]);
  NoHost host;
  InferContext context(subgraph(), index, inputs, outputs, host);
  find_op(node.op).infer(context);
  subgraph().values[static_cast<size_t>(node.outputs[0])].shape = outputs[0].shape;
}

std::shared_ptr<const ir::Graph> GraphBuilder::finish(const std::vector<int>& outputs) {
  subgraph().outputs = outputs;
  ir::verify(*graph_);
  verify_nodes(*graph_);
  ir::Signature signature;  // of values that are there: nothing left to verify
  signature.key = "serving_default";
  for (int v : subgraph().inputs) signature.inputs.emplace_back(value(v).name, v);
  for (int v : outputs) signature.outputs.emplace_back(value(v).name, v);
  graph_->signatures.push_back(std::move(signature));
  return std::move(graph_);
}

}  // namespace leadline::ops
