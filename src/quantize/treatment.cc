// SPDX-License-Identifier: Apache-2.0
#include "quantize/treatment.h"

#include <algorithm>

#include "core/error.h"
#include "ir/verifier.h"
#include "ops/registry.h"
#include "quantize/crossings.h"
#include "quantize/recurrent.h"
#include "quantize/trained_ranges.h"

namespace leadline::quantize {
namespace {

const ir::Value& value_at(const ir::Subgraph& subgraph, int v) { return subgraph.value(v); }

bool is_float_type(DType type) {
  return type == DType::kFloat32 || type == DType::kFloat16 || type == DType::kBFloat16 || type == DType::kFloat64;
}

/// Input `i` of a node, or null when it is absent.
const ir::Value* input_of(const ir::Subgraph& subgraph, const ir::Node& node, int i) {
  if (i < 0 || i >= static_cast<int>(node.inputs.size())) return nullptr;
  const int v = node.inputs[static_cast<size_t>(i)];
  return v == ir::kAbsent ? nullptr : &value_at(subgraph, v);
}

/// What keeps a node from integers besides its op; empty: nothing.
std::string operand_obstacle(const ir::Subgraph& subgraph, const std::vector<bool>& is_state, const ir::Node& node,
                             const ops::OpDef& op) {
  for (const std::vector<int>* operands : {&node.inputs, &node.outputs}) {
    for (int v : *operands) {
      if (v == ir::kAbsent) continue;
      const ir::Value& value = value_at(subgraph, v);
      if (is_float_type(value.dtype) && value.dtype != DType::kFloat32) {
        return fmt::format("'{}' is {}, not float32", value.name, dtype_name(value.dtype));
      }
      if ((value.variable || is_state[static_cast<size_t>(v)]) && value.dtype == DType::kFloat32) {
        return fmt::format("'{}' is state that is kept between runs", value.name);
      }
      if (value.sparsity) return fmt::format("'{}' is sparse", value.name);
    }
  }
  const ir::Value* bias = input_of(subgraph, node, op.bias_input());
  if (bias != nullptr && !bias->constant) return fmt::format("the bias '{}' is computed while running", bias->name);
  return {};
}

/// What is known of a subgraph as a whole.
struct SubgraphFacts {
  bool takes_integers = false;  // it is run by itself, or one WHILE or IF calls it
  std::vector<bool> is_state;   // by value: read from a variable, whose range samples do not show
};

std::string integer_obstacle(const ir::Subgraph& subgraph, const SubgraphFacts& facts, const ir::Node& node,
                             const ops::OpDef* op, QuantizationMode mode) {
  const bool has_states = !state_inputs(node).empty();
  const bool int8 = mode == QuantizationMode::kInt8 || has_states;
  const auto form = int8 ? ops::QuantizationRule::kInt8 : ops::QuantizationRule::kInt16;
  if (op == nullptr || (op->quantize.forms & form) == 0) {
    return fmt::format("{} has no {} form", node.op.name(), int8 ? "int8" : "int16");
  }
  if (ir::is_one_of(node.op, {op::kFakeQuant}) && !is_trained_rounding(subgraph, node)) {
    return "it does not round activations to 8 bits";
  }
  if (!facts.takes_integers) return "it is in a subgraph that several nodes call, or not a WHILE or an IF";
  if (has_states) return state_obstacle(subgraph, node);
  return operand_obstacle(subgraph, facts.is_state, node, *op);
}

/// What the options ask for a node, before it is known whether it can be had.
NodeTreatment asked_of(const TreatmentOptions& options, int subgraph, int node) {
  const RecipeRule* rule = options.recipe ? options.recipe(subgraph, node) : nullptr;
  if (rule == nullptr) return {options.mode};
  return {
      rule->mode, {}, {rule->block_size, rule->symmetric, rule->min_weight_elements, rule->rounding, rule->rotation}};
}

NodeTreatment treat(const ir::Graph& graph, int subgraph_index, const SubgraphFacts& facts, int node_index,
                    const TreatmentOptions& options) {
  const ir::Subgraph& subgraph = graph.subgraphs[static_cast<size_t>(subgraph_index)];
  const ir::Node& node = subgraph.nodes[static_cast<size_t>(node_index)];
  if (!has_floats(subgraph, node)) return {};
  const NodeTreatment asked = asked_of(options, subgraph_index, node_index);
  QuantizationMode wanted = asked.mode;
  const ops::OpDef* op = ops::row_of(node);
  if (is_integer(wanted) && is_call(node)) return {};  // until it is known what becomes of what it calls
  // It does not matter in which form shapes are asked for.
  if (wanted == QuantizationMode::kFloat || (op != nullptr && op->reads_shapes_only && is_integer(wanted))) return {};
  std::string reason;
  if (is_integer(wanted)) {
    reason = integer_obstacle(subgraph, facts, node, op, wanted);
  } else if (options.weights_obstacle) {
    reason = options.weights_obstacle(subgraph, node, asked);
  }
  if (!reason.empty()) return {QuantizationMode::kFloat, std::move(reason)};
  if (is_integer(wanted) && !state_inputs(node).empty()) wanted = QuantizationMode::kInt8;  // all that its kernels have
  return {wanted, {}, asked.weights, node_index};
}

/// Whether a node of the subgraphs that `node` calls computes with integers.
bool calls_integers(const ir::Node& node, const Treatments& treatments) {
  const std::vector<int> called = ir::called_subgraphs(node);
  return std::any_of(called.begin(), called.end(), [&](int s) {
    const std::vector<NodeTreatment>& nodes = treatments[static_cast<size_t>(s)];
    return std::any_of(nodes.begin(), nodes.end(), [](const NodeTreatment& t) { return is_integer(t.mode); });
  });
}

/// A WHILE or an IF passes on integers if there are some inside.
void treat_calls(const ir::Graph& graph, const Crossings& crossings, const TreatmentOptions& options,
                 Treatments& treatments) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t s = 0; s < graph.subgraphs.size(); ++s) {
      for (size_t n = 0; n < graph.subgraphs[s].nodes.size(); ++n) {
        const ir::Node& node = graph.subgraphs[s].nodes[n];
        if (!is_call(node) || is_integer(treatments[s][n].mode)) continue;
        const QuantizationMode wanted = asked_of(options, static_cast<int>(s), static_cast<int>(n)).mode;
        const bool passes = is_integer(wanted) && has_floats(graph.subgraphs[s], node) &&
                            crossings.calls_its_own(node) && calls_integers(node, treatments);
        if (!passes) continue;
        treatments[s][n] = {wanted, {}};
        changed = true;
      }
    }
  }
}

}  // namespace

bool has_floats(const ir::Subgraph& subgraph, const ir::Node& node) {
  const auto is_float = [&](int v) { return v != ir::kAbsent && is_float_type(value_at(subgraph, v).dtype); };
  return std::any_of(node.inputs.begin(), node.inputs.end(), is_float) ||
         std::any_of(node.outputs.begin(), node.outputs.end(), is_float);
}

std::vector<bool> entry_subgraphs(const ir::Graph& graph) {
  std::vector<bool> entries(graph.subgraphs.size());
  if (!entries.empty()) entries[0] = true;
  for (const ir::Signature& signature : graph.signatures) entries[static_cast<size_t>(signature.subgraph)] = true;
  for (const ir::Subgraph& subgraph : graph.subgraphs) {
    for (const ir::Node& node : subgraph.nodes) {
      for (const int called : ir::called_subgraphs(node)) entries[static_cast<size_t>(called)] = false;
    }
  }
  return entries;
}

void require_float_model(const ir::Graph& graph) {
  for (const ir::Subgraph& subgraph : graph.subgraphs) {
    for (const ir::Value& value : subgraph.values) {
      require(!value.quantization.quantized() || value.dtype == DType::kFloat32, ErrorCode::kUnsupported,
              "the model is quantized already: '{}' is {} with a scale; quantize the float model it was made from",
              value.name, dtype_name(value.dtype));
    }
    for (size_t n = 0; n < subgraph.nodes.size(); ++n) {
      const ir::Node& node = subgraph.nodes[n];
      require(!ir::is_one_of(node.op, {op::kQuantize, op::kDequantize}), ErrorCode::kUnsupported,
              "the model is quantized already: {}; quantize the float model it was made from",
              ir::describe_node(subgraph, static_cast<int>(n)));
    }
  }
}

Treatments plan_treatments(const ir::Graph& graph, const TreatmentOptions& options) {
  Treatments treatments(graph.subgraphs.size());
  const std::vector<bool> entries = entry_subgraphs(graph);
  const Crossings crossings(graph);
  for (size_t s = 0; s < graph.subgraphs.size(); ++s) {
    const bool takes_integers = entries[s] || crossings.caller(static_cast<int>(s));
    SubgraphFacts facts{takes_integers, std::vector<bool>(graph.subgraphs[s].values.size())};
    for (const ir::Node& node : graph.subgraphs[s].nodes) {
      if (!ir::is_one_of(node.op, {op::kReadVariable})) continue;
      for (const int v : node.outputs) facts.is_state[static_cast<size_t>(v)] = true;
    }
    for (size_t n = 0; n < graph.subgraphs[s].nodes.size(); ++n) {
      treatments[s].push_back(treat(graph, static_cast<int>(s), facts, static_cast<int>(n), options));
    }
    treat_setters(graph.subgraphs[s], treatments[s]);
  }
  treat_calls(graph, crossings, options, treatments);
  return treatments;
}

void require_integers(const ir::Graph& graph, const Treatments& treatments) {
  std::string list;
  int count = 0;
  for (size_t s = 0; s < treatments.size(); ++s) {
    for (size_t n = 0; n < treatments[s].size(); ++n) {
      if (treatments[s][n].reason.empty()) continue;
      ++count;
      list += "\n  ";
      if (s != 0) list += fmt::format("subgraph {}: ", s);
      list +=
          fmt::format("{}: {}", ir::describe_node(graph.subgraphs[s], static_cast<int>(n)), treatments[s][n].reason);
    }
  }
  require(count == 0, ErrorCode::kUnsupported,
          "integers are required of all nodes, but {} of them would stay float; allow float, or leave them out:{}",
          count, list);
}

}  // namespace leadline::quantize
