// SPDX-License-Identifier: Apache-2.0
#include "runtime/executable.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "core/cancel.h"
#include "core/error.h"
#include "runtime/admission.h"
#include "runtime/missing_ops.h"

namespace leadline::runtime {
namespace {

constexpr ErrorCode kArgument = ErrorCode::kInvalidArgument;

int thread_count(int requested) {
  if (requested == -1) return usable_cpus();
  require(requested >= 1, kArgument, "num_threads is {}, expected -1 (all) or at least 1", requested);
  return requested;
}

}  // namespace

Executable::Executable(std::shared_ptr<const LoadedModel> model, InterpreterOptions options,
                       const Executable* shares_state_with)
    : model_(std::move(model)),
      options_(std::move(options)),
      graph_(model_->graph()),
      budget_((options_.budget ? options_.budget : model_->budget())->child()),
      owns_resources_(shares_state_with == nullptr) {
  require(options_.subgraph >= 0 && options_.subgraph < static_cast<int>(graph_->subgraphs.size()), kArgument,
          "subgraph {} does not exist: there are {}", options_.subgraph, graph_->subgraphs.size());
  require(options_.max_loop_rounds >= 1, kArgument, "max_loop_rounds is {}, expected at least 1",
          options_.max_loop_rounds);
  disabled_passes_ = passes::pass_names(options_.disabled_passes, passes::passes_for_runs());
  user_ops_ = ops::user_ops_of(*graph_);
  missing_ = find_missing_ops(*graph_, user_ops_);
  if (!options_.plan_only) require_runnable();
  require(owns_resources_ || shares_state_with->graph_ == graph_, kArgument,
          "state can be shared only between interpreters of the same model");
  resources_ = owns_resources_ ? std::make_shared<ops::Resources>(budget_) : shares_state_with->resources_;
  for (int v : subgraph().inputs) {
    input_places_.emplace(v, shapes_.size());
    shapes_.push_back(value(v).shape);
  }
  session_ = std::make_unique<Session>(graph_, model_->packed_weights(), budget_, resources_,
                                       thread_count(options_.num_threads));
  session_->user_ops = user_ops_;
  session_->plan_missing = options_.plan_only;
  session_->preserve_all = options_.preserve_all_tensors;
  session_->winograd = options_.winograd;
  session_->share_parts = !disabled_passes_.contains("share_parts");
  session_->owns_resources = owns_resources_;
  make_plan();
  model_->require_intact();
}

Executable::~Executable() {
  if (owns_resources_) resources_->set_listener(nullptr);
}

void Executable::require_runnable() const {
  if (!missing_.empty()) throw Error(ErrorCode::kUnsupported, missing_ops_message(missing_));
  require(!options_.plan_only, kArgument, "this interpreter was made with plan_only: it can plan and nothing else");
}

/// The graph runs as it is in the file: someone wants to see all its tensors.
bool Executable::runs_plain() const { return options_.preserve_all_tensors || !session_->observers.empty(); }

/// Bytes of the model's structures that this executable uses.
int64_t Executable::structure_bytes() const {
  return model_->graph_bytes() + (session_->changed == nullptr ? 0 : session_->changed->bytes());
}

/// Plans for the current input shapes; counts start from zero.
void Executable::make_plan() {
  stage_ = Stage::kUnplanned;
  runner_.reset();
  session_->changed = runs_plain() ? nullptr : model_->changes_for_runs(disabled_passes_);
  try {
    start_runner();
  } catch (const BudgetError&) {
    throw;
  } catch (const Error&) {
    if (session_->changed == nullptr) throw;
    // What is wrong, if anything, is said about the nodes as they are in the file.
    session_->changed = nullptr;
    start_runner();
  }
  stage_ = Stage::kPlanned;
}

void Executable::start_runner() {
  runner_.reset();
  budget_->count_shared(-base_counted_, MemoryCategory::kModelFile);
  base_counted_ = 0;
  session_->ledger = {};
  budget_->reset_peak();
  base_counted_ = model_->file_bytes() + structure_bytes();
  budget_->count_shared(base_counted_, MemoryCategory::kModelFile);
  session_->ledger.enter(model_->file_bytes(), MemoryCategory::kModelFile);
  session_->ledger.enter(structure_bytes(), MemoryCategory::kGraph);
  if (owns_resources_) {
    session_->ledger.enter(resources_->held_bytes(), MemoryCategory::kVariables);
    resources_->set_listener(
        [this](int64_t bytes, MemoryCategory category) { session_->ledger.enter(bytes, category); });
  }
  runner_ = std::make_unique<Runner>(*session_, options_.subgraph, false);
  runner_->start(shapes_, std::vector<int64_t>(shapes_.size(), 0));
}

/// For observers that were added after the plan was made. Contents of inputs and variables stay.
void Executable::run_plain() {
  if (stage_ == Stage::kPlanned) return make_plan();
  auto before = std::move(runner_);
  const auto changed = std::exchange(session_->changed, nullptr);
  try {
    runner_ = std::make_unique<Runner>(*session_, options_.subgraph, false);
    runner_->start_like(*before);
  } catch (...) {
    session_->changed = changed;
    runner_ = std::move(before);
    throw;
  }
  const Stage stage = std::exchange(stage_, Stage::kUnplanned);  // until there is memory again
  runner_->take_over(*before);
  before.reset();
  stage_ = stage;
  name_profile();
}

void Executable::refresh() {
  model_->require_intact(true);
  if (stage_ == Stage::kUnplanned) {
    make_plan();
  } else if (session_->changed != nullptr && runs_plain()) {
    run_plain();
  }
}

void Executable::prepare() {
  refresh();
  if (options_.plan_only) require_runnable();
  if (stage_ == Stage::kReady) return;
  runner_->check_caller_memory();
  admit();
  stage_ == Stage::kRebound ? runner_->rebind() : runner_->allocate();
  stage_ = Stage::kReady;
  model_->require_intact();  // weights were packed
}

/// Throws BudgetError when what is still needed does not fit.
void Executable::admit() const {
  if (stage_ == Stage::kRebound && !runner_->lacks_memory()) return;
  const MemoryNeeds needs = runner_->needs();
  const int64_t available = budget_->available();
  if (needs.total() > available) refuse(describe_plan(), needs, *budget_, available);
}

Plan Executable::describe_plan() const {
  Plan result = plan::describe(runner_->plan(), planned_totals(*model_, *runner_, session_->ledger, structure_bytes()),
                               session_->pool.size());
  for (const auto& [index, memory] : session_->caller_memory) {
    result.tensors[static_cast<size_t>(index)].bound = true;
    result.bound_bytes += memory.bytes;
  }
  for (const MissingOp& op : missing_) result.missing_ops.push_back(op.name);
  return result;
}

Plan Executable::plan() {
  const std::lock_guard lock(mutex_);
  refresh();
  return describe_plan();
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
  session_->rounds_left = options_.max_loop_rounds;
  try {
    runner_->invoke();
  } catch (...) {
    if (std::exchange(session_->leave_memory, false)) stage_ = Stage::kUnplanned;
    model_->require_intact();
    throw;
  }
  model_->require_intact(true);
}

void Executable::reset_variables() {
  const std::lock_guard lock(mutex_);
  // A plan that could not be made has no variables, and the next one begins with their initial state.
  if (runner_ != nullptr) runner_->reset_variables();
  resources_->reset();
}

int64_t Executable::counted_peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return budget_->peak();
}

int64_t Executable::memory_bytes() const {
  const int64_t shared = budget_->used(MemoryCategory::kModelFile) + budget_->used(MemoryCategory::kPackedWeights);
  return std::max<int64_t>(budget_->used() - shared, 0);
}

void Executable::add_observer(Observer* observer) {
  const std::lock_guard lock(mutex_);
  session_->observers.push_back(observer);
}

void Executable::remove_observer(Observer* observer) {
  const std::lock_guard lock(mutex_);
  std::erase(session_->observers, observer);
}

void Executable::enable_profile(bool enabled) {
  const std::lock_guard lock(mutex_);
  auto& profile = session_->profile;
  profile.clear();
  if (!enabled) return;
  for (const ir::Subgraph& subgraph : graph_->subgraphs) profile.emplace_back(subgraph.nodes.size());
  name_profile();
}

/// Nodes of the profile have the names of what runs.
void Executable::name_profile() {
  auto& profile = session_->profile;
  for (size_t s = 0; s < profile.size(); ++s) {
    const ir::Subgraph& source = graph_->subgraphs[s];
    for (size_t n = 0; n < profile[s].size(); ++n) {
      const auto* changed = session_->changed ? session_->changed->subgraphs[s].find(static_cast<int>(n)) : nullptr;
      const ir::Node& node = changed != nullptr ? changed->node : source.nodes[n];
      NodeProfile& entry = profile[s][n];
      entry.subgraph = static_cast<int>(s);
      entry.node = static_cast<int>(n);
      entry.op = node.op;
      if (!node.outputs.empty()) entry.name = source.values[static_cast<size_t>(node.outputs[0])].name;
    }
  }
}

std::vector<NodeProfile> Executable::profile() const {
  const std::lock_guard lock(mutex_);
  std::vector<NodeProfile> result;
  for (const auto& entries : session_->profile) {
    std::copy_if(entries.begin(), entries.end(), std::back_inserter(result), [](const auto& e) { return e.runs > 0; });
  }
  return result;
}

}  // namespace leadline::runtime
