// SPDX-License-Identifier: Apache-2.0
#include "plan/subgraph_plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "core/rethrow_if_fatal.h"
#include "ir/sparsity.h"
#include "plan/lifetimes.h"

namespace leadline::plan {
namespace {

/// Results up to this size are computed while planning. Enough for shape arithmetic, small enough not to matter.
constexpr int64_t kFoldLimit = 4096;
/// A kernel that wants more workspace than this is not run while planning.
constexpr int64_t kFoldWorkspace = 16384;

/// No tensor and no workspace is larger, so that sums over a whole plan stay inside int64.
constexpr int64_t kMaxBytes = int64_t{1} << 40;

}  // namespace

SubgraphPlan::SubgraphPlan(const ir::Graph& graph, int subgraph, PlanOptions options, ops::Host& host,
                           std::shared_ptr<Budget> budget)
    : graph_(graph),
      subgraph_index_(subgraph),
      subgraph_(graph.subgraphs[static_cast<size_t>(subgraph)]),
      options_(options),
      host_(host),
      budget_(std::move(budget)),
      outputs_(subgraph_.values.size()) {
  find_nodes();
  for (int v : subgraph_.outputs) outputs_[static_cast<size_t>(v)] = true;
  compute_last_uses();
  find_half_constants();
}

const ir::ChangedSubgraph* SubgraphPlan::changes() const {
  return options_.changed == nullptr ? nullptr : &options_.changed->subgraphs[static_cast<size_t>(subgraph_index_)];
}

const ir::ChangedNode* SubgraphPlan::changed(int index) const {
  return changes() == nullptr ? nullptr : changes()->find(index);
}

void SubgraphPlan::find_nodes() {
  static const ir::Node nothing = [] {
    ir::Node node;
    node.code = ir::kAbsorbedOp;
    node.attributes = std::make_shared<ir::NoAttributes>();
    return node;
  }();
  nodes_.resize(subgraph_.nodes.size());
  for (size_t n = 0; n < nodes_.size(); ++n) nodes_[n] = &subgraph_.nodes[n];
  if (changes() == nullptr) return;
  for (const ir::ChangedNode& changed : changes()->changed) nodes_[static_cast<size_t>(changed.number)] = &changed.node;
  for (int n : changes()->absorbed) nodes_[static_cast<size_t>(n)] = &nothing;
  absorbed_ = static_cast<int>(changes()->absorbed.size());
}

bool SubgraphPlan::merged_away(int value) const {
  if (options_.changed == nullptr) return false;
  const auto makes = [&](const ir::Node& maker) {
    return std::find(maker.outputs.begin(), maker.outputs.end(), value) != maker.outputs.end();
  };
  bool made = false;
  bool made_in_file = false;
  for (int n = 0; n < node_count(); ++n) {
    made = made || makes(node(n));
    made_in_file = made_in_file || makes(subgraph_.nodes[static_cast<size_t>(n)]);
  }
  return made_in_file && !made;
}

void SubgraphPlan::find_half_constants() {
  source_.resize(subgraph_.values.size());
  for (size_t v = 0; v < source_.size(); ++v) source_[v] = static_cast<int>(v);
  skipped_.assign(subgraph_.nodes.size(), false);
  if (options_.preserve_all) return;
  std::vector<bool> taken_as_half(subgraph_.values.size(), true);
  for (int n = 0; n < node_count(); ++n) {
    const ir::Node& node = this->node(n);
    const ops::OpDef* op = host_.find(node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool accepts = op != nullptr && i < 32 && (op->half_inputs >> i & 1U) != 0;
      if (node.inputs[i] != ir::kAbsent && !accepts) taken_as_half[static_cast<size_t>(node.inputs[i])] = false;
    }
  }
  std::vector<int> dense_of = source_;  // the constant that DENSIFY gives, by its output
  for (int n = 0; n < node_count(); ++n) {
    const ir::Node& node = this->node(n);
    const ops::OpDef* op = host_.find(node);
    if (op != nullptr && op->densifies && node.inputs.size() == 1 && node.inputs[0] != ir::kAbsent) {
      dense_of[static_cast<size_t>(node.outputs[0])] = node.inputs[0];
    }
    if (op == nullptr || !op->dequantizes_f16) continue;
    const int stored = dense_of[static_cast<size_t>(node.inputs[0])];
    const ir::Value& half = subgraph_.values[static_cast<size_t>(stored)];
    const auto wide = static_cast<size_t>(node.outputs[0]);
    if (!half.constant || half.dtype != DType::kFloat16) continue;
    if (!taken_as_half[wide] || is_output(node.outputs[0])) continue;
    if (subgraph_.values[wide].dtype != DType::kFloat32 || subgraph_.values[wide].variable) continue;
    source_[wide] = stored;
    skipped_[static_cast<size_t>(n)] = true;
  }
}

void SubgraphPlan::compute_last_uses() {
  last_use_.assign(subgraph_.values.size(), -1);
  for (int v : subgraph_.outputs) last_use_[static_cast<size_t>(v)] = node_count();
  for (int n = node_count() - 1; n >= 0; --n) {
    const ir::Node& node = this->node(n);
    const ops::OpDef* op = host_.find(node);
    const bool view = op != nullptr && op->sharing == ops::Sharing::kView;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == ir::kAbsent) continue;
      int& last = last_use_[static_cast<size_t>(node.inputs[i])];
      last = std::max(last, n);
      if (view && i == 0) last = std::max(last, last_use_[static_cast<size_t>(node.outputs[0])]);
    }
  }
}

const ops::OpDef& SubgraphPlan::definition(const ir::Node& node, int index) const {
  const ops::OpDef* op = host_.find(node);
  if (op == nullptr || op->infer == nullptr) {
    fail(ErrorCode::kUnsupported, "{}: Leadline has no kernel for this op", ir::describe_node(subgraph_, index));
  }
  return *op;
}

void SubgraphPlan::start(std::span<const Shape> inputs, std::span<const int64_t> bytes) {
  segments_.clear();
  output_copies_.clear();
  folded_.clear();
  values_.assign(subgraph_.values.size(), {});
  for (size_t v = 0; v < values_.size(); ++v) {
    const ir::Value& source = subgraph_.values[v];
    PlannedValue& value = values_[v];
    value.root = static_cast<int>(v);
    if (!source.constant && !source.variable) continue;
    value.shape = source.shape;
    value.shape_known = true;
    value.computed = true;
    if (source.constant) {
      require(source.source == nullptr, ErrorCode::kInternal, "constant '{}' has no bytes yet: write the graph first",
              source.name);
      value.storage = Storage::kConstant;
      value.bytes = static_cast<int64_t>(source.data.size());
      value.address = const_cast<std::byte*>(source.data.data());  // kernels never write to inputs that are constants
    } else {
      value.storage = Storage::kVariable;
      value.bytes = storage_bytes(source.dtype, source.shape).value_or(0);
      require(value.bytes <= kMaxBytes, ErrorCode::kUnsupported, "variable '{}' takes {}, more than {}", source.name,
              format_bytes(value.bytes), format_bytes(kMaxBytes));
    }
  }
  for (size_t i = 0; i < subgraph_.inputs.size(); ++i) {
    const auto v = static_cast<size_t>(subgraph_.inputs[i]);
    PlannedValue& value = values_[v];
    if (subgraph_.values[v].constant || subgraph_.values[v].variable) continue;
    value.shape = inputs[i];
    value.shape_known = true;
    const auto size = storage_bytes(subgraph_.values[v].dtype, inputs[i]);
    require(size.has_value() && *size <= kMaxBytes, ErrorCode::kInvalidArgument,
            "input '{}' of shape {} does not fit into memory", subgraph_.values[v].name, inputs[i].to_string());
    value.bytes = dtype_bits(subgraph_.values[v].dtype) > 0 ? *size : bytes[i];
    value.storage = options_.self_contained ? Storage::kArena : Storage::kInput;
  }
  next_node_ = 0;
  steps_ = 0;
  extend();
  first_values_ = values_;
  first_next_node_ = next_node_;
  first_steps_ = steps_;
  first_folded_ = folded_.size();
}

void SubgraphPlan::extend() {
  extended_ = !segments_.empty();
  Segment segment;
  segment.first_step = steps_;
  const int first_node = next_node_;
  while (!complete() && plan_node(next_node_, segment)) ++next_node_;
  if (next_node_ == first_node && !complete() && !segments_.empty()) {
    const std::string node = ir::describe_node(subgraph_, next_node_);
    require(missing_.empty(), ErrorCode::kRuntime, "{}: {}", node, missing_);
    fail(ErrorCode::kInternal, "{}: its output shapes are unknown though all its inputs are computed", node);
  }
  steps_ += static_cast<int>(segment.steps.size());
  segments_.push_back(std::move(segment));
  Lifetimes(*this).assign();
}

void SubgraphPlan::rewind() {
  if (!std::exchange(extended_, false)) {
    for (size_t v = 0; v < values_.size(); ++v) values_[v].computed = first_values_[v].computed;
    return;
  }
  // Addresses of the first segment's memory stay; everything later is unknown again.
  for (size_t v = 0; v < values_.size(); ++v) {
    std::byte* address = values_[v].address;
    const bool keeps = first_values_[v].shape_known;
    values_[v] = first_values_[v];
    if (keeps && address != nullptr && values_[v].address == nullptr) values_[v].address = address;
  }
  segments_.resize(1);
  output_copies_.clear();
  folded_.resize(first_folded_);
  next_node_ = first_next_node_;
  steps_ = first_steps_;
}

std::vector<ops::Operand> SubgraphPlan::input_operands(const ir::Node& node) const {
  std::vector<ops::Operand> operands(node.inputs.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (node.inputs[i] == ir::kAbsent) continue;
    const auto v = static_cast<size_t>(source(node.inputs[i]));
    const PlannedValue& value = values_[v];
    ops::Operand& operand = operands[i];
    operand.value = &subgraph_.values[v];
    operand.shape = value.shape;
    // Variables change during a run: they are no known data.
    const bool variable = subgraph_.values[v].variable && segments_.empty();
    operand.known = value.computed && !variable && (value.address != nullptr || value.bytes == 0);
    if (operand.known) {
      operand.data = value.address;
      operand.bytes = value.bytes;
    }
  }
  return operands;
}

std::vector<ops::Operand> SubgraphPlan::output_operands(const ir::Node& node) const {
  std::vector<ops::Operand> operands(node.outputs.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    operands[i].value = &subgraph_.values[static_cast<size_t>(node.outputs[i])];
  }
  return operands;
}

bool SubgraphPlan::is_static_data(int value) const {
  const PlannedValue& v = values_[static_cast<size_t>(value)];
  return v.storage == Storage::kConstant || v.storage == Storage::kFolded;
}

void SubgraphPlan::require_plannable(int node, const std::string& what, int64_t bytes) const {
  require(bytes >= 0 && bytes <= kMaxBytes, ErrorCode::kUnsupported, "{}: {} takes {} bytes, more than {}",
          ir::describe_node(subgraph_, node), what, bytes, format_bytes(kMaxBytes));
}

void SubgraphPlan::make_dense(int value, int node) {
  const ir::Value& source = subgraph_.values[static_cast<size_t>(value)];
  PlannedValue& planned = values_[static_cast<size_t>(value)];
  if (source.sparsity == nullptr || planned.storage != Storage::kConstant) return;
  planned.bytes = storage_bytes(source.dtype, source.shape).value_or(-1);
  require_plannable(node, fmt::format("'{}' as a dense tensor", source.name), planned.bytes);
  folded_.push_back({value, node, std::make_shared<const Buffer>(budget_, planned.bytes, MemoryCategory::kGraph)});
  planned.address = folded_.back().memory->data();
  planned.storage = Storage::kFolded;
  ir::make_dense(source, planned.address);
}

bool SubgraphPlan::plan_node(int index, Segment& segment) {
  const ir::Node& node = this->node(index);
  if (skipped_[static_cast<size_t>(index)] || node.code == ir::kAbsorbedOp) return true;
  const NodePlace place(subgraph_, index);
  check_cancelled();
  const ops::OpDef& op = definition(node, index);
  for (int input : node.inputs) {
    if (input == ir::kAbsent) continue;
    const int v = source(input);
    if (!values_[static_cast<size_t>(v)].shape_known) return false;
    make_dense(v, index);
  }
  const std::vector<ops::Operand> inputs = input_operands(node);
  std::vector<ops::Operand> outputs = output_operands(node);
  ops::InferContext infer(subgraph_, index, inputs, outputs, host_, &node);
  op.infer(infer);
  missing_ = infer.missing();
  if (infer.deferred()) return false;

  for (size_t i = 0; i < outputs.size(); ++i) {
    PlannedValue& value = values_[static_cast<size_t>(node.outputs[i])];
    // Variables got their memory before the run.
    require(value.storage != Storage::kVariable || segments_.empty() || outputs[i].bytes == value.bytes,
            ErrorCode::kUnsupported, "{}: variable '{}' has {} bytes and cannot change to {} during a run",
            ir::describe_node(subgraph_, index), outputs[i].value->name, value.bytes, outputs[i].bytes);
    value.shape = outputs[i].shape;
    value.bytes = outputs[i].bytes;
    value.shape_known = true;
    require_plannable(index, outputs[i].value->name, outputs[i].bytes);
  }
  ops::PrepareContext prepare(infer, options_.threads, options_.winograd);
  std::unique_ptr<ops::Kernel> kernel = op.prepare(prepare);
  require_plannable(index, "its workspace", prepare.scratch_bytes());
  require_plannable(index, "its packed weights", prepare.packed_bytes());
  require_plannable(index, "its kept memory", prepare.persistent_bytes());
  if (try_fold(index, op, inputs, outputs, *kernel, prepare)) return true;

  Step step;
  step.node = index;
  step.kernel = std::move(kernel);
  step.scratch_bytes = prepare.scratch_bytes();
  step.packed_bytes = align_up(prepare.packed_bytes());
  step.packed_layout = prepare.packed_layout();
  step.persistent_bytes = align_up(prepare.persistent_bytes());
  step.initializer = std::any_of(outputs.begin(), outputs.end(), [](const auto& o) { return o.value->variable; }) &&
                     std::all_of(node.inputs.begin(), node.inputs.end(),
                                 [&](int v) { return v == ir::kAbsent || is_static_data(source(v)); });
  step.parts = prepare.parts();
  for (int i : prepare.replaced_inputs()) step.replaced_inputs.push_back(source(node.inputs[static_cast<size_t>(i)]));
  segment.steps.push_back(std::move(step));
  return true;
}

bool SubgraphPlan::try_fold(int index, const ops::OpDef& op, std::span<const ops::Operand> inputs,
                            std::span<const ops::Operand> outputs, ops::Kernel& kernel,
                            const ops::PrepareContext& prepared) {
  const ir::Node& node = this->node(index);
  if (!op.pure || options_.preserve_all) return false;
  int64_t bytes = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (is_output(node.outputs[i]) || outputs[i].value->variable) return false;
    bytes += outputs[i].bytes;
  }
  const bool all_static = std::all_of(node.inputs.begin(), node.inputs.end(),
                                      [&](int v) { return v == ir::kAbsent || is_static_data(source(v)); });
  if (all_static && op.sharing == ops::Sharing::kView) {
    PlannedValue& value = values_[static_cast<size_t>(node.outputs[0])];
    const PlannedValue& source = values_[static_cast<size_t>(node.inputs[0])];
    value.storage = source.storage;
    value.address = source.address;
    value.root = source.root;
    value.computed = true;
    return true;
  }
  if ((!all_static && !op.reads_shapes_only) || bytes > kFoldLimit) return false;
  if (prepared.scratch_bytes() + prepared.packed_bytes() > kFoldWorkspace) return false;

  alignas(kAlignment) std::array<std::byte, kFoldWorkspace + kAlignment> workspace{};
  std::vector<TensorView> in(inputs.size());
  std::vector<TensorView> out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].present()) continue;
    in[i] = {inputs[i].dtype(), inputs[i].shape, const_cast<std::byte*>(inputs[i].data), inputs[i].bytes,
             &inputs[i].quantization()};
  }
  std::vector<Folded> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto memory = std::make_shared<Buffer>(budget_, outputs[i].bytes, MemoryCategory::kGraph);
    out.push_back({outputs[i].dtype(), outputs[i].shape, memory->data(), outputs[i].bytes, &outputs[i].quantization()});
    results.push_back({node.outputs[i], index, std::move(memory)});
  }
  ThreadPool single(1);
  std::byte* packed = workspace.data() + align_up(prepared.scratch_bytes());
  ops::RunContext context(subgraph_, index, in, out, workspace.data(), packed, single, host_, &node);
  try {
    kernel.pack(packed);
    kernel.run(context);
  } catch (const Error& error) {
    rethrow_if_fatal(error);
    return false;  // the same error will come when, and only if, the node runs
  }
  for (Folded& result : results) {
    PlannedValue& value = values_[static_cast<size_t>(result.value)];
    value.storage = Storage::kFolded;
    value.address = result.memory->data();
    value.computed = true;
    folded_.push_back(std::move(result));
  }
  return true;
}

int64_t SubgraphPlan::folded_bytes() const {
  int64_t bytes = 0;
  for (const Folded& f : folded_) bytes += f.memory->bytes();
  return bytes;
}

void SubgraphPlan::collect_folded(std::vector<std::shared_ptr<const void>>& memory) const {
  for (const Folded& f : folded_) memory.push_back(f.memory);
}

int64_t SubgraphPlan::structure_bytes() const {
  // Kernel objects, views and observers' names: about this much for a node and a value.
  constexpr int64_t kPerNode = 640;
  constexpr int64_t kPerValue = static_cast<int64_t>(2 * sizeof(PlannedValue) + sizeof(int));
  return kPerNode * int64_t{node_count() - absorbed_} + kPerValue * static_cast<int64_t>(values_.size());
}

}  // namespace leadline::plan
