// SPDX-License-Identifier: Apache-2.0
#include "ops/inference.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/buffer.h"
#include "core/error.h"
#include "core/rethrow_if_fatal.h"
#include "ir/verifier.h"
#include "ops/registry.h"

namespace leadline::ops {
namespace {

/// A called subgraph whose shapes can be found, but which cannot run.
class ShapeCallee final : public Callee {
 public:
  ShapeCallee(const ir::Graph& graph, int subgraph, int depth) : graph_(graph), index_(subgraph), depth_(depth) {
    require(subgraph >= 0 && subgraph < static_cast<int>(graph.subgraphs.size()), ErrorCode::kInvalidModel,
            "subgraph {} is called, but there are {}", subgraph, graph.subgraphs.size());
    require(depth < static_cast<int>(ir::kMaxCallDepth), ErrorCode::kInvalidModel,
            "subgraph calls are nested more than {} deep", ir::kMaxCallDepth);
  }

  bool plan(std::span<const Shape> inputs) override {
    inference_ = std::make_unique<Inference>(graph_, index_, depth_ + 1);
    for (size_t i = 0; i < inputs.size(); ++i) inference_->set_shape(subgraph().inputs[i], inputs[i]);
    for (size_t n = 0; n < subgraph().nodes.size(); ++n) {
      if (!inference_->infer(static_cast<int>(n))) return false;
    }
    return true;
  }
  int output_count() const override { return static_cast<int>(subgraph().outputs.size()); }
  const Shape& output_shape(int i) const override {
    return inference_->fact(subgraph().outputs[static_cast<size_t>(i)]).shape;
  }
  int64_t workspace_bytes() const override { return 0; }
  std::span<const TensorView> run(std::span<const TensorView>, std::byte*) override {
    fail(ErrorCode::kInternal, "a subgraph cannot run while its graph is built");
  }
  std::span<const TensorView> results() const override { return {}; }
  void forget_results() override {}
  int input_count() const override { return static_cast<int>(subgraph().inputs.size()); }
  DType input_type(int i) const override { return type_of(subgraph().inputs[static_cast<size_t>(i)]); }
  DType output_type(int i) const override { return type_of(subgraph().outputs[static_cast<size_t>(i)]); }

 private:
  const ir::Subgraph& subgraph() const { return graph_.subgraphs[static_cast<size_t>(index_)]; }
  DType type_of(int value) const { return subgraph().value(value).dtype; }

  const ir::Graph& graph_;
  int index_;
  int depth_;
  std::unique_ptr<Inference> inference_;
};

}  // namespace

class Inference::CallHost final : public Host {
 public:
  CallHost(const ir::Graph& graph, int depth) : graph_(graph), depth_(depth) {}
  Callee& callee(int node, int subgraph) override {
    auto& entry = callees_[{node, subgraph}];
    if (!entry) entry = std::make_unique<ShapeCallee>(graph_, subgraph, depth_);
    return *entry;
  }
  const ir::Subgraph& subgraph(int index) const override {
    require(index >= 0 && index < static_cast<int>(graph_.subgraphs.size()), ErrorCode::kInvalidModel,
            "subgraph {} is used, but there are {}", index, graph_.subgraphs.size());
    return graph_.subgraphs[static_cast<size_t>(index)];
  }
  Resources& resources() override { fail(ErrorCode::kUnsupported, "this op uses variables: it cannot be built here"); }
  void checkpoint() override {}
  /// Nodes may be replaced by others of the same number.
  void forget() { callees_.clear(); }

 private:
  const ir::Graph& graph_;
  int depth_;
  std::map<std::pair<int, int>, std::unique_ptr<Callee>> callees_;
};

std::optional<std::vector<std::vector<std::byte>>> evaluate(const ir::Subgraph& subgraph, int node, const OpDef& op,
                                                            std::span<const Operand> inputs, std::span<Operand> outputs,
                                                            Host& host, int64_t limit) {
  int64_t bytes = 0;
  for (const Operand& output : outputs) {
    if (output.bytes > limit) return {};
    bytes += output.bytes;
  }
  if (bytes > limit || op.prepare == nullptr) return {};
  try {
    PrepareContext prepare(OpContext(subgraph, node, inputs, outputs, host), 1);
    const std::unique_ptr<Kernel> kernel = op.prepare(prepare);
    constexpr int64_t kWorkspacePerResult = 8;  // packed weights of a small matrix are padded a few times over
    constexpr int64_t kLeastWorkspace = 65536;
    const int64_t allowed = std::max(kLeastWorkspace, std::min(limit, INT64_MAX / 16) * kWorkspacePerResult);
    if (prepare.scratch_bytes() > allowed || prepare.packed_bytes() > allowed) return {};
    const auto budget = Budget::with_limit(INT64_MAX);
    const Buffer scratch(budget, prepare.scratch_bytes(), MemoryCategory::kScratch);
    const Buffer packed(budget, prepare.packed_bytes(), MemoryCategory::kPackedWeights);
    std::vector<TensorView> in(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].present()) continue;
      in[i] = {inputs[i].dtype(), inputs[i].shape, const_cast<std::byte*>(inputs[i].data), inputs[i].bytes,
               &inputs[i].quantization()};
    }
    std::vector<std::vector<std::byte>> results;
    std::vector<TensorView> out;
    for (const Operand& output : outputs) {
      results.emplace_back(static_cast<size_t>(output.bytes));
      out.push_back({output.dtype(), output.shape, results.back().data(), output.bytes, &output.quantization()});
    }
    ThreadPool single(1);
    RunContext context(subgraph, node, in, out, scratch.data(), packed.data(), single, host);
    kernel->pack(packed.data());
    kernel->run(context);
    return results;
  } catch (const Error& error) {
    rethrow_if_fatal(error);
    return {};
  }
}

Inference::Inference(const ir::Graph& graph, int subgraph, int depth)
    : graph_(graph), index_(subgraph), host_(std::make_unique<CallHost>(graph, depth)) {}

Inference::~Inference() = default;

const Fact& Inference::fact(int value) {
  const auto v = static_cast<size_t>(value);
  if (facts_.size() < subgraph().values.size()) facts_.resize(subgraph().values.size());
  const ir::Value& source = subgraph().values[v];
  if (!facts_[v].has_shape && (source.constant || source.variable)) {
    facts_[v].shape = source.shape;
    facts_[v].has_shape = true;
  }
  return facts_[v];
}

void Inference::set_shape(int value, const Shape& shape) {
  fact(value);
  facts_[static_cast<size_t>(value)] = {shape, true, false, {}};
}

void Inference::truncate(size_t count) {
  if (facts_.size() > count) facts_.resize(count);
  host_->forget();
}

Operand Inference::operand(int value, bool with_data) {
  const ir::Value& source = subgraph().value(value);
  const Fact& known = fact(value);
  Operand operand;
  operand.value = &source;
  operand.shape = known.shape;
  if (!with_data) return operand;
  if (source.constant && !source.source && !source.sparsity) {
    operand.known = true;
    operand.data = source.data.data();
    operand.bytes = static_cast<int64_t>(source.data.size());
  } else if (known.known) {
    operand.known = true;
    operand.data = known.data.data();
    operand.bytes = static_cast<int64_t>(known.data.size());
  }
  return operand;
}

/// Bytes of an output that no op has set.
static constexpr int64_t kNotShaped = -1;

std::optional<Inference::Operands> Inference::infer_operands(int index, const OpDef& op, bool calls) {
  const ir::Node& node = subgraph().nodes[static_cast<size_t>(index)];
  Operands operands;
  operands.inputs.resize(node.inputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == ir::kAbsent) continue;
    if (!fact(node.inputs[i]).has_shape) return {};
    operands.inputs[i] = operand(node.inputs[i], !calls);
    operands.all_known = operands.all_known && operands.inputs[i].known;
  }
  operands.outputs.resize(node.outputs.size());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    operands.outputs[i].value = &subgraph().value(node.outputs[i]);
    operands.outputs[i].bytes = kNotShaped;
  }
  InferContext context(subgraph(), index, operands.inputs, operands.outputs, *host_);
  op.infer(context);
  // Strings whose shape was set wait only for their bytes.
  const auto shaped = [](const Operand& o) { return o.dtype() == DType::kString && o.bytes != kNotShaped; };
  const bool only_bytes_missing = std::all_of(operands.outputs.begin(), operands.outputs.end(), shaped);
  if (context.deferred() && !only_bytes_missing) return {};
  for (size_t i = 0; i < node.outputs.size(); ++i) set_shape(node.outputs[i], operands.outputs[i].shape);
  return operands;
}

std::optional<std::vector<std::vector<std::byte>>> Inference::compute(int index, int64_t limit) {
  const ir::Node& node = subgraph().nodes[static_cast<size_t>(index)];
  const OpDef* op = row_of(node);
  if (op == nullptr || op->infer == nullptr || !op->pure || !ir::called_subgraphs(node).empty()) return {};
  auto operands = infer_operands(index, *op, false);
  if (!operands || !operands->all_known) return {};
  return evaluate(subgraph(), index, *op, operands->inputs, operands->outputs, *host_, limit);
}

bool Inference::infer(int index) {
  const ir::Node& node = subgraph().nodes[static_cast<size_t>(index)];
  const OpDef* op = row_of(node);
  if (op == nullptr || op->infer == nullptr) return false;
  const bool calls = !ir::called_subgraphs(node).empty();
  auto operands = infer_operands(index, *op, calls);
  if (!operands) return false;
  const bool variable = std::any_of(operands->outputs.begin(), operands->outputs.end(),
                                    [](const Operand& output) { return output.value->variable; });
  if (calls || variable || !op->pure || !(operands->all_known || op->reads_shapes_only)) return true;
  auto results = evaluate(subgraph(), index, *op, operands->inputs, operands->outputs, *host_, kSmallConstant);
  if (!results) return true;
  for (size_t i = 0; i < results->size(); ++i) {
    Fact& result = facts_[static_cast<size_t>(node.outputs[i])];
    result.known = true;
    result.data = std::move((*results)[i]);
  }
  return true;
}

}  // namespace leadline::ops
