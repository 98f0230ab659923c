// SPDX-License-Identifier: Apache-2.0
// A function of one 8-bit tensor has 256 values. They are computed by the kernels of the nodes themselves, so the table
// returns what the nodes return.
#include <algorithm>

#include "ops/fused.h"
#include "ops/inference.h"
#include "ops/registry.h"
#include "passes/editor.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

/// No sensible chain is longer, and none may take long to look for.
constexpr size_t kMostNodes = 16;
constexpr size_t kMostOpen = 4;

constexpr int kLevels = 256;

bool is_8bit(const ir::Value& value) { return value.dtype == DType::kInt8 || value.dtype == DType::kUInt8; }

bool is_plain_value(const ir::Value& value) {
  const int bits = dtype_bits(value.dtype);
  return bits >= 8 && !value.variable && !value.sparsity && value.quantization.scale.size() <= 1 &&
         value.quantization.block_size == 0;
}

bool is_number(const ir::Value& value) { return value.constant && !value.source && value.shape.elements() == 1; }

bool is_elementwise(Editor& e, int n) {
  const ir::Node& node = e.node(n);
  if (node.inputs.empty() || node.inputs.size() > 2 || node.outputs.size() != 1) return false;
  const ops::OpDef* op = ops::row_of(node);
  if (op == nullptr || !op->elementwise) return false;
  for (int v : node.inputs) {
    if (v == ir::kAbsent || !is_plain_value(e.value(v)) || (e.value(v).constant && !is_number(e.value(v))))
      return false;
  }
  return is_plain_value(e.value(node.outputs[0])) && !e.value(node.outputs[0]).constant;
}

/// Nodes that together compute one value from one other.
struct Chain {
  std::vector<int> nodes;  // the last first
  int root = ir::kAbsent;
};

/// The longest chain that ends with node `last`, whose inner values nothing else reads.
Chain find_chain(Editor& e, int last) {
  Chain found;
  std::vector<int> nodes = {last};
  std::vector<int> open;  // values still to be computed
  const auto add_operands = [&](int n) {
    for (int v : e.node(n).inputs) {
      if (!e.value(v).constant && std::find(open.begin(), open.end(), v) == open.end()) open.push_back(v);
    }
  };
  add_operands(last);
  while (!open.empty() && open.size() <= kMostOpen) {
    if (open.size() == 1 && is_8bit(e.value(open[0]))) found = {nodes, open[0]};
    if (nodes.size() == kMostNodes) break;
    // What is made last cannot lead to the others, but they to it.
    const auto latest =
        std::max_element(open.begin(), open.end(), [&](int a, int b) { return e.producer(a) < e.producer(b); });
    const int v = *latest;
    const int maker = e.producer(v);
    if (maker < 0 || e.is_output(v) || !is_elementwise(e, maker)) break;
    const bool inner = std::all_of(e.consumers(v).begin(), e.consumers(v).end(),
                                   [&](int n) { return std::find(nodes.begin(), nodes.end(), n) != nodes.end(); });
    if (!inner) break;
    open.erase(latest);
    nodes.push_back(maker);
    add_operands(maker);
  }
  return found;
}

/// The chain as a graph of its own whose root holds every 8-bit value.
class Probe {
 public:
  Probe(Editor& e, const Chain& chain) : e_(e) {
    graph_.subgraphs.resize(1);
    auto levels = std::vector<std::byte>(kLevels);
    for (int i = 0; i < kLevels; ++i) levels[static_cast<size_t>(i)] = static_cast<std::byte>(i);
    graph_.storage.push_back(std::make_shared<const std::vector<std::byte>>(std::move(levels)));
    ir::Value& root = subgraph().value(number(chain.root));
    // Of the same rank: kernels may choose by it.
    std::vector<int64_t> sizes(static_cast<size_t>(std::max(1, root.shape.rank())), 1);
    sizes.back() = kLevels;
    root.shape = Shape(sizes);
    root.constant = true;
    root.data = *graph_.storage.back();
    for (auto n = chain.nodes.rbegin(); n != chain.nodes.rend(); ++n) {
      ir::Node node = e.node(*n);
      for (auto* list : {&node.inputs, &node.outputs}) {
        for (int& v : *list) v = number(v);
      }
      subgraph().nodes.push_back(std::move(node));
    }
  }

  /// The result for every level; nothing when some node cannot compute it.
  std::optional<std::vector<std::byte>> results() {
    ops::Inference inference(graph_, 0);
    for (int n = 0; n < static_cast<int>(subgraph().nodes.size()); ++n) {
      if (!inference.infer(n)) return {};
      if (!inference.fact(subgraph().nodes[static_cast<size_t>(n)].outputs[0]).known) return {};
    }
    const ops::Fact& last = inference.fact(subgraph().nodes.back().outputs[0]);
    if (last.data.size() != kLevels) return {};
    return last.data;
  }

 private:
  ir::Subgraph& subgraph() { return graph_.subgraphs[0]; }
  int number(int v) {
    const auto it = std::find(numbers_.begin(), numbers_.end(), v);
    if (it != numbers_.end()) return static_cast<int>(it - numbers_.begin());
    numbers_.push_back(v);
    subgraph().values.push_back(e_.value(v));
    return static_cast<int>(numbers_.size()) - 1;
  }

  Editor& e_;
  ir::Graph graph_;
  std::vector<int> numbers_;  // of the values in the whole graph
};

bool merge_chain(Editor& e, int last) {
  if (!is_elementwise(e, last) || !is_8bit(e.value(e.node(last).outputs[0]))) return false;
  const Chain chain = find_chain(e, last);
  if (chain.nodes.size() < 2 || e.value(chain.root).variable) return false;
  auto attributes = std::make_shared<ops::LookupAttributes>();
  for (int n : chain.nodes) {
    for (int v : e.node(n).inputs) {
      if (e.value(v).constant) attributes->least_rank = std::max(attributes->least_rank, e.value(v).shape.rank());
    }
  }
  try {
    const auto results = Probe(e, chain).results();
    if (!results) return false;
    std::transform(results->begin(), results->end(), attributes->table.begin(),
                   [](std::byte b) { return std::to_integer<uint8_t>(b); });
  } catch (const Error&) {
    return false;  // what is wrong with a node is reported when it is planned
  }
  for (size_t i = 1; i < chain.nodes.size(); ++i) e.remove(chain.nodes[i]);
  e.become(last, op::kLookup, {chain.root}, std::move(attributes));
  return true;
}

}  // namespace

int merge_lookups(PassTarget target) {
  return for_each_subgraph(target, [](Editor& editor, int) {
    int changes = 0;
    for (int n = editor.node_count() - 1; n >= 0; --n) {  // from the end: chains are found whole
      if (!editor.removed(n) && merge_chain(editor, n)) ++changes;
    }
    return changes;
  });
}

}  // namespace leadline::passes
