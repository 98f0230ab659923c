// SPDX-License-Identifier: Apache-2.0
// One sample through the model, and through the reference model where there is one.
#include <algorithm>
#include <set>
#include <utility>

#include "core/boundary.h"
#include "core/buffer.h"
#include "core/error.h"
#include "jobs/evaluation_scores.h"
#include "jobs/evaluator_memory.h"
#include "jobs/sample_shapes.h"
#include "leadline/evaluate.h"

namespace leadline {
namespace {

void check(const EvaluateOptions& options) {
  require(options.top_k >= 1, kBadArgument, "top_k is {}, expected 1 or more", options.top_k);
  require(options.max_samples >= 0, kBadArgument, "max_samples is {}, expected 0 (all) or more", options.max_samples);
  require(options.metric != Metric::kAgreement || options.reference, kBadArgument,
          "the metric agreement needs a reference model");
  require((options.metric == Metric::kFunction) == static_cast<bool>(options.function), kBadArgument,
          "a function is needed for the metric function, and for no other");
}

Interpreter make_interpreter(const Model& model, const std::shared_ptr<Budget>& budget) {
  InterpreterOptions options;
  options.budget = budget;
  return Interpreter(model, std::move(options));
}

/// Outputs of a run as they lie in memory.
struct Outputs {
  explicit Outputs(const Interpreter& interpreter) {
    for (const int index : interpreter.outputs()) {
      owners.push_back(interpreter.tensor(index));
      const TensorMemory& memory = owners.back();
      tensors.push_back({interpreter.tensor_info(index).name,
                         memory.dtype,
                         memory.shape,
                         {memory.data, static_cast<size_t>(memory.bytes)},
                         {}});
    }
  }
  std::vector<TensorMemory> owners;
  std::vector<SampleTensor> tensors;
};

}  // namespace

struct Evaluator::State {
  State(const Model& model, EvaluateOptions chosen)
      : options((check(chosen), std::move(chosen))),
        budget(options.budget ? options.budget : model.budget()),
        interpreter(make_interpreter(model, budget)) {
    if (options.reference) reference.emplace(make_interpreter(*options.reference, budget));
    for (const Interpreter* runs : {&interpreter, reference ? &*reference : nullptr}) {
      require(runs == nullptr || (options.output >= 0 && std::cmp_less(options.output, runs->outputs().size())),
              kBadArgument, "output {} is to be judged, the model has {} outputs", options.output,
              runs == nullptr ? 0 : runs->outputs().size());
    }
  }

  TensorInfo info(const Interpreter& of) const {
    return of.tensor_info(of.outputs()[static_cast<size_t>(options.output)]);
  }

  /// Targets are kept: the source may read the next sample before this one has run.
  void keep_targets(const Sample& sample) {
    int64_t bytes = 0;
    for (const SampleTensor& target : sample.targets) bytes += align_up(static_cast<int64_t>(target.data.size()));
    if (target_memory.bytes() < bytes) {
      target_memory = {};
      target_memory = Buffer(budget, bytes, MemoryCategory::kInputsOutputs);
    }
    targets = sample.targets;
    int64_t at = 0;
    for (SampleTensor& target : targets) {
      std::byte* place = target_memory.data() + at;
      std::copy(target.data.begin(), target.data.end(), place);
      at += align_up(static_cast<int64_t>(target.data.size()));
      target.data = {place, target.data.size()};
    }
  }

  SampleScore score(int64_t index) const {
    const Outputs outputs(interpreter);
    const std::optional<Outputs> expected = reference ? std::optional<Outputs>(*reference) : std::nullopt;
    if (options.metric == Metric::kFunction) {
      SampleScore result;
      result.value = options.function(
          {index, outputs.tensors, targets,
           expected ? std::span<const SampleTensor>(expected->tensors) : std::span<const SampleTensor>()});
      return result;
    }
    const auto position = static_cast<size_t>(options.output);
    const SampleTensor& output = outputs.tensors[position];
    const TensorInfo about = info(interpreter);
    if (options.metric == Metric::kAgreement) {
      return jobs::agreement(output, about, expected->tensors[position], info(*reference));
    }
    if (options.metric == Metric::kAccuracy) {
      require(!targets.empty(), kBadArgument, "the sample has no label, which the metric accuracy needs");
      return jobs::accuracy(output, about, targets[0], options.top_k);
    }
    const jobs::RealValues values(output, &about);
    if (!targets.empty()) {
      const SampleTensor& target = targets[std::min(position, targets.size() - 1)];
      return jobs::distance(options.metric, values, jobs::RealValues(target, nullptr));
    }
    require(expected.has_value(), kBadArgument,
            "the sample has no expected output, and there is no reference model: the "
            "metric {} needs one of them",
            metric_name(options.metric));
    const TensorInfo expected_info = info(*reference);
    return jobs::distance(options.metric, values, jobs::RealValues(expected->tensors[position], &expected_info));
  }

  EvaluateOptions options;
  std::shared_ptr<Budget> budget;
  Interpreter interpreter;
  std::optional<Interpreter> reference;
  std::vector<SampleTensor> targets;
  Buffer target_memory;
};

Evaluator::Evaluator(const Model& model, EvaluateOptions options) try
    : state_(std::make_unique<State>(model, std::move(options))) {
} catch (...) {
  rethrow_as_error();
}
Evaluator::~Evaluator() = default;
Evaluator::Evaluator(Evaluator&&) noexcept = default;
Evaluator& Evaluator::operator=(Evaluator&&) noexcept = default;

void Evaluator::set_sample(const Sample& sample) try {
  require(sample.subgraph == state_->interpreter.options().subgraph, kBadArgument,
          "the sample is for another signature than the main one");
  state_->keep_targets(sample);
  set_inputs(state_->interpreter, sample);
  if (state_->reference) set_inputs(*state_->reference, sample);
} catch (...) {
  rethrow_as_error();
}

SampleScore Evaluator::run(int64_t index, const RunCheck& check) try {
  // Samples are independent: each begins with the initial state.
  state_->interpreter.reset_variables();
  state_->interpreter.invoke(check);
  if (state_->reference) {
    state_->reference->reset_variables();
    state_->reference->invoke(check);
  }
  return state_->score(index);
} catch (...) {
  rethrow_as_error();
}

namespace jobs {

namespace {

/// Packed weights that the interpreters of a model share: all but those of weights computed while planning, which may
/// depend on the shapes of an interpreter's inputs.
int64_t shared_packed_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const CategoryBytes& c : plan.categories) bytes += c.category == MemoryCategory::kPackedWeights ? c.bytes : 0;
  std::set<int> folded;
  for (const PlannedTensor& tensor : plan.tensors) {
    if (tensor.storage == Storage::kFolded) folded.insert(tensor.index);
  }
  for (const PlannedStep& step : plan.steps) {
    const bool own = std::any_of(step.inputs.begin(), step.inputs.end(), [&](int v) { return folded.contains(v); });
    if (own) bytes -= step.packed_bytes;
  }
  return bytes;
}

}  // namespace

EvaluatorMemory evaluator_memory(const Model& model, const EvaluateOptions& options, const std::vector<Shape>& shapes) {
  EvaluatorMemory memory;
  const auto add = [&](const Model& runs) {
    InterpreterOptions plain;
    plain.budget = options.budget ? options.budget : model.budget();
    Interpreter interpreter(runs, std::move(plain));
    resize_inputs(interpreter, shapes);
    const std::optional<Plan> plan = plan_if_sized(interpreter);
    memory.complete = memory.complete && plan && plan->complete;
    memory.shared = memory.shared + PhaseMemory::of(runs);
    if (!plan) return;
    PhaseMemory own = PhaseMemory::of(plan->categories) - PhaseMemory::of(runs);
    const int64_t packed = shared_packed_bytes(*plan);
    memory.shared.add(MemoryCategory::kPackedWeights, packed);
    own.add(MemoryCategory::kPackedWeights, -packed);
    memory.own = memory.own + own;
  };
  add(model);
  if (options.reference) add(*options.reference);
  // The targets: numbers of at most 8 bytes, as many as the output that is judged has; a label at least.
  const SubgraphInfo graph = model.subgraph(0);
  int64_t elements = 8;
  if (std::cmp_less(options.output, graph.outputs.size())) {
    const int tensor = graph.outputs[static_cast<size_t>(options.output)];
    elements = std::max(elements, graph.tensors[static_cast<size_t>(tensor)].shape.elements());
  }
  memory.own.add(MemoryCategory::kInputsOutputs, align_up(8 * elements));
  return memory;
}

}  // namespace jobs
}  // namespace leadline
