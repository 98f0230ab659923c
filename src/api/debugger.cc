// SPDX-License-Identifier: Apache-2.0
#include "leadline/debugger.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "api/boundary.h"
#include "core/error.h"
#include "debug/comparison.h"
#include "debug/comparison_graph.h"
#include "debug/result.h"
#include "model/writer.h"
#include "ops/op_ids.h"
#include "runtime/loaded_model.h"

namespace leadline {
namespace {

InterpreterOptions interpreter_options(const DebuggerOptions& options, const std::shared_ptr<Budget>& budget) {
  InterpreterOptions result;
  result.num_threads = options.num_threads;
  result.budget = budget;
  result.subgraph = options.subgraph;
  result.disabled_passes = {"all"};  // for observers
  return result;
}

}  // namespace

struct QuantizationDebugger::State {
  State(const Model& float_model, const Model& quantized_model, DebuggerOptions chosen)
      : reference(float_model),
        quantized(quantized_model),
        options(std::move(chosen)),
        budget((options.budget ? options.budget : float_model.budget())->child()),
        graph(debug::make_comparison(reference.loaded()->graph(), quantized.loaded()->graph(), options.subgraph,
                                     options.own_error)),
        comparison(graph),
        model(runtime::LoadedModel::from_graph(graph.graph, budget)),
        interpreter(model, interpreter_options(options, budget)) {
    interpreter.add_observer(&comparison);
  }

  ~State() { budget->release(charged, MemoryCategory::kStatistics); }

  int64_t statistics_bytes() const {
    int64_t bytes = 0;
    for (const debug::Probe& probe : graph.probes) {
      const ir::Subgraph& subgraph = graph.graph->subgraphs[static_cast<size_t>(probe.subgraph)];
      const Shape shape = probe.subgraph == options.subgraph ? interpreter.tensor_info(probe.tensor).shape
                                                             : subgraph.values[static_cast<size_t>(probe.tensor)].shape;
      bytes += debug::Comparison::bytes_for(shape);
    }
    return bytes;
  }

  /// Statistics are charged before they are filled.
  void charge_statistics() {
    const int64_t needed = statistics_bytes();
    if (needed > charged) {
      budget->charge(needed - charged, MemoryCategory::kStatistics);
      charged = needed;
    }
  }

  DebugPlan plan() const {
    DebugPlan result;
    std::map<MemoryCategory, int64_t> bytes;
    for (const CategoryBytes& c : interpreter.plan().categories) bytes[c.category] += c.bytes;
    for (const Model* part : {&reference, &quantized}) {
      bytes[MemoryCategory::kModelFile] += part->loaded()->file_bytes();
      bytes[MemoryCategory::kGraph] += part->loaded()->graph_bytes();
    }
    result.statistics_bytes = statistics_bytes();
    bytes[MemoryCategory::kStatistics] += result.statistics_bytes;
    for (const auto& [category, count] : bytes) {
      if (count > 0) result.categories.push_back({category, count});
      result.peak_bytes += count;
    }
    for (const debug::Probe& probe : graph.probes) result.layers += probe.kind == debug::Probe::Kind::kLayer ? 1 : 0;
    return result;
  }

  Model reference;
  Model quantized;
  DebuggerOptions options;
  std::shared_ptr<Budget> budget;
  debug::ComparisonGraph graph;
  debug::Comparison comparison;
  Model model;
  Interpreter interpreter;
  int64_t samples = 0;
  int64_t charged = 0;
};

QuantizationDebugger::QuantizationDebugger(const Model& float_model, const Model& quantized_model,
                                           DebuggerOptions options) try
    : state_(std::make_unique<State>(float_model, quantized_model, std::move(options))) {
} catch (...) {
  rethrow_as_error();
}
QuantizationDebugger::~QuantizationDebugger() = default;
QuantizationDebugger::QuantizationDebugger(QuantizationDebugger&&) noexcept = default;
QuantizationDebugger& QuantizationDebugger::operator=(QuantizationDebugger&&) noexcept = default;

Interpreter& QuantizationDebugger::interpreter() try { return state_->interpreter; } catch (...) {
  rethrow_as_error();
}

void QuantizationDebugger::add_sample() try {
  state_->charge_statistics();
  state_->interpreter.invoke();
  ++state_->samples;
} catch (...) {
  rethrow_as_error();
}

DebugPlan QuantizationDebugger::plan() const try { return state_->plan(); } catch (...) {
  rethrow_as_error();
}

DebugResult QuantizationDebugger::result() const try {
  const State& s = *state_;
  DebugResult result = debug::make_result(*s.reference.loaded()->graph(), *s.quantized.loaded()->graph(), s.graph,
                                          s.comparison, {s.options.worst_channels, s.options.histograms});
  s.model.loaded()->require_intact();  // weights were compared
  result.samples = s.samples;
  result.float_bytes = s.reference.file_bytes();
  result.quantized_bytes = s.quantized.file_bytes();
  result.plan = s.plan();
  return result;
} catch (...) {
  rethrow_as_error();
}

void QuantizationDebugger::clear() try {
  state_->comparison.clear();
  state_->samples = 0;
} catch (...) {
  rethrow_as_error();
}

std::vector<std::byte> make_debug_model(const Model& float_model, const Model& quantized_model) try {
  auto file = model::write(debug::make_debug_graph(*float_model.loaded()->graph(), *quantized_model.loaded()->graph()));
  float_model.loaded()->require_intact();
  quantized_model.loaded()->require_intact();
  return file;
} catch (...) {
  rethrow_as_error();
}

Model debug_model_of(const Model& float_model, const Model& quantized_model) try {
  const auto& reference = float_model.loaded()->graph();
  const auto& quantized = quantized_model.loaded()->graph();
  auto graph = std::make_shared<ir::Graph>(debug::make_debug_graph(*reference, *quantized));
  graph->bytes = debug::join_bytes(reference, quantized);
  return Model(runtime::LoadedModel::from_graph(std::move(graph), float_model.budget()));
} catch (...) {
  rethrow_as_error();
}

namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// What the model without debugging calls a tensor: converters add digits to names that occur twice.
std::string original_name(const std::string& name, const std::string& twin, const std::set<std::string_view>& names) {
  if (twin == name + "/float") return name;
  if (name.starts_with(twin) && is_number(std::string_view(name).substr(twin.size()))) return twin;
  for (size_t size = name.size(); size > 1 && is_number(std::string_view(name).substr(size - 1, 1)); --size) {
    const std::string_view base = std::string_view(name).substr(0, size - 1);
    if (names.contains(base)) return std::string(base);
  }
  return name;
}

/// Sums f(d) in lanes of their own: one addition need not wait for the one before.
template <typename F>
double sum_of(std::span<const float> values, const F& f) {
  constexpr size_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  const size_t whole = values.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) lanes[k] += f(static_cast<double>(values[i + k]));
  }
  for (size_t i = whole; i < values.size(); ++i) lanes[i - whole] += f(static_cast<double>(values[i]));
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

/// What a sample says about one layer; NaN in, NaN out.
void add_differences(VerifiedStatistics& sums, std::span<const float> differences) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  float largest = 0.0F;
  int64_t not_finite = 0;
  for (const float d : differences) {
    const float size = std::fabs(d);
    largest = std::max(largest, size);  // NaN is counted below
    not_finite += size <= kLargest ? 0 : 1;
  }
  const auto n = static_cast<double>(differences.size());
  const double mean = sum_of(differences, [](double d) { return d; }) / n;
  const double variance = sum_of(differences, [mean](double d) { return (d - mean) * (d - mean); }) / n;
  ++sums.samples;
  sums.not_finite += not_finite;
  sums.num_elements += n;
  sums.stddev += std::sqrt(variance);
  sums.mean_error += mean;
  sums.max_abs_error += not_finite > 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(largest);
  sums.mean_squared_error += variance + mean * mean;
}

}  // namespace

DebugModelObserver::DebugModelObserver(const Model& debug_model) try {
  const ir::Graph& graph = *debug_model.loaded()->graph();
  for (size_t s = 0; s < graph.subgraphs.size(); ++s) {
    const ir::Subgraph& subgraph = graph.subgraphs[s];
    std::set<std::string_view> names;
    std::map<int, const ir::Node*> producers;
    for (const ir::Value& value : subgraph.values) names.insert(value.name);
    for (const ir::Node& node : subgraph.nodes) {
      for (int v : node.outputs) producers[v] = &node;
    }
    for (size_t n = 0; n < subgraph.nodes.size(); ++n) {
      const ir::Node& node = subgraph.nodes[n];
      if (node.op != op::kNumericVerify || node.inputs.size() != 2) continue;
      const auto value = [&](int v) -> const ir::Value& { return subgraph.values[static_cast<size_t>(v)]; };
      VerifiedLayer layer;
      layer.subgraph = static_cast<int>(s);
      layer.node = static_cast<int>(n);
      layer.output_name = value(node.outputs[0]).name;
      layer.output_tensor = node.outputs[0];
      layer.tensor = node.inputs[0];
      layer.reference = node.inputs[1];
      layer.tensor_name = original_name(value(layer.tensor).name, value(layer.reference).name, names);
      if (const auto maker = producers.find(layer.tensor); maker != producers.end())
        layer.op = maker->second->op.name();
      layer.scales = value(layer.tensor).quantization.scale;
      layer.zero_points = value(layer.tensor).quantization.zero_point;
      layers_.push_back(std::move(layer));
    }
  }
  require(
      !layers_.empty(), ErrorCode::kInvalidArgument,
      "no NumericVerify in the model: it is not in debug mode. Give the debugger the converter instead, which makes a "
      "debug model, or compare the float model with this one (leadline.debug)");
  clear();
} catch (...) {
  rethrow_as_error();
}

void DebugModelObserver::clear() try { sums_.assign(layers_.size(), {}); } catch (...) {
  rethrow_as_error();
}

void DebugModelObserver::after_node(const ObservedNode& node) {
  const auto found = std::lower_bound(
      layers_.begin(), layers_.end(), std::pair(node.subgraph, node.node),
      [](const VerifiedLayer& layer, const auto& key) { return std::pair(layer.subgraph, layer.node) < key; });
  if (found == layers_.end() || found->subgraph != node.subgraph || found->node != node.node) return;
  const auto i = static_cast<size_t>(found - layers_.begin());
  const ObservedTensor& difference = node.outputs[0];
  add_differences(sums_[i],
                  {reinterpret_cast<const float*>(difference.data.data()), difference.data.size() / sizeof(float)});
  if (callback_) callback_(i, difference, node.inputs[0], node.inputs[1]);
}

std::vector<VerifiedStatistics> DebugModelObserver::statistics() const try {
  std::vector<VerifiedStatistics> result = sums_;
  for (VerifiedStatistics& s : result) {
    const auto n = static_cast<double>(s.samples);
    s.num_elements /= n;
    s.stddev /= n;
    s.mean_error /= n;
    s.max_abs_error /= n;
    s.mean_squared_error /= n;
  }
  return result;
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
