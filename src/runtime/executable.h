// SPDX-License-Identifier: Apache-2.0
// A model ready to run: plans, plans again when shapes change, admits what fits the budget, binds memory, runs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/cancellable_mutex.h"
#include "leadline/interpreter_options.h"
#include "leadline/model_info.h"
#include "leadline/observer.h"
#include "leadline/plan.h"
#include "leadline/progress.h"
#include "leadline/tensor_memory.h"
#include "runtime/kept_plans.h"
#include "runtime/loaded_model.h"
#include "runtime/runner.h"

namespace leadline::runtime {

/// What leadline::Interpreter is a handle of; its header has the contracts. Calls from several threads take turns.
class Executable {
 public:
  /// Plans, unless inputs have unknown sizes: then that waits until the plan is needed. Named variables are shared
  /// with `shares_state_with`, which must be of the same model; null: not shared. The device of `options` is not looked
  /// at: this runs on the CPU.
  Executable(std::shared_ptr<const LoadedModel> model, InterpreterOptions options,
             const Executable* shares_state_with = nullptr);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  const std::shared_ptr<const LoadedModel>& model() const { return model_; }
  const InterpreterOptions& options() const { return options_; }
  const ir::Subgraph& subgraph() const { return graph_->subgraphs[static_cast<size_t>(options_.subgraph)]; }

  Plan plan();
  Plan plan_for(const std::map<int, Shape>& shapes) const;
  /// Inputs whose sizes the file leaves open, partly or all, and that were not set.
  std::vector<int> unsized_inputs() const;
  void allocate();
  void resize_input(int index, const Shape& shape, bool strict);
  int input_index(const TensorKey& key) const;
  int output_index(const TensorKey& key) const;
  TensorInfo tensor_info(int index) const;
  /// The memory of an input (to be written) or output whose elements have this type; nothing: any.
  TensorMemory input(const TensorKey& key, std::optional<DType> type);
  TensorMemory output(const TensorKey& key, std::optional<DType> type);
  void set_tensor(int index, std::span<const std::byte> bytes);
  TensorMemory tensor(int index);
  void bind(int index, TensorMemory memory);
  void unbind(int index);
  void invoke(const RunCheck& check);
  void reset_variables();
  int64_t counted_peak_bytes() const;
  int64_t memory_bytes() const;
  void add_observer(Observer* observer);
  void remove_observer(Observer* observer);
  void enable_profile(bool enabled);
  std::vector<NodeProfile> profile() const;

 private:
  /// How far the executable is on its way to a run.
  enum class Stage {
    kUnplanned,  // no plan, or one that is of no use: shapes changed, making it failed, its memory was left to others
    kPlanned,    // a plan for the current shapes, no memory yet
    kRebound,    // memory too, but the caller bound other memory since
    kReady,      // all tensors whose shapes are known have their memory
  };

  const std::shared_ptr<Budget>& parent_budget() const;
  bool owns_resources() const { return environment_->settings.owns_resources; }
  const plan::PlannedValue& planned(int index) const { return runner_->plan().value(index); }
  const ir::Value& value(int index) const { return subgraph().value(index); }
  void check_index(int index) const;
  int find_tensor(const TensorKey& key, bool input) const;
  std::vector<std::pair<std::string, int>> tensor_names(bool input) const;
  void check_type(int index, const char* what, DType has, std::optional<DType> wanted) const;
  void require_runnable() const;
  bool runs_plain() const;
  int64_t structure_bytes() const;

  std::vector<int> find_unsized() const;
  [[noreturn]] void refuse_unsized(const std::vector<int>& inputs, const Error& problem) const;

  // Everything below is called with the mutex held. Each brings the executable to a stage, or throws.
  void make_plan();     // kPlanned
  void plan_inputs();   // what make_plan() does for shapes that it has no plan of
  void start_runner();  // what make_plan() does for the nodes in changed_
  void run_plain();     // the same stage, for a graph without changes
  void refresh();       // at least kPlanned
  void prepare();       // kReady

  void begin_counts();
  void drop_spares();
  void admit();
  Plan describe_plan() const;
  void check_strict(int index, const Shape& shape) const;
  void check_bindable(int index, const TensorMemory& memory) const;
  void note_rebound();
  std::optional<TensorMemory> find_memory(int index);
  void require_repeatable(int index) const;
  TensorMemory recompute(int index);
  std::optional<TensorMemory> run_again(int index, InterpreterOptions options);

  const std::shared_ptr<const LoadedModel> model_;
  const InterpreterOptions options_;
  const std::shared_ptr<const ir::Graph> graph_;
  const std::shared_ptr<Budget> budget_;
  passes::PassNames disabled_passes_;
  std::vector<MissingOp> missing_;
  std::unique_ptr<Environment> environment_;
  /// What passes made of some nodes; null: the graph runs as it is.
  std::shared_ptr<const ir::ChangedNodes> changed_;
  CallerMemories caller_memory_;
  std::unique_ptr<Runner> runner_;         // after what it refers to
  std::unique_ptr<KeptPlans> kept_plans_;  // likewise
  /// Of the last plan that had memory, so that the next one finds them packed; until it has its own.
  std::vector<std::shared_ptr<const Buffer>> spare_weights_;
  std::vector<Shape> shapes_;                     // of the inputs, as the caller set them
  std::vector<bool> sized_;                       // of the inputs: the caller said the shape
  std::unordered_map<int, size_t> input_places_;  // of tensors among the inputs
  int64_t base_counted_ = 0;
  Stage stage_ = Stage::kUnplanned;
  mutable CancellableMutex mutex_{"the interpreter"};
};

}  // namespace leadline::runtime
