// SPDX-License-Identifier: Apache-2.0
#include "cli/profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "cli/printing.h"

namespace leadline::cli {
namespace {

/// Time per kind of op, most first.
struct OpTime {
  std::string op;
  int64_t nodes = 0;
  double total_ms = 0;
  double fastest_ms = 0;  ///< sum of each node's fastest time
  int64_t macs = 0;
};

/// The subgraphs of a model, described when they are first asked for.
class Works {
 public:
  explicit Works(const Model* model) : model_(model) {}

  NodeWork of(const NodeProfile& node) {
    if (model_ == nullptr) return {};
    const auto [found, added] = graphs_.try_emplace(node.subgraph);
    if (added) found->second = model_->subgraph(node.subgraph);
    const std::vector<NodeInfo>& nodes = found->second.nodes;
    const auto index = static_cast<size_t>(node.node);
    return index < nodes.size() ? node_work(found->second, nodes[index]) : NodeWork{};
  }

 private:
  const Model* model_;
  std::map<int, SubgraphInfo> graphs_;
};

std::vector<OpTime> by_op(const std::vector<NodeProfile>& profile, Works& works) {
  std::map<std::string, OpTime> sums;
  for (const NodeProfile& node : profile) {
    OpTime& sum = sums[node.op];
    sum.op = node.op;
    ++sum.nodes;
    sum.total_ms += node.total_ms;
    sum.fastest_ms += node.fastest_ms;
    sum.macs += works.of(node).macs;
  }
  std::vector<OpTime> result;
  for (auto& [op, sum] : sums) result.push_back(std::move(sum));
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.total_ms > b.total_ms; });
  return result;
}

std::string gmacs(int64_t macs, double ms) {
  return macs > 0 && ms > 0 ? fmt::format("{:.1f}", static_cast<double>(macs) / ms * 1e-6) : std::string();
}

const Shape* shape_of(const SubgraphInfo& graph, const std::vector<int>& tensors, size_t position) {
  if (position >= tensors.size() || tensors[position] < 0) return nullptr;
  return &graph.tensors[static_cast<size_t>(tensors[position])].shape;
}

}  // namespace

NodeWork node_work(const SubgraphInfo& graph, const NodeInfo& node) {
  const Shape* input = shape_of(graph, node.inputs, static_cast<size_t>(std::max(node.activations, 0)));
  const Shape* output = shape_of(graph, node.outputs, 0);
  NodeWork work;
  if (input == nullptr || output == nullptr) return work;
  work.macs = node.macs;
  work.shapes = input->to_string();
  if (work.macs > 0) {
    work.shapes += " x " + shape_of(graph, node.inputs, static_cast<size_t>(node.weights))->to_string();
  }
  work.shapes += " -> " + output->to_string();
  return work;
}

void print_profile(std::vector<NodeProfile> profile, size_t runs, const Model* model) {
  Works works(model);
  double total = 0;
  for (const NodeProfile& node : profile) total += node.total_ms;
  const auto share = [&](double ms) { return fmt::format("{:.1f} %", total > 0 ? 100 * ms / total : 0.0); };
  const auto per_run = [&](double ms) { return fmt::format("{:.4f}", ms / static_cast<double>(runs)); };
  Table ops(model != nullptr ? "lrrrrr" : "lrrr");
  std::vector<std::string> op_head = {"op", "nodes", "ms/run", "share"};
  if (model != nullptr) op_head.insert(op_head.end(), {"fastest", "GMAC/s"});
  ops.add(op_head);
  for (const OpTime& op : by_op(profile, works)) {
    std::vector<std::string> cells = {op.op, std::to_string(op.nodes), per_run(op.total_ms), share(op.total_ms)};
    if (model != nullptr) {
      cells.insert(cells.end(), {fmt::format("{:.4f}", op.fastest_ms), gmacs(op.macs, op.fastest_ms)});
    }
    ops.add(std::move(cells));
  }
  fmt::print("\nTime per op\n{}", ops.text());
  std::stable_sort(profile.begin(), profile.end(),
                   [](const auto& a, const auto& b) { return a.total_ms > b.total_ms; });
  const bool several =
      std::any_of(profile.begin(), profile.end(), [&](const auto& n) { return n.subgraph != profile[0].subgraph; });
  Table nodes(model != nullptr ? "rlrrrrrll" : "rlrrrrl");
  std::vector<std::string> head = {"#", "op", "ms/run", "fastest", "calls", "share"};
  if (model != nullptr) head.insert(head.end(), {"GMAC/s", "shapes"});
  head.push_back("name");
  nodes.add(head);
  for (const NodeProfile& n : profile) {
    std::vector<std::string> cells = {several ? fmt::format("{}:{}", n.subgraph, n.node) : std::to_string(n.node),
                                      n.op,
                                      per_run(n.total_ms),
                                      fmt::format("{:.4f}", n.fastest_ms),
                                      std::to_string(n.runs),
                                      share(n.total_ms)};
    if (model != nullptr) {
      const NodeWork work = works.of(n);
      cells.insert(cells.end(), {gmacs(work.macs, n.fastest_ms), work.shapes});
    }
    cells.push_back(n.name);
    nodes.add(std::move(cells));
  }
  fmt::print("\nTime per node\n{}", nodes.text());
}

Json profile_json(const std::vector<NodeProfile>& profile, const Model* model) {
  Works works(model);
  Json json = {{"ops", Json::array()}, {"nodes", Json::array()}};
  for (const OpTime& op : by_op(profile, works)) {
    json["ops"].push_back({{"op", op.op}, {"nodes", op.nodes}, {"total_ms", op.total_ms}});
    if (model == nullptr) continue;
    json["ops"].back()["fastest_ms"] = op.fastest_ms;
    json["ops"].back()["macs"] = op.macs;
  }
  for (const NodeProfile& n : profile) {
    json["nodes"].push_back({{"subgraph", n.subgraph},
                             {"node", n.node},
                             {"op", n.op},
                             {"name", n.name},
                             {"runs", n.runs},
                             {"total_ms", n.total_ms},
                             {"fastest_ms", n.fastest_ms}});
    if (model == nullptr) continue;
    const NodeWork work = works.of(n);
    json["nodes"].back()["macs"] = work.macs;
    json["nodes"].back()["shapes"] = work.shapes;
  }
  return json;
}

}  // namespace leadline::cli
