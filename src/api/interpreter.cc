// SPDX-License-Identifier: Apache-2.0
#include "leadline/interpreter.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "api/boundary.h"
#include "api/missing_ops.h"
#include "api/model_data.h"
#include "core/alignment.h"
#include "core/cancel.h"
#include "core/cancellable_mutex.h"
#include "core/error.h"
#include "core/string_tensor.h"
#include "passes/passes.h"
#include "plan/report.h"
#include "runtime/runner.h"

namespace leadline {
namespace {

constexpr ErrorCode kArgument = ErrorCode::kInvalidArgument;

int thread_count(int requested) {
  if (requested == -1) return usable_cpus();
  require(requested >= 1, kArgument, "num_threads is {}, expected -1 (all) or at least 1", requested);
  return requested;
}

}  // namespace

struct Interpreter::State {
  State(const Model& source, InterpreterOptions chosen)
      : model(source),
        options(std::move(chosen)),
        graph(source.data()->graph),
        budget((options.budget ? options.budget : source.budget())->child()),
        device(choose_device(options.device, options.on_missing)) {
    require(options.subgraph >= 0 && options.subgraph < source.subgraph_count(), kArgument,
            "subgraph {} does not exist: there are {}", options.subgraph, source.subgraph_count());
    require(options.max_loop_rounds >= 1, kArgument, "max_loop_rounds is {}, expected at least 1",
            options.max_loop_rounds);
    disabled_passes = passes::pass_names(options.disabled_passes, passes::passes_for_runs());
    user_ops = ops::user_ops_of(*graph);
    missing = find_missing_ops(*graph, user_ops);
    if (!options.plan_only) require_runnable();
    require(!options.shares_state_with || options.shares_state_with->state_->graph == graph, kArgument,
            "state can be shared only between interpreters of the same model");
    resources = options.shares_state_with ? options.shares_state_with->state_->resources
                                          : std::make_shared<ops::Resources>(budget);
    for (int v : subgraph().inputs) {
      input_places.emplace(v, shapes.size());
      shapes.push_back(value(v).shape);
    }
    string_bytes.assign(shapes.size(), 0);
    make_plan();
    source.data()->require_intact();
  }

  ~State() {
    if (!options.shares_state_with) resources->set_listener(nullptr);
  }

  void require_runnable() const {
    if (!missing.empty()) throw Error(ErrorCode::kUnsupported, missing_ops_message(missing));
    require(!options.plan_only, kArgument, "this interpreter was made with plan_only: it can plan and nothing else");
  }

  const ir::Subgraph& subgraph() const { return graph->subgraphs[static_cast<size_t>(options.subgraph)]; }
  const ir::Value& value(int index) const { return subgraph().values[static_cast<size_t>(index)]; }

  void check_index(int index) const {
    require(index >= 0 && index < static_cast<int>(subgraph().values.size()), kArgument,
            "tensor {} does not exist: the model has {}", index, subgraph().values.size());
  }

  /// The graph runs as it is in the file: someone wants to see all its tensors.
  bool runs_plain() const { return options.preserve_all_tensors || (session && !session->observers.empty()); }

  /// Plans for the current input shapes; counts start anew.
  void make_plan() {
    const int threads = session ? session->pool.size() : thread_count(options.num_threads);
    runner.reset();
    if (!session) {
      session = std::make_shared<runtime::Session>(graph, model.data()->packed_weights, budget, resources, threads);
      session->user_ops = user_ops;
      session->plan_missing = options.plan_only;
      session->preserve_all = options.preserve_all_tensors;
      session->winograd = options.winograd;
      session->share_parts = !disabled_passes.contains("share_parts");
      session->owns_resources = options.shares_state_with == nullptr;
    }
    failed = true;
    session->changed = runs_plain() ? nullptr : model.data()->changes_for_runs(disabled_passes);
    try {
      start_runner();
    } catch (const BudgetError&) {
      throw;
    } catch (const Error&) {
      if (session->changed == nullptr) throw;
      // What is wrong, if anything, is told of the nodes as they are in the file.
      session->changed = nullptr;
      start_runner();
    }
    failed = false;
  }

  void start_runner() {
    runner.reset();
    budget->count_shared(-base_counted, MemoryCategory::kModelFile);
    base_counted = 0;
    session->ledger = {};
    budget->reset_peak();
    const Model::Data& data = *model.data();
    base_counted = data.file_bytes + structure_bytes();
    budget->count_shared(base_counted, MemoryCategory::kModelFile);
    session->ledger.enter(data.file_bytes, MemoryCategory::kModelFile);
    session->ledger.enter(structure_bytes(), MemoryCategory::kGraph);
    if (!options.shares_state_with) {
      session->ledger.enter(resources->held_bytes(), MemoryCategory::kVariables);
      resources->set_listener(
          [s = session.get()](int64_t bytes, MemoryCategory category) { s->ledger.enter(bytes, category); });
    }
    runner = std::make_unique<runtime::Runner>(*session, options.subgraph, false);
    runner->start(shapes, string_bytes);
  }

  /// Bytes of the model's structures that this interpreter uses.
  int64_t structure_bytes() const {
    return model.data()->graph_bytes + (session->changed == nullptr ? 0 : session->changed->bytes());
  }

  /// For observers that were added after the plan was made. Contents of inputs and variables stay.
  void run_plain() {
    if (!runner->allocated()) return make_plan();
    auto before = std::move(runner);
    const auto changed = std::exchange(session->changed, nullptr);
    try {
      runner = std::make_unique<runtime::Runner>(*session, options.subgraph, false);
      runner->start_like(*before);
    } catch (...) {
      session->changed = changed;
      runner = std::move(before);
      throw;
    }
    failed = true;  // until there is memory again
    runner->take_over(*before);
    before.reset();
    failed = false;
    name_profile();
  }

  plan::PlannedTotals totals() const {
    plan::PlannedTotals totals;
    const runtime::Ledger& ledger = session->ledger;
    const Model::Data& data = *model.data();
    const auto slot = [](MemoryCategory c) { return static_cast<size_t>(c); };
    totals.load[slot(MemoryCategory::kModelFile)] = data.file_bytes;
    totals.load[slot(MemoryCategory::kGraph)] = structure_bytes();
    const runtime::MemoryNeeds needs = runner->needs();
    const int64_t planned = ledger.total() + needs.total() + needs.shared_weights;
    const bool at_peak = ledger.peak() >= planned;
    for (int c = 0; c < kMemoryCategoryCount; ++c) {
      const auto category = static_cast<MemoryCategory>(c);
      totals.peak[slot(category)] = at_peak ? ledger.at_peak(category) : ledger.now(category);
    }
    if (!at_peak) {
      totals.peak[slot(MemoryCategory::kPackedWeights)] += needs.packed_weights + needs.shared_weights;
      totals.peak[slot(MemoryCategory::kArena)] += needs.arena;
      totals.peak[slot(MemoryCategory::kInputsOutputs)] += needs.inputs_outputs;
      totals.peak[slot(MemoryCategory::kVariables)] += needs.variables;
      totals.peak[slot(MemoryCategory::kGraph)] += needs.structures;
    }
    totals.prepare = totals.load;
    totals.prepare[slot(MemoryCategory::kGraph)] = totals.peak[slot(MemoryCategory::kGraph)];
    totals.prepare[slot(MemoryCategory::kPackedWeights)] = totals.peak[slot(MemoryCategory::kPackedWeights)];
    // The part of the arena above its highest tensor exists for scratch alone.
    const plan::Segment& first = runner->plan().segments()[0];
    const int64_t scratch = first.arena_bytes - first.tensor_bytes;
    totals.peak[slot(MemoryCategory::kScratch)] = scratch;
    totals.peak[slot(MemoryCategory::kArena)] -= scratch;
    return totals;
  }

  Plan plan() const {
    Plan result = plan::describe(runner->plan(), totals(), session->pool.size());
    for (const auto& [index, memory] : session->caller_memory) {
      result.tensors[static_cast<size_t>(index)].bound = true;
      result.bound_bytes += memory.bytes;
    }
    for (const MissingOp& op : missing) result.missing_ops.push_back(op.name);
    return result;
  }

  void allocate() {
    if (options.plan_only) require_runnable();
    if (failed) make_plan();
    if (runner->allocated() && !rebound) return;
    runner->check_caller_memory();
    if (!runner->allocated() || runner->lacks_memory()) {
      const runtime::MemoryNeeds needs = runner->needs();
      const int64_t available = budget->available();
      if (needs.total() > available) refuse(needs, available);
    }
    runner->allocated() ? runner->rebind() : runner->allocate();
    rebound = false;
    model.data()->require_intact();  // weights were packed
  }

  /// Gives back what the tensor was bound to: its owner may run code of the caller, after the lock.
  runtime::CallerMemory bind(int index, TensorMemory memory) {
    check_index(index);
    const ir::Value& target = value(index);
    const auto listed = [&](const std::vector<int>& list) {
      return std::find(list.begin(), list.end(), index) != list.end();
    };
    const bool input = listed(subgraph().inputs) && !target.constant;
    require(input || target.variable || listed(subgraph().outputs), kArgument,
            "tensor {} '{}' is no input, output or variable, so it cannot be bound", index, target.name);
    require(dtype_bits(target.dtype) > 0, ErrorCode::kUnsupported,
            "tensor {} '{}' of type {} cannot be bound: its size depends on its contents", index, target.name,
            dtype_name(target.dtype));
    require(memory.dtype == target.dtype, kArgument, "tensor {} '{}' has type {}, the memory bound to it {}", index,
            target.name, dtype_name(target.dtype), dtype_name(memory.dtype));
    require(storage_bytes(memory.dtype, memory.shape) == memory.bytes, kArgument,
            "the memory for tensor {} '{}' has {} bytes, its shape {} takes another number", index, target.name,
            memory.bytes, memory.shape.to_string());
    require(memory.data != nullptr || memory.bytes == 0, kArgument, "the memory for tensor {} '{}' is null", index,
            target.name);
    require(reinterpret_cast<uintptr_t>(memory.data) % static_cast<uintptr_t>(dtype_alignment(target.dtype)) == 0,
            kArgument, "the memory for tensor {} '{}' of type {} is not aligned to {} bytes", index, target.name,
            dtype_name(target.dtype), dtype_alignment(target.dtype));
    runtime::CallerMemory theirs{std::move(memory.owner), memory.data, memory.bytes, memory.shape, memory.read_only};
    runner->check_caller_memory(index, theirs);
    rebound = true;
    return std::exchange(session->caller_memory[index], std::move(theirs));
  }

  runtime::CallerMemory unbind(int index) {
    check_index(index);
    auto bound = session->caller_memory.extract(index);
    if (bound.empty()) return {};
    rebound = true;
    return std::move(bound.mapped());
  }

  [[noreturn]] void refuse(const runtime::MemoryNeeds& needs, int64_t available) const {
    const Plan planned = plan();
    std::string table;
    for (const CategoryBytes& c : planned.categories) {
      table += fmt::format("\n  {:<16} {:>14} bytes  {:>10}", memory_category_name(c.category), c.bytes,
                           format_bytes(c.bytes));
    }
    throw BudgetError(
        fmt::format(
            "this model needs {} ({} bytes), the budget is {}; {} more are needed now and {} are left. What needs "
            "it:{}\nRaise the budget, use a smaller input or fewer threads.",
            format_bytes(planned.peak_bytes), planned.peak_bytes, format_bytes(budget->limit()),
            format_bytes(needs.total()), format_bytes(available), table),
        planned.peak_bytes, budget->limit());
  }

  void invoke() {
    allocate();
    session->rounds_left = options.max_loop_rounds;
    try {
      runner->invoke();
    } catch (...) {
      failed = std::exchange(session->leave_memory, false);
      model.data()->require_intact();
      throw;
    }
    model.data()->require_intact(true);
  }

  void resize_input(int index, const Shape& shape, bool strict) {
    check_index(index);
    const auto it = input_places.find(index);
    require(it != input_places.end(), kArgument, "tensor {} '{}' is no input of the model", index, value(index).name);
    require(!value(index).constant && !value(index).variable, kArgument,
            "input {} '{}' is a {}, whose shape {} is fixed", index, value(index).name,
            value(index).constant ? "constant" : "variable", value(index).shape.to_string());
    if (strict) check_strict(index, shape);
    Shape& current = shapes[it->second];
    if (current == shape) return;
    current = shape;
    stale = true;
  }

  void check_strict(int index, const Shape& shape) const {
    const TensorInfo info = describe_tensor(subgraph(), index);
    require(static_cast<int>(info.shape_signature.size()) == shape.rank(), kArgument,
            "input '{}' has rank {}, the new shape {} has {}", info.name, info.shape_signature.size(),
            shape.to_string(), shape.rank());
    for (int i = 0; i < shape.rank(); ++i) {
      const int32_t fixed = info.shape_signature[static_cast<size_t>(i)];
      require(fixed == -1 || fixed == shape[i], kArgument,
              "dimension {} of input '{}' is fixed to {}, got {} (strict=True)", i, info.name, fixed, shape[i]);
    }
  }

  /// Makes the plan anew when shapes changed, or when making it failed before.
  void refresh() {
    model.data()->require_intact(true);
    if (stale || failed) {
      make_plan();
      stale = false;
    } else if (session->changed != nullptr && runs_plain()) {
      run_plain();
    }
  }

  void set_tensor(int index, std::span<const std::byte> bytes) {
    check_index(index);
    const plan::PlannedValue& planned = runner->plan().values()[static_cast<size_t>(index)];
    const bool input = planned.storage == Storage::kInput && planned.root == index;  // not a view of one
    require(input || planned.storage == Storage::kVariable, kArgument,
            "tensor {} '{}' is no input or variable, so it cannot be set", index, value(index).name);
    require(!input || !session->caller_memory.contains(index), kArgument,
            "tensor {} '{}' is bound to memory of the caller: write there, or unbind it first", index,
            value(index).name);
    if (value(index).dtype == DType::kString) {
      const std::string problem = string_tensor_problem(bytes, planned.shape.elements());
      require(problem.empty(), kArgument, "tensor {} '{}': {}", index, value(index).name, problem);
      if (planned.bytes != static_cast<int64_t>(bytes.size())) {
        runner->resize_string_input(index, static_cast<int64_t>(bytes.size()));
      }
    }
    require(static_cast<int64_t>(bytes.size()) == planned.bytes, kArgument,
            "tensor {} '{}' of shape {} takes {} bytes, got {}", index, value(index).name, planned.shape.to_string(),
            planned.bytes, bytes.size());
    copy_bytes(planned.address, bytes.data(), static_cast<int64_t>(bytes.size()));
  }

  TensorMemory tensor(int index) const {
    check_index(index);
    const plan::PlannedValue& planned = runner->plan().values()[static_cast<size_t>(index)];
    const ir::Value& source = value(index);
    TensorMemory memory;
    memory.dtype = source.dtype;
    memory.shape = planned.shape_known ? planned.shape : source.shape;
    memory.bytes = planned.bytes;
    if (const auto bound = session->caller_memory.find(index); bound != session->caller_memory.end()) {
      const runtime::CallerMemory& theirs = bound->second;
      return {theirs.owner, theirs.data, theirs.bytes, source.dtype, theirs.shape, theirs.read_only};
    }
    if (planned.storage == Storage::kConstant) {
      memory.owner = graph;
      memory.read_only = true;  // perhaps a mapping of the file
      memory.data = planned.address;
      return memory;
    }
    if (planned.storage == Storage::kFolded) {
      auto copy = std::make_shared<std::vector<std::byte>>(planned.address, planned.address + planned.bytes);
      memory.data = copy->data();
      memory.owner = std::move(copy);
      return memory;
    }
    auto owner = runner->memory_of(index);
    require(owner.has_value() || !runner->plan().merged_away(index), kArgument,
            "tensor {} '{}' does not exist, as nodes around it were merged; create the interpreter with "
            "preserve_all_tensors, or with disabled_passes, to read it",
            index, source.name);
    require(owner.has_value() && (planned.address != nullptr || planned.bytes == 0), kArgument,
            "tensor {} '{}' is an intermediate result whose memory is reused; create the interpreter with "
            "preserve_all_tensors to read it",
            index, source.name);
    memory.owner = std::move(*owner);
    memory.data = planned.address;
    if (const auto root = session->caller_memory.find(planned.root); root != session->caller_memory.end()) {
      memory.read_only = root->second.read_only;
    }
    return memory;
  }

  /// Nodes of the profile have the names of what runs.
  void name_profile() {
    auto& profile = session->profile;
    for (size_t s = 0; s < profile.size(); ++s) {
      const ir::Subgraph& source = graph->subgraphs[s];
      for (size_t n = 0; n < profile[s].size(); ++n) {
        const auto* changed = session->changed ? session->changed->subgraphs[s].find(static_cast<int>(n)) : nullptr;
        const ir::Node& node = changed != nullptr ? changed->node : source.nodes[n];
        NodeProfile& entry = profile[s][n];
        entry.subgraph = static_cast<int>(s);
        entry.node = static_cast<int>(n);
        entry.op = node.op;
        if (!node.outputs.empty()) entry.name = source.values[static_cast<size_t>(node.outputs[0])].name;
      }
    }
  }

  Model model;
  InterpreterOptions options;
  std::shared_ptr<const ir::Graph> graph;
  std::shared_ptr<Budget> budget;
  DeviceChoice device;
  passes::PassNames disabled_passes;
  ops::UserOpTable user_ops;
  std::vector<MissingOp> missing;
  std::shared_ptr<ops::Resources> resources;
  std::shared_ptr<runtime::Session> session;
  std::unique_ptr<runtime::Runner> runner;  // after session: it refers to it
  std::vector<Shape> shapes;
  std::unordered_map<int, size_t> input_places;  // of tensors among the inputs
  std::vector<int64_t> string_bytes;
  int64_t base_counted = 0;
  bool stale = false;    // shapes changed since the plan was made
  bool rebound = false;  // the caller's memory changed since the runner was told
  bool failed = false;   // the last plan did not succeed, or its memory was left to others
  mutable CancellableMutex mutex{"the interpreter"};
};

Interpreter::Interpreter(const Model& model, InterpreterOptions options) try
    : state_(std::make_unique<State>(model, std::move(options))) {
} catch (...) {
  rethrow_as_error();
}
Interpreter::~Interpreter() = default;
Interpreter::Interpreter(Interpreter&&) noexcept = default;
Interpreter& Interpreter::operator=(Interpreter&&) noexcept = default;

const Model& Interpreter::model() const { return state_->model; }
const InterpreterOptions& Interpreter::options() const { return state_->options; }

const DeviceChoice& Interpreter::device() const { return state_->device; }
const std::vector<int>& Interpreter::inputs() const { return state_->subgraph().inputs; }
const std::vector<int>& Interpreter::outputs() const { return state_->subgraph().outputs; }
int Interpreter::tensor_count() const { return static_cast<int>(state_->subgraph().values.size()); }

Plan Interpreter::plan() const try {
  const std::lock_guard lock(state_->mutex);
  state_->refresh();
  return state_->plan();
} catch (...) {
  rethrow_as_error();
}

void Interpreter::allocate() try {
  const std::lock_guard lock(state_->mutex);
  state_->refresh();
  state_->allocate();
} catch (...) {
  rethrow_as_error();
}

void Interpreter::resize_input(int index, const Shape& shape, bool strict) try {
  const std::lock_guard lock(state_->mutex);
  state_->resize_input(index, shape, strict);
} catch (...) {
  rethrow_as_error();
}

TensorInfo Interpreter::tensor_info(int index) const try {
  const std::lock_guard lock(state_->mutex);
  state_->check_index(index);
  TensorInfo info = describe_tensor(state_->subgraph(), index);
  if (const auto it = state_->input_places.find(index); it != state_->input_places.end()) {
    info.shape = state_->shapes[it->second];
  } else if (!state_->stale && !state_->failed) {
    const plan::PlannedValue& planned = state_->runner->plan().values()[static_cast<size_t>(index)];
    if (planned.shape_known) info.shape = planned.shape;
  }
  info.bytes = info.constant ? info.bytes : storage_bytes(info.dtype, info.shape).value_or(0);
  return info;
} catch (...) {
  rethrow_as_error();
}

void Interpreter::set_tensor(int index, std::span<const std::byte> bytes) try {
  const std::lock_guard lock(state_->mutex);
  state_->refresh();
  state_->allocate();
  state_->set_tensor(index, bytes);
} catch (...) {
  rethrow_as_error();
}

TensorMemory Interpreter::tensor(int index) const try {
  const std::lock_guard lock(state_->mutex);
  state_->refresh();
  state_->allocate();
  return state_->tensor(index);
} catch (...) {
  rethrow_as_error();
}

void Interpreter::bind(int index, TensorMemory memory) try {
  runtime::CallerMemory before;
  const std::lock_guard lock(state_->mutex);
  state_->refresh();
  before = state_->bind(index, std::move(memory));
} catch (...) {
  rethrow_as_error();
}

void Interpreter::unbind(int index) try {
  runtime::CallerMemory before;
  const std::lock_guard lock(state_->mutex);
  before = state_->unbind(index);
} catch (...) {
  rethrow_as_error();
}

void Interpreter::invoke(const RunCheck& check) try {
  std::optional<WorkLimit> limit;
  if (check) limit.emplace(check);
  const std::lock_guard lock(state_->mutex);
  state_->refresh();
  state_->invoke();
} catch (...) {
  rethrow_as_error();
}

void Interpreter::reset_variables() try {
  const std::lock_guard lock(state_->mutex);
  // A plan that could not be made has no variables, and the next one begins with their initial state.
  if (state_->runner != nullptr) state_->runner->reset_variables();
  state_->resources->reset();
} catch (...) {
  rethrow_as_error();
}

int64_t Interpreter::memory_bytes() const {
  const Budget& budget = *state_->budget;
  const int64_t shared = budget.used(MemoryCategory::kModelFile) + budget.used(MemoryCategory::kPackedWeights);
  return std::max<int64_t>(budget.used() - shared, 0);
}

int64_t Interpreter::counted_peak_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->budget->peak();
}

void Interpreter::add_observer(Observer* observer) try {
  const std::lock_guard lock(state_->mutex);
  state_->session->observers.push_back(observer);
} catch (...) {
  rethrow_as_error();
}

void Interpreter::remove_observer(Observer* observer) try {
  const std::lock_guard lock(state_->mutex);
  std::erase(state_->session->observers, observer);
} catch (...) {
  rethrow_as_error();
}

void Interpreter::enable_profile(bool enabled) try {
  const std::lock_guard lock(state_->mutex);
  auto& profile = state_->session->profile;
  profile.clear();
  if (!enabled) return;
  for (const ir::Subgraph& subgraph : state_->graph->subgraphs) profile.emplace_back(subgraph.nodes.size());
  state_->name_profile();
} catch (...) {
  rethrow_as_error();
}

std::vector<NodeProfile> Interpreter::profile() const try {
  const std::lock_guard lock(state_->mutex);
  std::vector<NodeProfile> result;
  for (const auto& entries : state_->session->profile) {
    std::copy_if(entries.begin(), entries.end(), std::back_inserter(result), [](const auto& e) { return e.runs > 0; });
  }
  return result;
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
