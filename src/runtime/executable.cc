// SPDX-License-Identifier: Apache-2.0
#include "runtime/executable.h"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "core/cancel.h"
#include "core/error.h"
#include "core/join.h"
#include "runtime/admission.h"
#include "runtime/missing_ops.h"

namespace leadline::runtime {
namespace {

int thread_count(int requested) {
  if (requested == -1) return usable_cpus();
  require(requested >= 1, kBadArgument, "num_threads is {}, expected -1 (all) or at least 1", requested);
  return requested;
}

/// The signature with this key.
const ir::Signature& find_signature(const ir::Graph& graph, const std::string& key) {
  std::vector<std::string> known;
  for (const ir::Signature& signature : graph.signatures) {
    if (signature.key == key) return signature;
    known.push_back(fmt::format("'{}'", signature.key));
  }
  fail(kBadArgument, "unknown signature '{}'; expected one of: {}", key,
       known.empty() ? "none, as the model has no signatures" : join(known, ", "));
}

InterpreterOptions resolve_signature(const ir::Graph& graph, InterpreterOptions options) {
  if (!options.signature.empty()) options.subgraph = find_signature(graph, options.signature).subgraph;
  return options;
}

}  // namespace

Executable::Executable(std::shared_ptr<const LoadedModel> model, InterpreterOptions options,
                       const Executable* shares_state_with)
    : model_(std::move(model)),
      options_(resolve_signature(*model_->graph(), std::move(options))),
      graph_(model_->graph()),
      budget_(parent_budget()->child()) {
  require(options_.subgraph >= 0 && options_.subgraph < static_cast<int>(graph_->subgraphs.size()), kBadArgument,
          "subgraph {} does not exist: there are {}", options_.subgraph, graph_->subgraphs.size());
  require(options_.max_loop_rounds >= 1, kBadArgument, "max_loop_rounds is {}, expected at least 1",
          options_.max_loop_rounds);
  disabled_passes_ = passes::pass_names(options_.disabled_passes, passes::names_for_runs());
  ops::UserOpTable user_ops = ops::user_ops_of(*graph_);
  missing_ = find_missing_ops(*graph_, user_ops);
  if (!options_.plan_only) require_runnable();
  require(shares_state_with == nullptr || shares_state_with->graph_ == graph_, kBadArgument,
          "state can be shared only between interpreters of the same model");
  for (int v : subgraph().inputs) {
    input_places_.emplace(v, shapes_.size());
    shapes_.push_back(value(v).shape);
  }
  sized_.resize(shapes_.size(), false);
  RunSettings settings;
  settings.threads = thread_count(options_.num_threads);
  settings.plan_missing = options_.plan_only;
  settings.preserve_all = options_.preserve_all_tensors;
  settings.owns_resources = shares_state_with == nullptr;
  settings.winograd = options_.winograd;
  settings.share_parts = !disabled_passes_.contains(passes::kShareParts.name);
  auto resources =
      settings.owns_resources ? std::make_shared<ops::Resources>(budget_) : shares_state_with->environment_->resources;
  environment_ = std::make_unique<Environment>(graph_, model_->packed_weights(), budget_, std::move(resources),
                                               std::move(user_ops), settings);
  kept_plans_ = std::make_unique<KeptPlans>(*environment_, parent_budget());
  if (find_unsized().empty()) make_plan();
  model_->require_intact();
}

Executable::~Executable() {
  if (owns_resources()) environment_->resources->set_listener(nullptr);
}

/// What the memory of this executable is charged to in the end.
const std::shared_ptr<Budget>& Executable::parent_budget() const {
  return options_.budget ? options_.budget : model_->budget();
}

void Executable::require_runnable() const {
  if (!missing_.empty()) throw Error(ErrorCode::kUnsupported, missing_ops_message(missing_));
  require(!options_.plan_only, kBadArgument, "this interpreter was made with plan_only: it can plan and nothing else");
}

/// The graph runs as it is in the file: all its tensors must be visible.
bool Executable::runs_plain() const { return options_.preserve_all_tensors || !environment_->observers.empty(); }

/// Bytes of the model's structures that this executable uses.
int64_t Executable::structure_bytes() const {
  return model_->graph_bytes() + (changed_ == nullptr ? 0 : changed_->bytes());
}

/// Plans for the current input shapes; counts start from zero.
void Executable::make_plan() {
  stage_ = Stage::kUnplanned;
  if (runner_ != nullptr) {
    std::vector<std::shared_ptr<const Buffer>> packed;
    runner_->collect_packed(packed);
    if (!packed.empty()) spare_weights_ = std::move(packed);
    if (options_.keep_plans) kept_plans_->keep(std::move(runner_));
    runner_.reset();
  }
  changed_ = runs_plain() ? nullptr : model_->changes_for_runs(disabled_passes_);
  if (std::unique_ptr<Runner> known = kept_plans_->take(shapes_, changed_.get())) {
    begin_counts();
    runner_ = std::move(known);
    runner_->resume();
  } else {
    plan_inputs();
  }
  environment_->profile.rename(*graph_, changed_.get());
  stage_ = Stage::kPlanned;
}

void Executable::plan_inputs() {
  try {
    start_runner();
  } catch (const BudgetError&) {
    if (kept_plans_->empty() && spare_weights_.empty()) throw;
    drop_spares();
    plan_inputs();
  } catch (const Error& error) {
    const bool of_the_model = error.code() == ErrorCode::kInvalidModel || error.code() == ErrorCode::kUnsupported ||
                              error.code() == ErrorCode::kRuntime || error.code() == kBadArgument;
    if (changed_ != nullptr) {
      // What is wrong, if anything, is said about the nodes as they are in the file.
      changed_ = nullptr;
      plan_inputs();
    } else if (const std::vector<int> unsized = find_unsized(); of_the_model && !unsized.empty()) {
      refuse_unsized(unsized, error);
    } else {
      throw;
    }
  }
}

/// Both counts start from what the model holds.
void Executable::begin_counts() {
  runner_.reset();
  budget_->count_shared(-base_counted_, MemoryCategory::kModelFile);
  base_counted_ = 0;
  Ledger& ledger = environment_->accounts.ledger();
  ledger = {};
  budget_->reset_peak();
  base_counted_ = model_->file_bytes() + structure_bytes();
  budget_->count_shared(base_counted_, MemoryCategory::kModelFile);
  ledger.enter(model_->file_bytes(), MemoryCategory::kModelFile);
  ledger.enter(structure_bytes(), MemoryCategory::kGraph);
  if (owns_resources()) {
    ops::Resources& resources = *environment_->resources;
    ledger.enter(resources.held_bytes(), MemoryCategory::kVariables);
    resources.set_listener([&ledger](int64_t bytes, MemoryCategory category) { ledger.enter(bytes, category); });
  }
}

void Executable::start_runner() {
  begin_counts();
  runner_ = std::make_unique<Runner>(*environment_, options_.subgraph, changed_, caller_memory_);
  runner_->start(shapes_, std::vector<int64_t>(shapes_.size(), 0));
}

/// Memory that only saves time.
void Executable::drop_spares() {
  kept_plans_->clear();
  spare_weights_.clear();
}

/// For observers that were added after the plan was made. Contents of inputs and variables stay.
void Executable::run_plain() {
  if (stage_ == Stage::kPlanned) return make_plan();
  auto before = std::move(runner_);
  const auto changed = std::exchange(changed_, nullptr);
  try {
    runner_ = std::make_unique<Runner>(*environment_, options_.subgraph, changed_, caller_memory_);
    runner_->start_like(*before);
  } catch (...) {
    changed_ = changed;
    runner_ = std::move(before);
    throw;
  }
  const Stage stage = std::exchange(stage_, Stage::kUnplanned);  // until there is memory again
  runner_->take_over(*before);
  before.reset();
  stage_ = stage;
  environment_->profile.rename(*graph_, nullptr);
}

void Executable::refresh() {
  model_->require_intact(true);
  if (stage_ == Stage::kUnplanned) {
    make_plan();
  } else if (changed_ != nullptr && runs_plain()) {
    run_plain();
  }
}

void Executable::prepare() {
  refresh();
  if (options_.plan_only) require_runnable();
  if (stage_ == Stage::kReady) return;
  check_caller_memory(runner_->planner(), caller_memory_, runner_->blocks());
  admit();
  stage_ == Stage::kRebound ? runner_->rebind() : runner_->allocate();
  spare_weights_.clear();
  stage_ = Stage::kReady;
  model_->require_intact();  // weights were packed
}

/// Throws BudgetError when what is still needed does not fit.
void Executable::admit() {
  if (stage_ == Stage::kRebound && !runner_->bindings().lacks_memory()) return;
  MemoryNeeds needs = runner_->needs();
  int64_t available = budget_->available();
  if (needs.total() > available) {
    drop_spares();
    needs = runner_->needs();
    available = budget_->available();
  }
  if (needs.total() > available) refuse(describe_plan(), needs, *budget_, available);
}

Plan Executable::describe_plan() const {
  const plan::PlannedTotals totals =
      planned_totals(*model_, *runner_, environment_->accounts.ledger(), structure_bytes());
  int64_t largest = 0;
  Plan result = plan::describe(runner_->outline(), runner_->plan(), totals, environment_->settings.threads);
  for (const auto& [index, memory] : caller_memory_) {
    result.tensors[static_cast<size_t>(index)].bound = true;
    result.bound_bytes += memory.bytes;
  }
  for (const MissingOp& op : missing_) result.missing_ops.push_back(op.name);
  result.units = budget_->units();
  if (options_.preserve_all_tensors) return result;
  for (const PlannedTensor& tensor : result.tensors) {
    if (tensor.storage == Storage::kOutput) result.recompute_bytes += align_up(tensor.bytes);
    if (tensor.storage == Storage::kArena) largest = std::max(largest, align_up(tensor.bytes));
  }
  result.recompute_bytes += result.arena_bytes + largest;
  return result;
}

Plan Executable::plan() {
  const std::lock_guard lock(mutex_);
  refresh();
  return describe_plan();
}

/// By another executable, so that this one stays as it is.
Plan Executable::plan_for(const std::map<int, Shape>& shapes) const {
  InterpreterOptions options = options_;
  options.plan_only = true;
  Executable planner(model_, std::move(options));
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [index, place] : input_places_) {
      if (sized_[place]) planner.resize_input(index, shapes_[place], false);
    }
  }
  for (const auto& [index, shape] : shapes) planner.resize_input(index, shape, false);
  return planner.plan();
}

void Executable::allocate() {
  const std::lock_guard lock(mutex_);
  prepare();
}

void Executable::invoke(const RunCheck& check) {
  std::optional<WorkLimit> limit;
  if (check) limit.emplace(check);
  const std::lock_guard lock(mutex_);
  prepare();
  environment_->control.begin(options_.max_loop_rounds);
  try {
    runner_->invoke();
  } catch (...) {
    if (environment_->control.take_leave()) stage_ = Stage::kUnplanned;
    model_->require_intact();
    throw;
  }
  model_->require_intact(true);
}

void Executable::reset_variables() {
  const std::lock_guard lock(mutex_);
  // A plan that could not be made has no variables, and the next one begins with their initial state.
  if (runner_ != nullptr) runner_->reset_variables();
  environment_->resources->reset();
}

int64_t Executable::counted_peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return budget_->peak();
}

int64_t Executable::memory_bytes() const {
  const int64_t shared = budget_->used(MemoryCategory::kModelFile) + budget_->used(MemoryCategory::kPackedWeights);
  return std::max<int64_t>(budget_->used() - shared, 0) + kept_plans_->bytes();
}

void Executable::add_observer(Observer* observer) {
  const std::lock_guard lock(mutex_);
  environment_->observers.push_back(observer);
}

void Executable::remove_observer(Observer* observer) {
  const std::lock_guard lock(mutex_);
  std::erase(environment_->observers, observer);
}

void Executable::enable_profile(bool enabled) {
  const std::lock_guard lock(mutex_);
  enabled ? environment_->profile.enable(*graph_, changed_.get()) : environment_->profile.disable();
}

std::vector<NodeProfile> Executable::profile() const {
  const std::lock_guard lock(mutex_);
  return environment_->profile.entries();
}

}  // namespace leadline::runtime
