// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "core/rethrow_if_fatal.h"
#include "ir/sparsity.h"
#include "plan/segment_layout.h"

namespace leadline::plan {
namespace {

/// Results up to this size are computed while planning. Enough for shape arithmetic, small enough not to matter.
constexpr int64_t kFoldLimit = 4096;
/// A kernel that needs more workspace than this is not run while planning.
constexpr int64_t kFoldWorkspace = 16384;

/// No tensor and no workspace is larger, so that sums over a whole plan stay inside int64.
constexpr int64_t kMaxBytes = int64_t{1} << 40;

}  // namespace

Planner::Planner(const ir::Graph& graph, int subgraph, const PlanOptions& options, const ir::ChangedNodes* changed,
                 ops::Host& host, std::shared_ptr<Budget> budget)
    : options_(options),
      host_(host),
      budget_(std::move(budget)),
      outline_(graph, subgraph, changed, options.preserve_all, host),
      subgraph_(outline_.subgraph()) {}

void Planner::start(std::span<const Shape> inputs, std::span<const int64_t> bytes) {
  folded_.clear();
  folded_bytes_ = 0;
  plan_ = {};
  extended_ = false;
  plan_values();
  plan_inputs(inputs, bytes);
  plan_segment(nullptr);
  first_.values = plan_.values;
  first_.next_node = plan_.next_node;
  first_.complete = plan_.complete;
}

/// Constants and variables, which no node makes.
void Planner::plan_values() {
  plan_.values.resize(subgraph_.values.size());
  for (size_t v = 0; v < plan_.values.size(); ++v) {
    const ir::Value& source = subgraph_.values[v];
    PlannedValue& value = plan_.values[v];
    value.root = static_cast<int>(v);
    if (!source.constant && !source.variable) continue;
    value.shape = source.shape;
    value.shape_known = true;
    if (source.constant) {
      require(source.source == nullptr, ErrorCode::kInternal, "constant '{}' has no bytes yet: write the graph first",
              source.name);
      value.storage = Storage::kConstant;
      value.bytes = static_cast<int64_t>(source.data.size());
    } else {
      value.storage = Storage::kVariable;
      value.bytes = storage_bytes(source.dtype, source.shape).value_or(0);
      require(value.bytes <= kMaxBytes, ErrorCode::kUnsupported, "variable '{}' takes {}, more than {}", source.name,
              format_bytes(value.bytes), format_bytes(kMaxBytes));
    }
  }
}

void Planner::plan_inputs(std::span<const Shape> inputs, std::span<const int64_t> bytes) {
  for (size_t i = 0; i < subgraph_.inputs.size(); ++i) {
    const ir::Value& source = subgraph_.value(subgraph_.inputs[i]);
    if (source.constant || source.variable) continue;
    PlannedValue& value = plan_.value(subgraph_.inputs[i]);
    value.shape = inputs[i];
    value.shape_known = true;
    const auto size = storage_bytes(source.dtype, inputs[i]);
    require(size.has_value() && *size <= kMaxBytes, ErrorCode::kInvalidArgument,
            "input '{}' of shape {} does not fit into memory", source.name, inputs[i].to_string());
    value.bytes = dtype_bits(source.dtype) > 0 ? *size : bytes[i];
    value.storage = options_.self_contained ? Storage::kArena : Storage::kInput;
  }
}

void Planner::extend(const ComputedValues& computed) {
  extended_ = true;
  plan_segment(&computed);
}

/// `computed` is null for the first segment.
void Planner::plan_segment(const ComputedValues* computed) {
  Segment segment;
  if (!plan_.segments.empty()) {
    const Segment& last = plan_.segments.back();
    segment.first_step = last.first_step + static_cast<int>(last.steps.size());
  }
  const int first_node = plan_.next_node;
  const int end = outline_.node_count();
  while (plan_.next_node < end && plan_node(plan_.next_node, computed, segment)) ++plan_.next_node;
  plan_.complete = plan_.next_node == end;
  if (plan_.next_node == first_node && !plan_.complete && computed != nullptr) {
    const std::string node = ir::describe_node(subgraph_, plan_.next_node);
    require(missing_.empty(), ErrorCode::kRuntime, "{}: {}", node, missing_);
    fail(ErrorCode::kInternal, "{}: its output shapes are unknown though all its inputs are computed", node);
  }
  SegmentLayout layout = lay_out(outline_, options_, plan_, segment);
  layout.append_to(plan_, std::move(segment));
}

bool Planner::rewind() {
  if (!std::exchange(extended_, false)) return false;
  plan_.values = first_.values;
  plan_.next_node = first_.next_node;
  plan_.complete = first_.complete;
  plan_.segments.resize(1);
  plan_.output_copies.clear();
  std::erase_if(folded_, [&](const auto& entry) {
    if (plan_.value(entry.first).storage == Storage::kFolded) return false;
    folded_bytes_ -= entry.second->bytes();
    return true;
  });
  return true;
}

void Planner::note_input_bytes(int value, int64_t bytes) {
  plan_.value(value).bytes = bytes;
  first_.value(value).bytes = bytes;
}

/// Views of fixed values have their storage and root.
const std::byte* Planner::fixed_data(int value) const {
  const PlannedValue& planned = plan_.value(value);
  if (planned.storage == Storage::kConstant) return subgraph_.value(planned.root).data.data();
  return planned.storage == Storage::kFolded ? folded_.at(planned.root)->data() : nullptr;
}

std::vector<ops::Operand> Planner::input_operands(const ir::Node& node, const ComputedValues* computed) const {
  std::vector<ops::Operand> operands(node.inputs.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    if (node.inputs[i] == ir::kAbsent) continue;
    const int v = outline_.source(node.inputs[i]);
    const PlannedValue& value = plan_.value(v);
    ops::Operand& operand = operands[i];
    operand.value = &subgraph_.value(v);
    operand.shape = value.shape;
    const std::byte* data = nullptr;
    if (value.is_fixed()) {
      data = fixed_data(v);
      operand.known = true;
    } else if (computed != nullptr && computed->is_computed(v)) {
      data = computed->data(v);
      operand.known = data != nullptr || value.bytes == 0;
    }
    if (operand.known) {
      operand.data = data;
      operand.bytes = value.bytes;
    }
  }
  return operands;
}

std::vector<ops::Operand> Planner::output_operands(const ir::Node& node) const {
  std::vector<ops::Operand> operands(node.outputs.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    operands[i].value = &subgraph_.value(node.outputs[i]);
  }
  return operands;
}

bool Planner::reads_fixed_only(const ir::Node& node) const {
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](int v) { return v == ir::kAbsent || plan_.value(outline_.source(v)).is_fixed(); });
}

void Planner::require_plannable(int node, const std::string& what, int64_t bytes) const {
  require(bytes >= 0 && bytes <= kMaxBytes, ErrorCode::kUnsupported, "{}: {} takes {} bytes, more than {}",
          ir::describe_node(subgraph_, node), what, bytes, format_bytes(kMaxBytes));
}

/// In place of what was kept for the value.
void Planner::keep_folded(int value, std::shared_ptr<const Buffer> memory) {
  std::shared_ptr<const Buffer>& kept = folded_[value];
  folded_bytes_ += memory->bytes() - (kept == nullptr ? 0 : kept->bytes());
  kept = std::move(memory);
}

bool Planner::make_dense(int value, int node) {
  const ir::Value& source = subgraph_.value(value);
  PlannedValue& planned = plan_.value(value);
  if (source.sparsity == nullptr || planned.storage != Storage::kConstant) return false;
  planned.bytes = storage_bytes(source.dtype, source.shape).value_or(-1);
  require_plannable(node, fmt::format("'{}' as a dense tensor", source.name), planned.bytes);
  const auto dense = std::make_shared<Buffer>(budget_, planned.bytes, MemoryCategory::kGraph);
  keep_folded(value, dense);
  planned.storage = Storage::kFolded;
  ir::make_dense(source, dense->data());
  return true;
}

bool Planner::plan_node(int index, const ComputedValues* computed, Segment& segment) {
  if (!outline_.has_step(index)) return true;
  const ir::Node& node = outline_.node(index);
  const NodePlace place(subgraph_, index);
  check_cancelled();
  const ops::OpDef* op = outline_.row(index);
  require(op != nullptr && op->infer != nullptr, ErrorCode::kUnsupported, "{}: Leadline has no kernel for this op",
          ir::describe_node(subgraph_, index));
  for (int input : node.inputs) {
    if (input == ir::kAbsent) continue;
    const int v = outline_.source(input);
    if (!plan_.value(v).shape_known) return false;
    if (make_dense(v, index) && !plan_.segments.empty()) segment.values.push_back(v);
  }
  const std::vector<ops::Operand> inputs = input_operands(node, computed);
  std::vector<ops::Operand> outputs = output_operands(node);
  ops::InferContext infer(subgraph_, index, inputs, outputs, host_, &node);
  op->infer(infer);
  missing_ = infer.missing();
  if (infer.deferred()) return false;
  note_outputs(index, outputs);
  if (!plan_.segments.empty()) {
    segment.values.insert(segment.values.end(), node.outputs.begin(), node.outputs.end());
  }

  ops::PrepareContext prepare(infer, options_.threads, options_.winograd);
  std::unique_ptr<ops::Kernel> kernel = op->prepare(prepare);
  require_plannable(index, "its workspace", prepare.scratch_bytes());
  require_plannable(index, "its packed weights", prepare.packed_bytes());
  require_plannable(index, "its kept memory", prepare.persistent_bytes());
  if (try_fold(index, inputs, outputs, *kernel, prepare)) return true;

  Step step;
  step.node = index;
  step.kernel = std::move(kernel);
  step.scratch_bytes = prepare.scratch_bytes();
  step.packed_bytes = align_up(prepare.packed_bytes());
  step.packed_layout = prepare.packed_layout();
  step.persistent_bytes = align_up(prepare.persistent_bytes());
  step.initializer = std::any_of(outputs.begin(), outputs.end(), [](const auto& o) { return o.value->variable; }) &&
                     reads_fixed_only(node);
  step.parts = prepare.parts();
  for (int i : prepare.replaced_inputs()) {
    step.replaced_inputs.push_back(outline_.source(node.inputs[static_cast<size_t>(i)]));
  }
  segment.steps.push_back(std::move(step));
  return true;
}

void Planner::note_outputs(int index, std::span<const ops::Operand> outputs) {
  const ir::Node& node = outline_.node(index);
  for (size_t i = 0; i < outputs.size(); ++i) {
    PlannedValue& value = plan_.value(node.outputs[i]);
    // Variables got their memory before the run.
    require(value.storage != Storage::kVariable || plan_.segments.empty() || outputs[i].bytes == value.bytes,
            ErrorCode::kUnsupported, "{}: variable '{}' has {} bytes and cannot change to {} during a run",
            ir::describe_node(subgraph_, index), outputs[i].value->name, value.bytes, outputs[i].bytes);
    value.shape = outputs[i].shape;
    value.bytes = outputs[i].bytes;
    value.shape_known = true;
    require_plannable(index, outputs[i].value->name, outputs[i].bytes);
  }
}

bool Planner::try_fold(int index, std::span<const ops::Operand> inputs, std::span<const ops::Operand> outputs,
                       ops::Kernel& kernel, const ops::PrepareContext& prepared) {
  const ir::Node& node = outline_.node(index);
  const ops::OpDef& op = *outline_.row(index);
  if (!op.pure || options_.preserve_all) return false;
  int64_t bytes = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outline_.is_output(node.outputs[i]) || outputs[i].value->variable) return false;
    bytes += outputs[i].bytes;
  }
  const bool all_fixed = reads_fixed_only(node);
  if (all_fixed && op.sharing == ops::Sharing::kView) {
    PlannedValue& value = plan_.value(node.outputs[0]);
    const PlannedValue& source = plan_.value(node.inputs[0]);
    value.storage = source.storage;
    value.root = source.root;
    return true;
  }
  if ((!all_fixed && !op.reads_shapes_only) || bytes > kFoldLimit) return false;
  if (prepared.scratch_bytes() + prepared.packed_bytes() > kFoldWorkspace) return false;

  alignas(kAlignment) std::array<std::byte, kFoldWorkspace + kAlignment> workspace{};
  std::vector<TensorView> in(inputs.size());
  std::vector<TensorView> out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].present()) continue;
    in[i] = {inputs[i].dtype(), inputs[i].shape, const_cast<std::byte*>(inputs[i].data), inputs[i].bytes,
             &inputs[i].quantization()};
  }
  std::vector<std::shared_ptr<const Buffer>> results;
  for (const ops::Operand& output : outputs) {
    auto memory = std::make_shared<const Buffer>(budget_, output.bytes, MemoryCategory::kGraph);
    out.push_back({output.dtype(), output.shape, memory->data(), output.bytes, &output.quantization()});
    results.push_back(std::move(memory));
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
  for (size_t i = 0; i < results.size(); ++i) {
    keep_folded(node.outputs[i], std::move(results[i]));
    plan_.value(node.outputs[i]).storage = Storage::kFolded;
  }
  return true;
}

void Planner::collect_folded(std::vector<std::shared_ptr<const void>>& memory) const {
  for (const auto& [value, held] : folded_) memory.push_back(held);
}

int64_t Planner::structure_bytes() const {
  // Kernel objects, views and observers' names: about this much for a node and a value.
  constexpr int64_t kPerNode = 640;
  constexpr int64_t kPerBinding = 16;  // runtime::BoundValue
  constexpr int64_t kPerValue = static_cast<int64_t>(2 * sizeof(PlannedValue) + sizeof(int)) + kPerBinding;
  return kPerNode * int64_t{outline_.node_count() - outline_.absorbed_count()} +
         kPerValue * static_cast<int64_t>(subgraph_.values.size());
}

}  // namespace leadline::plan
