// SPDX-License-Identifier: Apache-2.0
#include "debug/belonging.h"

#include <algorithm>

#include "core/error.h"
#include "debug/index.h"

namespace leadline::debug {
namespace {

constexpr int64_t kTellingWeights = 64;  // of fewer elements a weight may be all zeros, or what an op made of it

/// The first value whose numbers are not float32; `computed`: of those that are no constants. Null: none.
const ir::Value* first_quantized(const ir::Graph& graph, bool computed) {
  for (const ir::Subgraph& subgraph : graph.subgraphs) {
    for (const ir::Value& value : subgraph.values) {
      const bool constant = static_cast<bool>(value.constant);
      if (computed && constant) continue;
      if (is_quantized(value) || (constant && value.dtype == DType::kFloat16)) return &value;
    }
  }
  return nullptr;
}

bool has_open_sizes(const ir::Value& value) {
  return !value.has_rank || (value.signature && std::any_of(value.signature->begin(), value.signature->end(),
                                                            [](int32_t size) { return size < 0; }));
}

}  // namespace

void require_order(const ir::Graph& reference, const ir::Graph& quantized) {
  const ir::Value* integers = first_quantized(reference, true);
  if (integers == nullptr && first_quantized(quantized, false) == nullptr) integers = first_quantized(reference, false);
  if (integers == nullptr) return;
  const bool swapped = first_quantized(quantized, true) == nullptr;
  fail(ErrorCode::kInvalidArgument, "the float model is quantized itself: its tensor '{}' is {}; {}", integers->name,
       dtype_name(integers->dtype),
       swapped ? "the models were given in the wrong order: the float model comes first, then the quantized one"
               : "give the model that was quantized first, then its quantized form");
}

void require_likeness(const ir::Subgraph& quantized, const ir::Subgraph& reference, const Match& match) {
  int64_t nodes = 0;
  int64_t matched = 0;
  for (size_t n = 0; n < quantized.nodes.size(); ++n) {
    if (changes_type_only(quantized.nodes[n])) continue;
    ++nodes;
    matched += match.node[n] >= 0 ? 1 : 0;
  }
  require(4 * matched >= nodes, ErrorCode::kInvalidArgument,
          "{} of the quantized model's {} nodes are like a node of the float model, which has {}: they do not belong "
          "together. Give the file that was quantized as the float model",
          matched, nodes, reference.nodes.size());
}

void require_same_output(const ir::Value& quantized, const ir::Value& reference) {
  if (has_open_sizes(quantized) || has_open_sizes(reference)) return;
  require(quantized.shape == reference.shape, ErrorCode::kInvalidArgument,
          "output '{}' has shape {} in the float model, and '{}' has {} in the quantized one: they do not belong "
          "together",
          reference.name, reference.shape.to_string(), quantized.name, quantized.shape.to_string());
}

void require_compared(const DebugResult& result, bool ran) {
  int64_t weights = 0;
  int64_t foreign = 0;
  const LayerDebug* example = nullptr;
  for (const LayerDebug& layer : result.layers) {
    for (const WeightError& weight : layer.weights) {
      if (weight.shape.elements() < kTellingWeights || weight.shape.rank() < 2) continue;
      ++weights;
      // Rounding cannot take more than there is: an error above the signal is the difference of unlike numbers.
      if (weight.snr_db >= -1.0) continue;
      ++foreign;
      if (example == nullptr) example = &layer;
    }
  }
  require(2 * foreign <= weights, ErrorCode::kInvalidArgument,
          "{} of {} weights are not those of the float model, rounded (the first: {} '{}'): the models do not belong "
          "together. Of a model that was quantized with equalize, say so: equalized",
          foreign, weights, example != nullptr ? example->op : "", example != nullptr ? example->name : "");
  if (!ran) return;
  for (const DebugOutput& output : result.outputs) {
    const ErrorStatistics& e = output.accumulated;
    require(e.elements > 0 || e.not_finite > 0, ErrorCode::kInvalidArgument,
            "no value of output '{}' was compared: its shapes in both models differ for these samples", output.name);
  }
}

}  // namespace leadline::debug
