// SPDX-License-Identifier: Apache-2.0
#include "leadline/debug_model.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/boundary.h"
#include "core/error.h"
#include "debug/comparison_graph.h"
#include "debug/numeric_verify.h"
#include "model/writer.h"
#include "runtime/loaded_model.h"

namespace leadline {

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

DebugModelObserver::DebugModelObserver(const Model& debug_model) try
    : layers_(debug::find_verified_layers(*debug_model.loaded()->graph())) {
  require(!layers_.empty(), ErrorCode::kInvalidArgument,
          "Please check if the quantized model is in debug mode: no NumericVerify is in it. Give the debugger the "
          "converter "
          "instead, which makes a debug model, or compare the float model with this one (leadline.debug). A "
          "converter's has "
          "none when everything was kept in float");
  clear();
} catch (...) {
  rethrow_as_error();
}

void DebugModelObserver::clear() try {
  sums_.assign(layers_.size(), {});
  numbers_.assign(layers_.size(), {});
} catch (...) {
  rethrow_as_error();
}

void DebugModelObserver::after_node(const ObservedNode& node) {
  const auto found = std::lower_bound(
      layers_.begin(), layers_.end(), std::pair(node.subgraph, node.node),
      [](const VerifiedLayer& layer, const auto& key) { return std::pair(layer.subgraph, layer.node) < key; });
  if (found == layers_.end() || found->subgraph != node.subgraph || found->node != node.node) return;
  const auto i = static_cast<size_t>(found - layers_.begin());
  const ObservedTensor& difference = node.outputs[0];
  debug::add_differences(
      sums_[i], numbers_[i],
      {reinterpret_cast<const float*>(difference.data.data()), difference.data.size() / sizeof(float)});
  if (callback_) callback_(i, difference, node.inputs[0], node.inputs[1]);
}

std::vector<VerifiedStatistics> DebugModelObserver::statistics() const try {
  std::vector<VerifiedStatistics> result;
  std::transform(sums_.begin(), sums_.end(), numbers_.begin(), std::back_inserter(result), debug::mean_of);
  return result;
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
