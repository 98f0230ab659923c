// SPDX-License-Identifier: Apache-2.0
#include "passes/passes.h"

#include <array>

#include "base/error.h"
#include "ir/verifier.h"
#include "ops/verify.h"

namespace leadline::passes {
namespace {

// Constants first: the others look for them. Whole ops are looked for before their parts are folded into neighbours.
// Activations last: a fused one is in the way of fold_affine.
constexpr std::array kPasses = {
    Pass{"remove_dead", remove_dead},           Pass{"fold_constants", fold_constants},
    Pass{"merge_constants", merge_constants},   Pass{"merge_nodes", merge_nodes},
    Pass{"recognize_ops", recognize_ops},       Pass{"merge_arithmetic", merge_arithmetic},
    Pass{"merge_movement", merge_movement},     Pass{"merge_transposes", merge_transposes},
    Pass{"merge_dilation", merge_dilation},     Pass{"move_reshapes", move_reshapes},
    Pass{"fold_affine", fold_affine},           Pass{"merge_padding", merge_padding},
    Pass{"fuse_activations", fuse_activations}, Pass{"complete_biases", complete_biases},
};

/// Rewrites only ever shrink a graph, so this many rounds are reached by no sensible model.
constexpr int kMostRounds = 16;

void check(const ir::Graph& graph, const char* pass) {
  try {
    ir::verify(graph);
    ops::verify_nodes(graph);
  } catch (const Error& error) {
    fail(ErrorCode::kInternal, "pass {} broke the graph: {}", pass, error.what());
  }
}

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

void run_passes(ir::Graph& graph, bool verify_each) {
  for (int round = 0; round < kMostRounds; ++round) {
    int changes = 0;
    for (const Pass& pass : kPasses) {
      changes += pass.run(graph);
      if (verify_each) check(graph, pass.name);
    }
    if (changes == 0) break;
  }
  remove_dead(graph);
  if (verify_each) check(graph, "remove_dead");
}

void run_passes(ir::Graph& graph) {
#ifdef NDEBUG
  run_passes(graph, false);
#else
  run_passes(graph, true);
#endif
}

}  // namespace leadline::passes
