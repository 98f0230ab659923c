// SPDX-License-Identifier: Apache-2.0
// Runs samples and records them. A sample is recorded apart and added to the statistics when its run has succeeded.
#include <algorithm>
#include <map>
#include <utility>

#include "api/calibration_data.h"
#include "core/boundary.h"
#include "core/cancel.h"
#include "core/error.h"
#include "leadline/calibration.h"
#include "quantize/cell_states.h"
#include "quantize/statistics_bytes.h"
#include "runtime/loaded_model.h"

namespace leadline {
namespace {

using quantize::Observation;
using quantize::Recorder;

}  // namespace

struct Calibrator::State final : Observer {
  State(const Model& source, CalibrateOptions chosen)
      : model(source),
        options(std::move(chosen)),
        budget(options.budget ? options.budget : source.budget()),
        charge(budget, MemoryCategory::kStatistics),
        graph(*source.loaded()->graph()),
        statistics(quantize::empty_statistics(graph, options.histograms, options.gram_matrices)),
        cell_states(graph) {
    for (const ir::Subgraph& subgraph : graph.subgraphs) {
      slots.emplace_back(subgraph.values.size(), -1);
      recorded_by.emplace_back(subgraph.values.size(), -1);
    }
    for (size_t i = 0; i < statistics.tensors.size(); ++i) {
      const quantize::WatchedTensor& tensor = statistics.tensors[i];
      slot(tensor.subgraph, tensor.tensor) = static_cast<int>(i);
    }
    bytes = statistics.bytes() + Recorder::kBytes + quantize::CellStates::bytes(graph);
    if (options.gram_matrices) bytes += quantize::GramRecorder::bytes(statistics.grams);
    for (const auto& numbers : slots) bytes += 2 * static_cast<int64_t>(numbers.size() * sizeof(int));
    const int64_t per_tensor = sizeof(Observation) + (options.histograms ? quantize::Histogram::kBytes : 0);
    bytes += static_cast<int64_t>(statistics.tensors.size()) * (per_tensor + static_cast<int64_t>(sizeof(int)) + 1);
  }

  int& slot(int subgraph, int tensor) { return slots[static_cast<size_t>(subgraph)][static_cast<size_t>(tensor)]; }

  Interpreter& interpreter(int subgraph) {
    auto& entry = interpreters[subgraph];
    if (entry == nullptr) {
      InterpreterOptions made;
      made.num_threads = options.num_threads;
      made.budget = budget;
      made.subgraph = subgraph;
      made.shares_state_with = owner;
      made.disabled_passes = {"all"};  // for observers
      made.keep_plans = false;         // what is planned is for one size
      try {
        entry = std::make_unique<Interpreter>(model, made);
        entry->add_observer(this);
      } catch (...) {
        interpreters.erase(subgraph);
        throw;
      }
      if (owner == nullptr) owner = entry.get();
    }
    return *entry;
  }

  void take_memory() {
    if (recorder.has_value()) return;
    charge.resize(bytes);
    sample.resize(statistics.tensors.size());
    in_sample.resize(statistics.tensors.size());
    touched.reserve(statistics.tensors.size());
    if (options.gram_matrices) grams.emplace(graph, statistics.grams);
    recorder.emplace();
  }

  void add_sample(int subgraph) {
    Interpreter& runs = interpreter(subgraph);
    take_memory();
    main_subgraph = subgraph;
    recording = true;
    try {
      for (const int index : runs.inputs()) {
        const TensorMemory memory = runs.tensor(index);
        record(subgraph, index, memory.dtype, {memory.data, static_cast<size_t>(memory.bytes)});
      }
      runs.invoke();
      record_folded(runs, subgraph);
      PacedCheck check;
      for (const int i : touched) {
        check.count(options.histograms ? quantize::Histogram::kBytes : 64);
        statistics.tensors[static_cast<size_t>(i)].statistics.make_room(sample[static_cast<size_t>(i)], 1);
      }
    } catch (...) {
      recording = false;
      forget_sample();
      if (!options.keep_state) reset_state();
      throw;
    }
    recording = false;
    for (const int i : touched) {
      if (!first_not_finite && sample[static_cast<size_t>(i)].not_finite > 0) {
        const quantize::WatchedTensor& tensor = statistics.tensors[static_cast<size_t>(i)];
        first_not_finite = NotFiniteValue{statistics.samples, tensor.subgraph, tensor.tensor};
      }
      statistics.tensors[static_cast<size_t>(i)].statistics.add_sample(sample[static_cast<size_t>(i)]);
    }
    if (grams) grams->keep_sample();
    ++statistics.samples;
    forget_sample();
    if (!options.keep_state) reset_state();
  }

  /// Results that follow from the input shapes alone are computed when the run is planned, and no node shows them.
  /// Those of constants alone do not depend on samples.
  void record_folded(const Interpreter& runs, int subgraph) {
    const ir::Subgraph& source = graph.subgraphs[static_cast<size_t>(subgraph)];
    const auto is_given = [&](int v) { return v == ir::kAbsent || source.value(v).constant; };
    for (const ir::Node& node : source.nodes) {
      if (std::all_of(node.inputs.begin(), node.inputs.end(), is_given)) continue;
      for (const int v : node.outputs) {
        const int i = v == ir::kAbsent ? -1 : slot(subgraph, v);
        if (i < 0 || in_sample[static_cast<size_t>(i)]) continue;
        const TensorMemory memory = runs.tensor(v);
        record(subgraph, v, memory.dtype, {memory.data, static_cast<size_t>(memory.bytes)});
      }
    }
  }

  void forget_sample() {
    if (grams) grams->forget_sample();
    for (const int i : touched) {
      sample[static_cast<size_t>(i)].clear();
      in_sample[static_cast<size_t>(i)] = 0;
    }
    touched.clear();
    for (const auto& [subgraph, tensor] : recorded) {
      recorded_by[static_cast<size_t>(subgraph)][static_cast<size_t>(tensor)] = -1;
    }
    recorded.clear();
  }

  void reset_state() {
    for (auto& [subgraph, entry] : interpreters) entry->reset_variables();
  }

  void record(int subgraph, int tensor, DType dtype, std::span<const std::byte> data) {
    const int i = slot(subgraph, tensor);
    if (i < 0) return;
    if (!in_sample[static_cast<size_t>(i)]) touched.push_back(i);
    in_sample[static_cast<size_t>(i)] = 1;
    recorder->record(dtype, data, options.histograms, sample[static_cast<size_t>(i)]);
  }

  /// Inputs of subgraphs that other nodes call are seen where the first node reads them, and only there.
  void before_node(const ObservedNode& node) override {
    if (!recording) return;
    cell_states.replay(node, [&](int tensor, std::span<const float> values) {
      record(node.subgraph, tensor, DType::kFloat32, std::as_bytes(values));
    });
    if (grams) grams->record(node);
    if (node.subgraph == main_subgraph) return;
    const std::vector<int>& inputs = graph.subgraphs[static_cast<size_t>(node.subgraph)].inputs;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const ObservedTensor& tensor = node.inputs[k];
      if (tensor.index < 0 || std::find(inputs.begin(), inputs.end(), tensor.index) == inputs.end()) continue;
      int& reader = recorded_by[static_cast<size_t>(node.subgraph)][static_cast<size_t>(tensor.index)];
      if (reader == -1) {
        recorded.emplace_back(node.subgraph, tensor.index);
        reader = node.node;
      }
      if (reader == node.node && !is_repeated(node.inputs, k)) {
        record(node.subgraph, tensor.index, tensor.dtype, tensor.data);
      }
    }
  }

  /// Outputs, and the variables that the node may have changed.
  void after_node(const ObservedNode& node) override {
    if (!recording) return;
    for (const ObservedTensor& tensor : node.outputs) {
      if (tensor.index >= 0) record(node.subgraph, tensor.index, tensor.dtype, tensor.data);
    }
    const ir::Subgraph& subgraph = graph.subgraphs[static_cast<size_t>(node.subgraph)];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const ObservedTensor& tensor = node.inputs[k];
      if (tensor.index < 0 || !subgraph.value(tensor.index).variable) continue;
      if (!is_repeated(node.inputs, k)) record(node.subgraph, tensor.index, tensor.dtype, tensor.data);
    }
  }

  static bool is_repeated(std::span<const ObservedTensor> inputs, size_t k) {
    return std::any_of(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(k),
                       [&](const ObservedTensor& other) { return other.index == inputs[k].index; });
  }

  Model model;
  CalibrateOptions options;
  std::shared_ptr<Budget> budget;
  Charge charge;
  const ir::Graph& graph;  // of model
  quantize::ModelStatistics statistics;
  quantize::CellStates cell_states;
  std::vector<std::vector<int>> slots;  // number in statistics.tensors, by subgraph and tensor; -1: not watched
  // Node that read an input of a called subgraph first in this sample, and the inputs that have one.
  std::vector<std::vector<int>> recorded_by;
  std::vector<std::pair<int, int>> recorded;
  std::vector<Observation> sample;  // the running sample, by slot
  std::vector<char> in_sample;      // whether the sample reached the tensor, by slot
  std::vector<int> touched;         // and the slots where it did, in the order of the run
  std::optional<NotFiniteValue> first_not_finite;
  std::optional<Recorder> recorder;
  std::optional<quantize::GramRecorder> grams;
  int64_t bytes = 0;
  int main_subgraph = 0;
  bool recording = false;
  const Interpreter* owner = nullptr;  // of the state that all interpreters share
  std::map<int, std::unique_ptr<Interpreter>> interpreters;
};

Calibrator::Calibrator(const Model& model, CalibrateOptions options) try
    : state_(std::make_unique<State>(model, std::move(options))) {
} catch (...) {
  rethrow_as_error();
}
Calibrator::~Calibrator() = default;
Calibrator::Calibrator(Calibrator&&) noexcept = default;
Calibrator& Calibrator::operator=(Calibrator&&) noexcept = default;

const Model& Calibrator::model() const { return state_->model; }
Interpreter& Calibrator::interpreter(int subgraph) try { return state_->interpreter(subgraph); } catch (...) {
  rethrow_as_error();
}
void Calibrator::add_sample(int subgraph) try { state_->add_sample(subgraph); } catch (...) {
  rethrow_as_error();
}
std::optional<NotFiniteValue> Calibrator::first_not_finite() const { return state_->first_not_finite; }
int64_t Calibrator::statistics_bytes() const { return state_->bytes; }
int64_t Calibrator::calibration_bytes() const { return state_->statistics.bytes(); }

Calibration Calibrator::calibration() const try {
  return Calibration(Calibration::Data::copy_of(state_->statistics, state_->budget));
} catch (...) {
  rethrow_as_error();
}

void Calibrator::clear() try {
  state_->statistics.clear();
  state_->first_not_finite.reset();
  state_->reset_state();
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
