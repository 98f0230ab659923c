// SPDX-License-Identifier: Apache-2.0
#include "runtime/runner.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "core/cancel.h"
#include "core/error.h"
#include "core/running_op.h"
#include "core/work.h"
#include "runtime/callee.h"
#include "runtime/observation.h"

namespace leadline::runtime {
namespace {

std::string_view first_output_name(const ir::Subgraph& subgraph, const ir::Node& node) {
  if (node.outputs.empty()) return {};
  return subgraph.value(node.outputs[0]).name;
}

plan::PlanOptions plan_options(const RunSettings& settings, bool callee) {
  plan::PlanOptions options;
  options.threads = settings.threads;
  options.preserve_all = settings.preserve_all && !callee;
  options.self_contained = callee;
  options.winograd = settings.winograd;
  options.share_parts = settings.share_parts;
  return options;
}

}  // namespace

Runner::Runner(Environment& environment, int subgraph, std::shared_ptr<const ir::ChangedNodes> changed,
               const CallerMemories& caller_memory)
    : Runner(environment, subgraph, std::move(changed), &caller_memory, nullptr) {}

Runner::Runner(Environment& environment, int subgraph, std::shared_ptr<const ir::ChangedNodes> changed,
               const NodeHost& caller)
    : Runner(environment, subgraph, std::move(changed), nullptr, &caller) {}

Runner::Runner(Environment& environment, int subgraph, std::shared_ptr<const ir::ChangedNodes> changed,
               const CallerMemories* caller_memory, const NodeHost* caller)
    : environment_(environment),
      caller_memory_(caller_memory),
      changed_(std::move(changed)),
      host_(environment, *this, caller),
      planner_(*environment.graph, subgraph, plan_options(environment.settings, caller != nullptr), changed_.get(),
               host_, environment.accounts.budget()),
      blocks_(environment.accounts, environment.packed_weights),
      bindings_(planner_, blocks_, caller_memory) {}

Runner::~Runner() { release(); }

void Runner::start(std::span<const Shape> inputs, std::span<const int64_t> bytes) {
  release();
  host_.forget_callees();
  stage_ = Stage::kNew;
  ops::Resources& resources = *environment_.resources;
  const bool running = resources.running();
  if (is_main()) {
    resources.begin_plan(false);
    if (environment_.settings.owns_resources) resources.restart_generators();
  } else {
    resources.set_running(false);  // no node of this subgraph has run
  }
  planned_shapes_.assign(inputs.begin(), inputs.end());
  planned_bytes_.assign(bytes.begin(), bytes.end());
  planner_.start(planned_shapes_, planned_bytes_);
  bindings_.reset();
  resources.set_running(!is_main() && running);
  sync_folded();
  stage_ = Stage::kPlanned;
}

bool Runner::is_planned_for(std::span<const Shape> inputs) const {
  return stage_ != Stage::kNew && std::ranges::equal(inputs, planned_shapes_);
}

bool Runner::is_planned_for(std::span<const Shape> inputs, std::span<const int64_t> bytes) const {
  return is_planned_for(inputs) && std::ranges::equal(bytes, planned_bytes_);
}

void Runner::sync_folded() {
  const int64_t folded = planner_.folded_bytes();
  if (folded != folded_entered_) environment_.accounts.ledger().enter(folded - folded_entered_, MemoryCategory::kGraph);
  folded_entered_ = folded;
}

/// Weights that were folded may depend on the input shapes, so nothing else may use their packing.
PackedKey Runner::packed_key(const plan::Step& step) const {
  PackedKey key{outline().subgraph_index(), step.node, step.packed_bytes, step.packed_layout};
  const ir::Node& node = outline().node(step.node);
  const bool folded = std::any_of(node.inputs.begin(), node.inputs.end(), [&](int v) {
    return v != ir::kAbsent && plan().value(v).storage == Storage::kFolded;
  });
  if (folded) key.layout += fmt::format("@{}", static_cast<const void*>(this));
  return key;
}

MemoryNeeds Runner::needs() const {
  MemoryNeeds needs;
  for (const plan::Segment& segment : plan().segments) {
    for (const plan::Step& step : segment.steps) {
      if (!blocks_.has_persistent(step.node, step.persistent_bytes)) needs.variables += step.persistent_bytes;
      if (step.packed_bytes == 0) continue;
      const PackedKey key = packed_key(step);
      if (blocks_.holds_packed(key)) continue;
      (environment_.packed_weights->holds(key) ? needs.shared_weights : needs.packed_weights) += step.packed_bytes;
    }
  }
  for (size_t v = 0; v < plan().values.size(); ++v) {
    if (!bindings_.lacks_memory(static_cast<int>(v))) continue;
    const plan::PlannedValue& value = plan().values[v];
    (value.storage == Storage::kVariable ? needs.variables : needs.inputs_outputs) += align_up(value.bytes);
  }
  if (stage_ != Stage::kAllocated) {
    needs.structures = planner_.structure_bytes();
    if (is_main()) {
      needs.arena = align_up(plan().segments[0].arena_bytes);
      if (environment_.settings.owns_resources) needs.variables += environment_.resources->pending_bytes();
    }
  }
  for (const auto& [key, callee] : host_.callees()) {
    if (callee->runner().stage_ == Stage::kNew) continue;
    const MemoryNeeds inner = callee->runner().needs();
    needs.packed_weights += inner.packed_weights;
    needs.shared_weights += inner.shared_weights;
    needs.variables += inner.variables;
    needs.structures += inner.structures;
  }
  return needs;
}

void Runner::allocate() {
  if (stage_ == Stage::kAllocated) return;
  const int64_t structures = planner_.structure_bytes();
  environment_.accounts.charge(structures, MemoryCategory::kGraph);
  structures_charged_ = structures;
  stage_ = Stage::kAllocated;
  try {
    for (size_t v = 0; v < plan().values.size(); ++v) {
      if (plan().values[v].storage == Storage::kVariable) bindings_.provide(static_cast<int>(v));
    }
    initialized_ = false;
    if (is_main()) {
      for (int v : outline().subgraph().inputs) bindings_.provide(v);
      provide_outputs();
      environment_.resources->allocate();
      take_arena(0);
    }
    acquire_packed(0);
    take_persistent(0);
    if (is_main()) bindings_.bind(0, blocks_.arena(0)->data());
    allocate_callees();
  } catch (...) {
    release();
    throw;
  }
}

void Runner::allocate_callees() {
  for (const auto& [key, callee] : host_.callees()) {
    if (callee->runner().stage_ != Stage::kNew) callee->runner().allocate();
  }
}

/// Memory for outputs whose shape has become known.
void Runner::provide_outputs() {
  if (!is_main()) return;
  for (int v : outline().subgraph().outputs) {
    const plan::PlannedValue& value = plan().value(v);
    if (value.storage != Storage::kOutput || !value.shape_known) continue;
    if (const CallerMemory* theirs = bindings_.caller_memory(v)) require_fit(planner_, v, *theirs);
    bindings_.provide(v);
  }
}

void Runner::take_arena(size_t segment) { blocks_.take_arena(segment, plan().segments[segment].arena_bytes); }

void Runner::acquire_packed(size_t segment) {
  const std::vector<plan::Step>& steps = plan().segments[segment].steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    const plan::Step& step = steps[i];
    if (step.packed_bytes == 0) continue;
    const plan::NodePlace place(outline().subgraph(), step.node);
    check_cancelled();
    const std::byte* packed = blocks_.acquire_packed(packed_key(step), [&](std::byte* target) {
      step.kernel->pack(target);
      for (int v : step.replaced_inputs) {
        const auto data = outline().subgraph().value(v).data;
        environment_.graph->bytes->drop_pages(data.data(), static_cast<int64_t>(data.size()));
      }
    });
    bindings_.set_packed(segment, i, packed);
  }
}

/// A node that is planned during the run keeps its memory from the last one, unless its size has changed.
void Runner::take_persistent(size_t segment) {
  for (const plan::Step& step : plan().segments[segment].steps) {
    if (step.persistent_bytes > 0) blocks_.take_persistent(step.node, step.persistent_bytes);
  }
}

void Runner::release() {
  blocks_.release();
  bindings_.clear();
  if (stage_ == Stage::kAllocated) {
    environment_.accounts.release(std::exchange(structures_charged_, 0), MemoryCategory::kGraph);
    stage_ = Stage::kPlanned;
  }
  for (const auto& [key, callee] : host_.callees()) callee->release();
}

bool Runner::can_be_resumed() const {
  const bool strings =
      std::any_of(planned_bytes_.begin(), planned_bytes_.end(), [](int64_t bytes) { return bytes > 0; });
  return stage_ != Stage::kNew && planner_.complete_before_run() && !strings && environment_.user_ops.empty() &&
         environment_.resources->empty();
}

int64_t Runner::suspend() {
  if (is_main()) release();
  planner_.rewind();
  int64_t folded = planner_.folded_bytes();
  environment_.accounts.ledger().enter(-std::exchange(folded_entered_, 0), MemoryCategory::kGraph);
  for (const auto& [key, callee] : host_.callees()) {
    if (callee->runner().stage_ != Stage::kNew) folded += callee->runner().suspend();
  }
  return folded;
}

void Runner::resume() {
  bindings_.reset();
  sync_folded();
  for (const auto& [key, callee] : host_.callees()) {
    if (callee->runner().stage_ != Stage::kNew) callee->runner().resume();
  }
}

void Runner::collect_packed(std::vector<std::shared_ptr<const Buffer>>& packed) const {
  blocks_.collect_packed(packed);
  for (const auto& [key, callee] : host_.callees()) callee->runner().collect_packed(packed);
}

void Runner::take_over(Runner& other) {
  take_state(other);
  other.release();
  allocate();
  mark_initialized(other);
}

/// Memory that allocate() would take finds what is there already.
void Runner::take_state(Runner& other) {
  blocks_.take_over(other.blocks_);
  host_.take_user_nodes(other.host_);
  environment_.accounts.ledger().enter(-std::exchange(other.folded_entered_, 0), MemoryCategory::kGraph);
  for (const auto& [key, callee] : host_.callees()) {
    const auto before = other.host_.callees().find(key);
    if (before != other.host_.callees().end()) callee->runner().take_state(before->second->runner());
  }
}

void Runner::mark_initialized(const Runner& other) {
  initialized_ = other.initialized_;
  for (const auto& [key, callee] : host_.callees()) {
    const auto before = other.host_.callees().find(key);
    if (before != other.host_.callees().end()) callee->runner().mark_initialized(before->second->runner());
  }
}

void Runner::begin_run() {
  const bool rewound = planner_.rewind();
  sync_folded();
  bindings_.begin_run(rewound);
}

void Runner::invoke() {
  begin_run();
  for (int v : outline().subgraph().inputs) bindings_.mark_computed(v);
  try {
    run_segments();
  } catch (...) {
    release_later_segments();
    throw;
  }
  copy_constant_outputs();
  release_later_segments();
}

void Runner::begin_call(std::byte* workspace) {
  if (workspace == nullptr) {
    if (blocks_.arena(0) == nullptr) take_arena(0);
    workspace = blocks_.arena(0)->data();
  }
  begin_run();
  if (workspace != bindings_.base()) bindings_.bind(0, workspace);
}

std::byte* Runner::last_arena() const {
  const size_t last = plan().segments.size() - 1;
  return last == 0 ? bindings_.base().value_or(nullptr) : blocks_.arena(last)->data();
}

std::vector<std::shared_ptr<Buffer>> Runner::detach_arenas(size_t first) {
  bindings_.forget_segments(first);
  return blocks_.detach_arenas(first);
}

/// Of a segment planned while running. It begins with the node whose result only the data could size: a refusal names
/// it.
void Runner::take_memory(size_t segment) {
  try {
    provide_outputs();
    take_arena(segment);
    acquire_packed(segment);
    take_persistent(segment);
  } catch (const BudgetError& error) {
    const std::vector<plan::Step>& steps = plan().segments[segment].steps;
    if (steps.empty()) throw;
    throw BudgetError(fmt::format("the result of {} does not fit: {}",
                                  ir::describe_node(outline().subgraph(), steps.front().node), error.what()),
                      error.needed(), error.limit());
  }
}

void Runner::run_segments() {
  run_segment(0);
  while (!plan().complete) {
    environment_.resources->begin_plan(true);
    planner_.extend(bindings_);
    environment_.resources->set_running(false);
    sync_folded();
    const size_t segment = plan().segments.size() - 1;
    take_memory(segment);
    bindings_.bind(segment, blocks_.arena(segment)->data());
    allocate_callees();
    run_segment(segment);
    release_finished_segments();
  }
  initialized_ = true;
}

void Runner::run_segment(size_t segment) {
  const std::vector<plan::Step>& steps = plan().segments[segment].steps;
  if (steps.empty()) return;
  const std::vector<BoundStep>& bound = bindings_.steps(segment);
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].initializer || !initialized_) run_step(steps[i], bound[i]);
  }
}

void Runner::run_step(const plan::Step& step, const BoundStep& bound) {
  const ir::Subgraph& subgraph = outline().subgraph();
  const plan::NodePlace place(subgraph, step.node);
  check_cancelled();
  const ir::Node& node = outline().node(step.node);
  const RunningOpScope scope(outline().subgraph_index(), step.node, node.op.name(), first_output_name(subgraph, node));
  const std::vector<Observer*>& observers = environment_.observers;
  if (!observers.empty()) notify(observers, outline(), step.node, bound, Moment::kBefore);
  ops::RunContext context(subgraph, step.node, bound.inputs, bound.outputs, bound.scratch, bound.packed,
                          environment_.pool, host_, &node);
  context.set_persistent(bound.persistent);
  run_kernel(step, context);
  for (int v : node.outputs) bindings_.mark_computed(v);
  if (!observers.empty()) notify(observers, outline(), step.node, bound, Moment::kAfter);
}

void Runner::run_kernel(const plan::Step& step, ops::RunContext& context) {
  if (!environment_.profile.enabled()) return step.kernel->run(context);
  const auto begin = std::chrono::steady_clock::now();
  step.kernel->run(context);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  environment_.profile.add(outline().subgraph_index(), step.node, time.count());
}

/// Later segments' arenas go as soon as no node to come reads them.
void Runner::release_finished_segments() {
  const std::vector<plan::Segment>& segments = plan().segments;
  int next_node = outline().node_count();
  if (!plan().complete) next_node = segments.back().steps.empty() ? -1 : segments.back().steps.back().node;
  for (size_t s = 1; s < segments.size(); ++s) {
    if (!blocks_.has_arena(s)) continue;
    if (segments[s].last_use_node > next_node || (plan().complete && !is_main())) continue;
    if (plan().complete && planner_.options().preserve_all) continue;
    blocks_.drop_arena(s);
  }
}

void Runner::release_later_segments() {
  if (!planner_.options().preserve_all) {
    for (std::shared_ptr<Buffer>& arena : detach_arenas(1)) {
      environment_.accounts.give_back(arena, MemoryCategory::kArena);
    }
  }
  for (const auto& [key, callee] : host_.callees()) callee->runner().end_calls();
}

void Runner::end_calls() {
  if (!bindings_.base().has_value()) return;  // not called since it was released
  release_later_segments();
  if (blocks_.arena(0) == nullptr) return;
  blocks_.drop_arena(0);
  bindings_.forget_base();
}

/// Outputs that no node computes have their bytes in the file.
void Runner::copy_constant_outputs() {
  for (const auto& [value, memory] : *caller_memory_) {
    if (plan().value(value).is_fixed() && memory.bytes > 0) {
      copy_bytes(memory.data, bindings_.address(value), memory.bytes);
    }
  }
}

std::optional<std::shared_ptr<const void>> Runner::memory_of(int value) const {
  const plan::PlannedValue& planned = plan().value(value);
  if (const CallerMemory* memory = bindings_.caller_memory(planned.root)) return memory->owner;
  if (auto memory = blocks_.tensor(planned.root)) return memory;
  const bool preserved = planned.storage == Storage::kArena && planner_.options().preserve_all;
  if (!preserved) return std::nullopt;
  if (auto arena = blocks_.arena(static_cast<size_t>(planned.segment))) return arena;
  return std::nullopt;
}

void Runner::resize_string_input(int value, int64_t bytes) {
  const auto use_memory = [&](int64_t size) {  // allocates nothing: all was bound before
    for (size_t i = 0; i < planned_bytes_.size(); ++i) {
      if (outline().subgraph().inputs[i] == value) planned_bytes_[i] = size;
    }
    planner_.note_input_bytes(value, size);
    bindings_.use_own_memory(value);
    bindings_.bind(0, blocks_.arena(0)->data());
  };
  blocks_.drop_tensor(value);
  try {
    blocks_.take_tensor(value, bytes, MemoryCategory::kInputsOutputs);
  } catch (...) {
    use_memory(0);  // as before the first contents; nothing points to the released memory
    throw;
  }
  use_memory(bytes);
}

void Runner::reset_variables() {
  for (size_t v = 0; stage_ == Stage::kAllocated && v < plan().values.size(); ++v) {
    if (plan().values[v].storage == Storage::kVariable) bindings_.clear_variable(static_cast<int>(v));
  }
  initialized_ = false;
  blocks_.clear_persistent();
  host_.reset_user_nodes();
  for (const auto& [key, callee] : host_.callees()) callee->runner().reset_variables();
}

void Runner::collect_memory(std::vector<std::shared_ptr<const void>>& memory) const {
  blocks_.collect(memory);
  if (is_main()) {
    for (const auto& [value, theirs] : *caller_memory_) memory.push_back(theirs.owner);
  }
  planner_.collect_folded(memory);
  for (const auto& [key, callee] : host_.callees()) callee->runner().collect_memory(memory);
}

}  // namespace leadline::runtime
