// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "ir/verifier.h"
#include "passes/editor.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

/// Nodes by what is quickly compared: op, version, type of the result, inputs.
using Seen = std::map<std::vector<int>, std::vector<int>>;

bool is_eligible(Editor& e, int n) {
  const ir::Node& node = e.node(n);
  return node.op.is_builtin() && node.outputs.size() == 1 && node.intermediates.empty() &&
         !e.is_output(node.outputs[0]);
}

/// For runs: when the second node runs, the result of the first is still there, so that no memory is held for it.
bool keeps_memory(Editor& e, int first, int n) {
  const auto& readers = e.consumers(e.node(first).outputs[0]);
  return !e.for_runs() || (!readers.empty() && *readers.rbegin() >= n);
}

bool are_equal(Editor& e, int first, int n) {
  const ir::Node& a = e.node(first);
  const ir::Node& b = e.node(n);
  return e.value(a.outputs[0]).quantization == e.value(b.outputs[0]).quantization && ir::called_subgraphs(b).empty() &&
         is_pure(e.graph(), e.subgraph(), a) && is_pure(e.graph(), e.subgraph(), b) &&
         ir::attributes_text(*a.attributes) == ir::attributes_text(*b.attributes);
}

/// To put another value in the place of a node's result takes a look at all inputs of its readers.
bool is_cheap_to_replace(Editor& e, int value) {
  constexpr size_t kMostInputs = 256;
  const auto& readers = e.consumers(value);
  return std::all_of(readers.begin(), readers.end(), [&](int n) { return e.node(n).inputs.size() <= kMostInputs; });
}

bool merge_twin(Editor& e, int n, Seen& seen) {
  if (!is_eligible(e, n) || !is_cheap_to_replace(e, e.node(n).outputs[0])) return false;
  const ir::Node& node = e.node(n);
  const int result = node.outputs[0];
  std::vector<int> key = {node.op.code(), node.version, static_cast<int>(e.value(result).dtype)};
  key.insert(key.end(), node.inputs.begin(), node.inputs.end());
  std::vector<int>& others = seen[std::move(key)];
  const auto same = std::find_if(others.begin(), others.end(), [&](int other) { return are_equal(e, other, n); });
  if (same == others.end()) {
    constexpr size_t kMostForms = 16;  // of one op with the same inputs
    if (others.size() < kMostForms) others.push_back(n);
    return false;
  }
  if (!keeps_memory(e, *same, n) || !e.replace(result, e.node(*same).outputs[0])) return false;
  e.remove(n);
  return true;
}

}  // namespace

int merge_nodes(PassTarget target) {
  return for_each_subgraph(target, [](Editor& editor, int) {
    Seen seen;
    return for_each_node(editor, [&](Editor& e, int n) { return merge_twin(e, n, seen); });
  });
}

}  // namespace leadline::passes
