// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/cancel.h"
#include "core/error.h"
#include "core/running_op.h"

namespace leadline::runtime {
namespace {

std::string_view first_output_name(const ir::Subgraph& subgraph, const ir::Node& node) {
  if (node.outputs.empty()) return {};
  return subgraph.values[static_cast<size_t>(node.outputs[0])].name;
}

}  // namespace

Runner::Runner(Session& session, int subgraph, bool callee)
    : session_(session),
      callee_(callee),
      plan_(*session.graph, subgraph,
            {.threads = session.pool.size(),
             .preserve_all = session.preserve_all && !callee,
             .self_contained = callee,
             .winograd = session.winograd,
             .views = session.share_parts,
             .changed = session.changed.get()},
            *this, session.budget) {}

Runner::~Runner() { release(); }

void Runner::start(std::span<const Shape> inputs, std::span<const int64_t> bytes) {
  release();
  callees_.clear();
  started_ = false;
  ops::Resources& resources = *session_.resources;
  const bool running = resources.running();
  if (callee_) {
    resources.set_running(false);  // no node of this subgraph has run
  } else {
    resources.begin_plan(false);
  }
  planned_shapes_.assign(inputs.begin(), inputs.end());
  planned_bytes_.assign(bytes.begin(), bytes.end());
  if (!callee_ && session_.owns_resources) session_.resources->restart_generators();
  plan_.start(planned_shapes_, planned_bytes_);
  resources.set_running(callee_ && running);
  sync_folded();
  started_ = true;
}

void Runner::sync_folded() {
  const int64_t folded = plan_.folded_bytes();
  if (folded != folded_entered_) session_.ledger.enter(folded - folded_entered_, MemoryCategory::kGraph);
  folded_entered_ = folded;
}

std::shared_ptr<Buffer> Runner::take(int64_t bytes, MemoryCategory category) {
  auto memory = std::make_shared<Buffer>(session_.budget, bytes, category);
  session_.ledger.enter(align_up(bytes), category);  // by the plan's size; a refusal enters nothing
  return memory;
}

void Runner::give_back(std::shared_ptr<Buffer>& memory, MemoryCategory category) {
  if (memory == nullptr) return;
  session_.ledger.enter(-memory->bytes(), category);
  memory.reset();
}

/// Weights that were folded may depend on the input shapes, so nobody else may use their packing.
PackedKey Runner::packed_key(const plan::Step& step) const {
  PackedKey key{plan_.subgraph_index(), step.node, step.packed_bytes, step.packed_layout};
  const ir::Node& node = plan_.node(step.node);
  const bool folded = std::any_of(node.inputs.begin(), node.inputs.end(), [&](int v) {
    return v != ir::kAbsent && plan_.values()[static_cast<size_t>(v)].storage == Storage::kFolded;
  });
  if (folded) key.layout += fmt::format("@{}", fmt::ptr(this));
  return key;
}

MemoryNeeds Runner::needs() const {
  MemoryNeeds needs;
  for (const plan::Segment& segment : plan_.segments()) {
    for (const plan::Step& step : segment.steps) {
      const PackedKey key = packed_key(step);
      const auto persistent = persistent_.find(step.node);
      if (persistent == persistent_.end() || persistent->second->bytes() != step.persistent_bytes)
        needs.variables += step.persistent_bytes;
      if (step.packed_bytes == 0 || packed_.contains(key)) continue;
      (session_.packed_weights->holds(key) ? needs.shared_weights : needs.packed_weights) += step.packed_bytes;
    }
  }
  for (size_t v = 0; v < plan_.values().size(); ++v) {
    if (!needs_own_memory(static_cast<int>(v))) continue;
    const plan::PlannedValue& value = plan_.values()[v];
    (value.storage == Storage::kVariable ? needs.variables : needs.inputs_outputs) += align_up(value.bytes);
  }
  if (!allocated_) {
    needs.structures = plan_.structure_bytes();
    if (!callee_) {
      needs.arena = align_up(plan_.segments()[0].arena_bytes);
      if (session_.owns_resources) needs.variables += session_.resources->pending_bytes();
    }
  }
  for (const auto& [key, runner] : callees_) {
    if (!runner->started_) continue;
    const MemoryNeeds inner = runner->needs();
    needs.packed_weights += inner.packed_weights;
    needs.shared_weights += inner.shared_weights;
    needs.variables += inner.variables;
    needs.structures += inner.structures;
  }
  return needs;
}

void Runner::allocate() {
  if (allocated_) return;
  session_.budget->charge(plan_.structure_bytes(), MemoryCategory::kGraph);
  structures_charged_ = plan_.structure_bytes();
  session_.ledger.enter(structures_charged_, MemoryCategory::kGraph);
  allocated_ = true;
  try {
    for (size_t v = 0; v < plan_.values().size(); ++v) {
      if (plan_.values()[v].storage == Storage::kVariable) give_memory(static_cast<int>(v));
    }
    initialized_ = false;
    if (!callee_) {
      for (int v : plan_.subgraph().inputs) give_memory(v);
      take_outputs();
      session_.resources->allocate();
      take_arena(0);
    }
    acquire_packed(0);
    take_persistent(0);
    if (!callee_) bind(0, bound_[0].arena->data());
    for (auto& [key, runner] : callees_) {
      if (runner->started_) runner->allocate();
    }
  } catch (...) {
    release();
    throw;
  }
}

/// Memory for outputs whose shape has become known.
void Runner::take_outputs() {
  if (callee_) return;
  for (int v : plan_.subgraph().outputs) {
    const plan::PlannedValue& value = plan_.values()[static_cast<size_t>(v)];
    if (value.storage != Storage::kOutput || !value.shape_known) continue;
    if (const CallerMemory* theirs = caller_memory(v)) require_fit(v, *theirs);
    give_memory(v);
  }
}

void Runner::take_arena(size_t segment) {
  if (bound_.size() <= segment) bound_.resize(segment + 1);
  give_back(bound_[segment].arena, MemoryCategory::kArena);  // of the last run, where all tensors are preserved
  bound_[segment].arena = take(plan_.segments()[segment].arena_bytes, MemoryCategory::kArena);
}

void Runner::acquire_packed(size_t segment) {
  if (bound_.size() <= segment) bound_.resize(segment + 1);
  std::vector<plan::Step>& steps = plan_.segments()[segment].steps;
  bound_[segment].steps.resize(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    plan::Step& step = steps[i];
    if (step.packed_bytes == 0) continue;
    const PackedKey key = packed_key(step);
    auto held = packed_.find(key);
    if (held == packed_.end()) {
      const plan::NodePlace place(plan_.subgraph(), step.node);
      check_cancelled();
      auto memory = session_.packed_weights->acquire(key, [&](std::byte* target) {
        step.kernel->pack(target);
        for (int v : step.replaced_inputs) {
          const auto data = plan_.subgraph().values[static_cast<size_t>(v)].data;
          session_.graph->bytes->drop_pages(data.data(), static_cast<int64_t>(data.size()));
        }
      });
      held = packed_.emplace(key, std::move(memory)).first;  // may throw: counted when it is there
      session_.ledger.enter(step.packed_bytes, MemoryCategory::kPackedWeights);
      session_.budget->count_shared(held->second->bytes(), MemoryCategory::kPackedWeights);
    }
    bound_[segment].steps[i].packed = held->second->data();
  }
}

/// A node that is planned during the run keeps its memory from the last one, unless its size has changed.
void Runner::take_persistent(size_t segment) {
  for (const plan::Step& step : plan_.segments()[segment].steps) {
    if (step.persistent_bytes == 0) continue;
    auto& memory = persistent_[step.node];
    if (memory != nullptr && memory->bytes() == step.persistent_bytes) continue;
    give_back(memory, MemoryCategory::kVariables);
    try {
      memory = take(step.persistent_bytes, MemoryCategory::kVariables);
    } catch (...) {
      persistent_.erase(step.node);
      throw;
    }
  }
}

void Runner::release() {
  for (BoundSegment& segment : bound_) give_back(segment.arena, MemoryCategory::kArena);
  bound_.clear();
  for (auto& [key, memory] : packed_) {
    session_.ledger.enter(-key.bytes, MemoryCategory::kPackedWeights);
    session_.budget->count_shared(-memory->bytes(), MemoryCategory::kPackedWeights);
  }
  packed_.clear();
  for (auto& [v, memory] : io_) give_back(memory, MemoryCategory::kInputsOutputs);
  io_.clear();
  for (auto& [v, memory] : variables_) give_back(memory, MemoryCategory::kVariables);
  variables_.clear();
  for (auto& [node, memory] : persistent_) give_back(memory, MemoryCategory::kVariables);
  persistent_.clear();
  results_.clear();
  bound_base_.reset();
  if (allocated_) {
    session_.budget->release(structures_charged_, MemoryCategory::kGraph);
    session_.ledger.enter(-structures_charged_, MemoryCategory::kGraph);
    structures_charged_ = 0;
    allocated_ = false;
  }
  for (auto& [key, runner] : callees_) runner->release();
}

void Runner::take_over(Runner& other) {
  move_state(other);
  other.release();
  allocate();
  mark_initialized(other);
}

/// Memory that allocate() would take finds what is there already.
void Runner::move_state(Runner& other) {
  io_ = std::exchange(other.io_, {});
  variables_ = std::exchange(other.variables_, {});
  persistent_ = std::exchange(other.persistent_, {});
  packed_ = std::exchange(other.packed_, {});
  user_nodes_ = std::exchange(other.user_nodes_, {});
  session_.ledger.enter(-std::exchange(other.folded_entered_, 0), MemoryCategory::kGraph);
  for (auto& [key, runner] : callees_) {
    const auto before = other.callees_.find(key);
    if (before != other.callees_.end()) runner->move_state(*before->second);
  }
}

void Runner::mark_initialized(const Runner& other) {
  initialized_ = other.initialized_;
  for (auto& [key, runner] : callees_) {
    const auto before = other.callees_.find(key);
    if (before != other.callees_.end()) runner->mark_initialized(*before->second);
  }
}

TensorView Runner::view(int value) const {
  const plan::PlannedValue& planned = plan_.values()[static_cast<size_t>(value)];
  const ir::Value& source = plan_.subgraph().values[static_cast<size_t>(value)];
  return {source.dtype, planned.shape, planned.address, planned.bytes, &source.quantization};
}

/// Views, parts, and results computed in place, follow the memory they live in.
void Runner::follow_roots() {
  for (plan::PlannedValue& value : plan_.values()) {
    std::byte* base = plan_.values()[static_cast<size_t>(value.root)].address;
    value.address = base == nullptr ? nullptr : base + value.shift;
  }
}

/// Gives the segment's values their addresses and its steps their views.
void Runner::bind(size_t segment, std::byte* arena) {
  for (plan::PlannedValue& value : plan_.values()) {
    if (value.storage == Storage::kArena && value.segment == static_cast<int>(segment)) {
      value.address = arena + value.offset;
    }
  }
  follow_roots();
  const std::vector<plan::Step>& steps = plan_.segments()[segment].steps;
  bound_[segment].steps.resize(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const ir::Node& node = plan_.node(steps[i].node);
    BoundStep& bound = bound_[segment].steps[i];
    bound.inputs.assign(node.inputs.size(), {});
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (node.inputs[k] != ir::kAbsent) bound.inputs[k] = view(plan_.source(node.inputs[k]));
    }
    bound.outputs.clear();
    for (int v : node.outputs) bound.outputs.push_back(view(v));
    bound.scratch = arena + steps[i].scratch_offset;
    const auto persistent = persistent_.find(steps[i].node);
    bound.persistent = persistent == persistent_.end() ? nullptr : persistent->second->data();
  }
}

void Runner::invoke() {
  plan_.rewind();
  sync_folded();
  for (int v : plan_.subgraph().inputs) plan_.values()[static_cast<size_t>(v)].computed = true;
  try {
    run_segments();
  } catch (...) {
    release_later_segments();
    throw;
  }
  copy_constant_outputs();
  release_later_segments();
}

/// Of a segment planned while running. It begins with the node whose result only the data could size: a refusal names
/// it.
void Runner::take_memory(size_t segment) {
  try {
    take_outputs();
    take_arena(segment);
    acquire_packed(segment);
    take_persistent(segment);
  } catch (const BudgetError& error) {
    const std::vector<plan::Step>& steps = plan_.segments()[segment].steps;
    if (steps.empty()) throw;
    throw BudgetError(fmt::format("{} gives more than fits: {}",
                                  ir::describe_node(plan_.subgraph(), steps.front().node), error.what()),
                      error.needed(), error.limit());
  }
}

void Runner::run_segments() {
  run_segment(0);
  while (!plan_.complete()) {
    session_.resources->begin_plan(true);
    plan_.extend();
    session_.resources->set_running(false);
    sync_folded();
    const size_t segment = plan_.segments().size() - 1;
    take_memory(segment);
    bind(segment, bound_[segment].arena->data());
    for (auto& [key, runner] : callees_) {
      if (runner->started_) runner->allocate();
    }
    run_segment(segment);
    release_finished_segments();
  }
  initialized_ = true;
}

void Runner::run_segment(size_t segment) {
  std::vector<plan::Step>& steps = plan_.segments()[segment].steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].initializer || !initialized_) run_step(steps[i], bound_[segment].steps[i]);
  }
}

void Runner::run_step(const plan::Step& step, BoundStep& bound) {
  const ir::Subgraph& subgraph = plan_.subgraph();
  const plan::NodePlace place(subgraph, step.node);
  check_cancelled();
  const ir::Node& node = plan_.node(step.node);
  const RunningOpScope scope(plan_.subgraph_index(), step.node, node.op, first_output_name(subgraph, node));
  if (!session_.observers.empty()) notify(step, bound, true);
  ops::RunContext context(subgraph, step.node, bound.inputs, bound.outputs, bound.scratch, bound.packed, session_.pool,
                          *this, &node);
  context.set_persistent(bound.persistent);
  if (session_.profile.empty()) {
    step.kernel->run(context);
  } else {
    const auto begin = std::chrono::steady_clock::now();
    step.kernel->run(context);
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    NodeProfile& entry = session_.profile[static_cast<size_t>(plan_.subgraph_index())][static_cast<size_t>(step.node)];
    entry.fastest_ms = entry.runs == 0 ? ms : std::min(entry.fastest_ms, ms);
    entry.total_ms += ms;
    ++entry.runs;
  }
  for (int v : node.outputs) plan_.values()[static_cast<size_t>(v)].computed = true;
  if (!session_.observers.empty()) notify(step, bound, false);
}

void Runner::notify(const plan::Step& step, const BoundStep& bound, bool before) {
  const ir::Subgraph& subgraph = plan_.subgraph();
  const ir::Node& node = plan_.node(step.node);
  const auto observe = [&](const std::vector<int>& values, const std::vector<TensorView>& views) {
    std::vector<ObservedTensor> tensors(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      tensors[i].index = values[i];
      if (values[i] == ir::kAbsent) continue;
      tensors[i].name = subgraph.values[static_cast<size_t>(values[i])].name;
      tensors[i].dtype = views[i].dtype;
      tensors[i].shape = views[i].shape;
      tensors[i].data = {views[i].data, static_cast<size_t>(views[i].bytes)};
      if (views[i].quantization->scale.size() == 1) {
        tensors[i].scale = views[i].quantization->scale0();
        tensors[i].zero_point = views[i].quantization->zero_point0();
      }
    }
    return tensors;
  };
  const std::vector<ObservedTensor> inputs = observe(node.inputs, bound.inputs);
  const std::vector<ObservedTensor> outputs = observe(node.outputs, bound.outputs);
  ObservedNode observed{plan_.subgraph_index(), step.node, node.op, {}, inputs, outputs};
  if (!outputs.empty()) observed.name = outputs[0].name;
  for (Observer* observer : session_.observers) {
    before ? observer->before_node(observed) : observer->after_node(observed);
  }
}

/// Later segments' arenas go as soon as no node to come reads them.
void Runner::release_finished_segments() {
  int next_node = static_cast<int>(plan_.subgraph().nodes.size());
  if (!plan_.complete())
    next_node = plan_.segments().back().steps.empty() ? -1 : plan_.segments().back().steps.back().node;
  for (size_t s = 1; s < plan_.segments().size(); ++s) {
    if (plan_.segments()[s].last_use_node > next_node || (plan_.complete() && callee_)) continue;
    if (plan_.complete() && plan_.options().preserve_all) continue;
    give_back(bound_[s].arena, MemoryCategory::kArena);
  }
}

void Runner::release_later_segments() {
  if (!plan_.options().preserve_all) {
    for (size_t s = 1; s < bound_.size(); ++s) give_back(bound_[s].arena, MemoryCategory::kArena);
    if (bound_.size() > 1) bound_.resize(1);
  }
  for (auto& [key, runner] : callees_) {
    if (!runner->bound_base_.has_value() || runner->bound_.empty()) continue;
    runner->release_later_segments();
    if (runner->bound_[0].arena != nullptr) {
      runner->give_back(runner->bound_[0].arena, MemoryCategory::kArena);
      runner->bound_base_.reset();
    }
  }
}

std::optional<std::shared_ptr<const void>> Runner::memory_of(int value) const {
  const plan::PlannedValue& planned = plan_.values()[static_cast<size_t>(value)];
  if (const CallerMemory* memory = caller_memory(planned.root)) return memory->owner;
  if (const auto it = variables_.find(value); it != variables_.end()) return it->second;
  if (const auto it = io_.find(planned.root); it != io_.end()) return it->second;
  const bool preserved = planned.storage == Storage::kArena && plan_.options().preserve_all;
  if (preserved && static_cast<size_t>(planned.segment) < bound_.size()) {
    if (const auto& arena = bound_[static_cast<size_t>(planned.segment)].arena) return arena;
  }
  return std::nullopt;
}

void Runner::resize_string_input(int value, int64_t bytes) {
  auto& memory = io_[value];
  give_back(memory, MemoryCategory::kInputsOutputs);
  const auto point_to_it = [&](int64_t size) {  // allocates nothing: all was bound before
    plan_.values()[static_cast<size_t>(value)].address = memory == nullptr ? nullptr : memory->data();
    for (size_t i = 0; i < plan_.subgraph().inputs.size(); ++i) {
      if (plan_.subgraph().inputs[i] == value) planned_bytes_[i] = size;
    }
    plan_.note_input_bytes(value, size);
    bind(0, bound_[0].arena->data());
  };
  try {
    memory = take(bytes, MemoryCategory::kInputsOutputs);
  } catch (...) {
    point_to_it(0);  // as before the first contents; nothing points to the memory given back
    throw;
  }
  point_to_it(bytes);
}

/// The state that stands for zero: quantized int8 variables hold their zero point, as in TFLite.
void Runner::clear_variable(int value) {
  const ir::Value& source = plan_.subgraph().values[static_cast<size_t>(value)];
  const plan::PlannedValue& planned = plan_.values()[static_cast<size_t>(value)];
  const int level = source.dtype == DType::kInt8 ? source.quantization.zero_point0() : 0;
  if (planned.address != nullptr) std::memset(planned.address, level, static_cast<size_t>(planned.bytes));
}

void Runner::reset_variables() {
  for (size_t v = 0; allocated_ && v < plan_.values().size(); ++v) {
    if (plan_.values()[v].storage == Storage::kVariable) clear_variable(static_cast<int>(v));
  }
  initialized_ = false;
  for (auto& [node, memory] : persistent_) std::memset(memory->data(), 0, static_cast<size_t>(memory->bytes()));
  for (auto& [index, node] : user_nodes_) node->reset();
  for (auto& [key, runner] : callees_) runner->reset_variables();
}

ops::Callee& Runner::callee(int node_index, int subgraph) {
  auto found = callees_.find({node_index, subgraph});
  if (found == callees_.end()) {
    auto runner = std::make_unique<Runner>(session_, subgraph, true);
    runner->caller_ = this;
    found = callees_.emplace(std::pair(node_index, subgraph), std::move(runner)).first;
  }
  return *found->second;
}

const ops::OpDef* Runner::find(const ir::Node& node) const {
  if (node.code == ir::kCustomOp && session_.user_ops.contains(node.op)) return &ops::user_op_row();
  const ops::OpDef* row = ops::registry().find(node.code, node.op);
  const bool missing = row == nullptr || row->infer == nullptr;
  return missing && session_.plan_missing ? &ops::missing_op_row() : row;
}

ops::UserNode& Runner::user_node(int node_index) {
  auto it = user_nodes_.find(node_index);
  if (it == user_nodes_.end()) {
    const ir::Subgraph& subgraph = plan_.subgraph();
    const ops::UserOp& make = *session_.user_ops.at(subgraph.nodes[static_cast<size_t>(node_index)].op);
    it = user_nodes_.emplace(node_index, make(subgraph, node_index)).first;
  }
  return *it->second;
}

std::shared_ptr<const void> Runner::hold_memory(bool leave) {
  const Runner* root = this;
  while (root->caller_ != nullptr) root = root->caller_;
  auto memory = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  memory->push_back(session_.graph);
  root->collect_memory(*memory);
  session_.leave_memory = session_.leave_memory || leave;
  return memory;
}

void Runner::collect_memory(std::vector<std::shared_ptr<const void>>& memory) const {
  for (const BoundSegment& segment : bound_) memory.push_back(segment.arena);
  for (const auto* buffers : {&io_, &variables_, &persistent_}) {
    for (const auto& [index, buffer] : *buffers) memory.push_back(buffer);
  }
  if (!callee_) {
    for (const auto& [value, theirs] : session_.caller_memory) memory.push_back(theirs.owner);
  }
  plan_.collect_folded(memory);
  for (const auto& [key, runner] : callees_) runner->collect_memory(memory);
}

void Runner::checkpoint() {
  require(session_.rounds_left-- > 0, ErrorCode::kCancelled,
          "the model's loops ran more rounds than allowed (max_loop_rounds)");
}

}  // namespace leadline::runtime
