// SPDX-License-Identifier: Apache-2.0
// Rewrites that make a graph smaller and keep what it computes, up to the rounding of float sums and products. Each
// pass is one file with one function of this list; passes.cc has their order. Converters change a graph for good;
// interpreters lay changed nodes over theirs (PassTarget), which may use ops that no file has.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "ir/changed_nodes.h"
#include "ir/graph.h"
#include "passes/editor.h"

namespace leadline::passes {

/// Every function returns the number of rewrites it made.

/// Removes nodes whose results are not needed, and values that no node uses.
int remove_dead(PassTarget target);
/// Computes nodes whose inputs are constants: small results at once, large ones of TRANSPOSE, RESHAPE, CAST and
/// DEQUANTIZE (float16) as sources.
int fold_constants(PassTarget target);
/// Equal constants become one; constants of equal bytes share them.
int merge_constants(PassTarget target);
/// Nodes that compute the same become one.
int merge_nodes(PassTarget target);
/// Chains of RESHAPE or of TRANSPOSE become one node, those that change nothing vanish, so do such CASTs and PADs.
int merge_movement(PassTarget target);
/// Sums with zeros and products with ones vanish; a sum of sums with constants, or a product of products, becomes one.
int merge_arithmetic(PassTarget target);
/// What computes HARD_SWISH, GELU (with tanh), PRELU, LEAKY_RELU, L2_NORMALIZATION or one of the RELUs in several nodes
/// becomes that op.
int recognize_ops(PassTarget target);
/// A TRANSPOSE of the last two axes becomes a flag of the BATCH_MATMUL behind it.
int merge_transposes(PassTarget target);
/// What a convolution's result meets per channel behind a RESHAPE comes before it, where it can be folded.
int move_reshapes(PassTarget target);
/// SPACE_TO_BATCH_ND, convolution, BATCH_TO_SPACE_ND become one dilated convolution.
int merge_dilation(PassTarget target);
/// A PAD of zeros before a convolution becomes its SAME padding where that pads as much; for runs also where not.
int merge_padding(PassTarget target);
/// Products, quotients, sums and differences with constants per channel go into the weights and the bias of the
/// convolution, transposed convolution or FULLY_CONNECTED before them, or after them where that is exact.
int fold_affine(PassTarget target);
/// RELU, RELU6 and RELU_N1_TO_1 become the activation of the node before them.
int fuse_activations(PassTarget target);
/// Float convolutions without a bias get one of zeros: LiteRT refuses CONV_2D without.
int complete_biases(PassTarget target);

// For runs alone. Memory never grows by them: a value lives longer only where one of its size is gone.

/// Elementwise nodes that together are a function of one 8-bit tensor become one LOOKUP.
int merge_lookups(PassTarget target);
/// A float product with its own LOGISTIC becomes SWISH.
int merge_swish(PassTarget target);
/// MEAN, SQUARED_DIFFERENCE, MEAN, RSQRT and what is around them become LAYER_NORM.
int merge_layer_norm(PassTarget target);

/// What can be switched off by name.
struct PassName {
  const char* name;
  const char* description;
};

struct Pass : PassName {
  int (*run)(PassTarget);
  std::span<const ir::OpId> needs = {};  // for runs: ops without all of which it finds nothing; none: any graph
};

/// How the planner lays out memory (PlanOptions::share_parts): not a pass, but switched off like those for runs.
inline constexpr PassName kShareParts = {
    "share_parts", "tensors lie inside those they are joined to or cut from, instead of being copied"};

/// All passes of converters in their order.
std::span<const Pass> all_passes();
/// All passes for runs in their order.
std::span<const Pass> passes_for_runs();
/// What converters and interpreters can switch off.
std::vector<PassName> names_for_converters();
std::vector<PassName> names_for_runs();

using PassNames = std::set<std::string, std::less<>>;
/// `names` as a set, "all" written out. Throws Error(kInvalidArgument), listing the names there are, when one is not in
/// `known`.
PassNames pass_names(std::span<const std::string> names, const std::vector<PassName>& known);

/// Runs all passes but the disabled ones until none finds anything, then leaves the graph without dead parts. Debug
/// builds, and callers that ask for it, verify the graph after each.
void run_passes(ir::Graph& graph, const PassNames& disabled = {});
void run_passes(ir::Graph& graph, bool verify_each, const PassNames& disabled = {});

/// What passes for runs make of the graph's nodes. Without `verify_each` it depends on the build, and a pass that fails
/// changes nothing.
ir::ChangedNodes changes_for_runs(const ir::Graph& graph, const PassNames& disabled);
ir::ChangedNodes changes_for_runs(const ir::Graph& graph, const PassNames& disabled, bool verify_each);

}  // namespace leadline::passes
