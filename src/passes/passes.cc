// SPDX-License-Identifier: Apache-2.0
#include "passes/passes.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/cancel.h"
#include "core/error.h"
#include "core/join.h"
#include "core/rethrow_if_fatal.h"
#include "ir/verifier.h"
#include "ops/op_ids.h"
#include "ops/verify.h"

namespace leadline::passes {
namespace {

// Constants first: the others look for them. Whole ops are looked for before their parts are folded into neighbours.
// Activations last: a fused one is in the way of fold_affine.
constexpr std::array kPasses = {
    Pass{"remove_dead", "removes unused nodes and values", remove_dead},
    Pass{"fold_constants", "nodes of constants alone are computed", fold_constants},
    Pass{"merge_constants", "equal constants become one", merge_constants},
    Pass{"merge_nodes", "nodes that compute the same become one", merge_nodes},
    Pass{"recognize_ops", "HARD_SWISH, GELU, PRELU and others written out become one node", recognize_ops},
    Pass{"merge_arithmetic", "sums and products with constants one after the other become one", merge_arithmetic},
    Pass{"merge_movement", "reshapes and transposes one after the other become one, or none", merge_movement},
    Pass{"merge_transposes", "a transpose before BATCH_MATMUL becomes its flag", merge_transposes},
    Pass{"merge_dilation", "a convolution between SPACE_TO_BATCH_ND and back is dilated", merge_dilation},
    Pass{"move_reshapes", "reshapes move out of the way of fold_affine", move_reshapes},
    Pass{"fold_affine", "constants per channel go into weights and biases", fold_affine},
    Pass{"merge_padding", "zeros around an image become the padding of its convolution", merge_padding},
    Pass{"fuse_activations", "RELUs become the activation of the node before", fuse_activations},
    Pass{"complete_biases", "convolutions without bias get one of zeros", complete_biases},
};

/// Static storage for lists of ops.
template <const auto&... Ops>
constexpr std::array<ir::OpId, sizeof...(Ops)> kOps = {Ops...};

// Equal nodes first, before others change them. Then tables, which stand
// for what other passes would look for. Dead nodes last: what became unused is removed.
constexpr std::array kPassesForRuns = {
    Pass{"merge_nodes", "nodes that compute the same become one", merge_nodes},
    Pass{"merge_movement", "reshapes and transposes one after the other become one, or none", merge_movement,
         kOps<op::kTranspose, op::kCast, op::kQuantize>},
    Pass{"merge_lookups", "elementwise nodes of one 8-bit tensor become one table", merge_lookups},
    Pass{"merge_swish", "x * LOGISTIC(x) becomes one node", merge_swish, kOps<op::kLogistic>},
    Pass{"merge_layer_norm", "layer normalization written out becomes one node", merge_layer_norm, kOps<op::kRsqrt>},
    Pass{"recognize_ops", "HARD_SWISH, GELU, PRELU and others written out become one node", recognize_ops,
         kOps<op::kMaximum, op::kMinimum, op::kMul, op::kDiv>},
    Pass{"merge_padding", "zeros around an image become the padding of its convolution", merge_padding,
         kOps<op::kPad, op::kPadV2>},
    Pass{"fuse_activations", "RELUs become the activation of the node before", fuse_activations,
         kOps<op::kRelu, op::kRelu6, op::kReluN1To1>},
    Pass{"remove_dead", "removes unused nodes and values", remove_dead},
};

#ifdef NDEBUG
constexpr bool kVerifyEach = false;
#else
constexpr bool kVerifyEach = true;
#endif

/// Rewrites only ever shrink a graph, so this many rounds are reached by no sensible model.
constexpr int kMostRounds = 16;

void check(const ir::Graph& graph, const char* pass) {
  try {
    ir::verify(graph);
    ops::verify_nodes(graph);
  } catch (const Error& error) {
    check_cancelled();
    fail(ErrorCode::kInternal, "pass {} broke the graph: {}", pass, error.what());
  }
}

/// Whether one of the ops in `list` is there; true for an empty list.
bool has_any(const std::set<ir::OpId>& ops, std::span<const ir::OpId> list) {
  return list.empty() || std::any_of(list.begin(), list.end(), [&](const ir::OpId& op) { return ops.contains(op); });
}

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }
std::span<const Pass> passes_for_runs() { return kPassesForRuns; }

std::vector<PassName> names_for_converters() { return {kPasses.begin(), kPasses.end()}; }

std::vector<PassName> names_for_runs() {
  std::vector<PassName> names(kPassesForRuns.begin(), kPassesForRuns.end());
  names.push_back(kShareParts);
  return names;
}

PassNames pass_names(std::span<const std::string> names, const std::vector<PassName>& known) {
  PassNames result;
  for (const std::string& name : names) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const PassName& p) { return p.name == name; });
    std::vector<std::string_view> all;
    for (const PassName& pass : known) all.emplace_back(pass.name);
    require(name == "all" || found != known.end(), ErrorCode::kInvalidArgument,
            "unknown pass '{}'; expected one of: {}, all", name, join(all, ", "));
    if (name == "all") {
      result.insert(all.begin(), all.end());
    } else {
      result.insert(name);
    }
  }
  return result;
}

void run_passes(ir::Graph& graph, bool verify_each, const PassNames& disabled) {
  for (int round = 0; round < kMostRounds; ++round) {
    int changes = 0;
    for (const Pass& pass : kPasses) {
      if (disabled.contains(pass.name)) continue;
      check_cancelled();
      changes += pass.run(graph);
      if (verify_each) check(graph, pass.name);
    }
    if (changes == 0) break;
  }
  remove_dead(graph);
  if (verify_each) check(graph, "remove_dead");
}

void run_passes(ir::Graph& graph, const PassNames& disabled) { run_passes(graph, kVerifyEach, disabled); }

ir::ChangedNodes changes_for_runs(const ir::Graph& graph, const PassNames& disabled, bool verify_each) {
  std::set<ir::OpId> ops;
  for (const ir::Subgraph& subgraph : graph.subgraphs) {
    for (const ir::Node& node : subgraph.nodes) ops.insert(node.op);
  }
  std::vector<ir::NodeOverlay> overlays(graph.subgraphs.size());
  for (const Pass& pass : kPassesForRuns) {
    if (disabled.contains(pass.name) || !has_any(ops, pass.needs)) continue;
    const int changes = pass.run(PassTarget(graph, overlays));
    if (changes > 0 && verify_each) check(ir::with_overlays(graph, overlays), pass.name);
  }
  return ir::changed_nodes(graph, overlays);
}

ir::ChangedNodes changes_for_runs(const ir::Graph& graph, const PassNames& disabled) {
  try {
    return changes_for_runs(graph, disabled, kVerifyEach);
  } catch (const Error& error) {
    rethrow_if_fatal(error);
    if (kVerifyEach) throw;
    return {};  // a model runs without passes too
  }
}

}  // namespace leadline::passes
