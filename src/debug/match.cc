// SPDX-License-Identifier: Apache-2.0
#include "debug/match.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/cancel.h"
#include "core/error.h"
#include "debug/index.h"
#include "ops/op_ids.h"

namespace leadline::debug {
namespace {

class Matcher {
 public:
  Matcher(const ir::Subgraph& quantized, const ir::Subgraph& reference) : q_(quantized), f_(reference) {
    match_.value.assign(q_.values.size(), -1);
    match_.node.assign(q_.nodes.size(), -1);
    match_.from_constant.resize(q_.values.size());
    for (size_t v = 0; v < q_.values.size(); ++v) match_.from_constant[v] = q_.values[v].constant;
    taken_.resize(f_.nodes.size());
    for (size_t n = 0; n < f_.nodes.size(); ++n) {
      candidates_[{f_.nodes[n].op, first_computed(f_.nodes[n])}].nodes.push_back(static_cast<int>(n));
    }
    for (size_t v = 0; v < f_.values.size(); ++v) {
      if (!f_.values[v].constant) names_.emplace(f_.values[v].name, static_cast<int>(v));
    }
  }

  Match run() {
    match_inputs();
    for (size_t n = 0; n < q_.nodes.size(); ++n) {
      const ir::Node& node = q_.nodes[n];
      if (changes_type_only(node)) {
        pass_through(node);
      } else if (const int found = find_node(node); found >= 0) {
        accept(static_cast<int>(n), found);
      } else {
        match_outputs_by_name(node);
      }
    }
    return std::move(match_);
  }

 private:
  void match_inputs() {
    require(q_.inputs.size() == f_.inputs.size(), ErrorCode::kInvalidArgument,
            "the float model has {} inputs, the quantized one {}: they do not belong together", f_.inputs.size(),
            q_.inputs.size());
    const size_t count = f_.inputs.size();
    std::vector<int> positions(count);
    std::iota(positions.begin(), positions.end(), 0);
    std::map<std::string, int> by_name;
    for (size_t i = 0; i < count; ++i) by_name[q_.values[at(q_.inputs[i])].name] = static_cast<int>(i);
    bool all_named = by_name.size() == count;
    for (size_t i = 0; i < count && all_named; ++i) all_named = by_name.contains(f_.values[at(f_.inputs[i])].name);
    for (size_t i = 0; i < count && all_named; ++i) positions[i] = by_name[f_.values[at(f_.inputs[i])].name];
    for (size_t i = 0; i < count; ++i) match_.value[at(q_.inputs[at(positions[i])])] = f_.inputs[i];
    match_.input = std::move(positions);
  }

  void pass_through(const ir::Node& node) {
    const int from = node.inputs[0];
    const int to = node.outputs[0];
    match_.value[at(to)] = match_.value[at(from)];
    match_.from_constant[at(to)] = match_.from_constant[at(from)];
  }

  /// Of a float node's operands.
  bool is_computed(int v) const { return v != ir::kAbsent && !f_.values[at(v)].constant && !f_.values[at(v)].variable; }
  int first_computed(const ir::Node& node) const {
    const auto found = std::find_if(node.inputs.begin(), node.inputs.end(), [this](int v) { return is_computed(v); });
    return found == node.inputs.end() ? ir::kAbsent : *found;
  }

  /// Operands that are computed stand for each other, and so do constants.
  bool fits(const ir::Node& a, const ir::Node& b) const {
    const size_t count = std::max(a.inputs.size(), b.inputs.size());
    for (size_t i = 0; i < count; ++i) {
      const int x = i < a.inputs.size() ? a.inputs[i] : ir::kAbsent;
      const int y = i < b.inputs.size() ? b.inputs[i] : ir::kAbsent;
      if (!is_computed(y)) continue;  // a bias or a state may have come or gone
      if (x == ir::kAbsent || match_.value[at(x)] != y) return false;
    }
    if (a.outputs.size() != b.outputs.size()) return false;
    for (size_t i = 0; i < a.outputs.size(); ++i) {
      if (!(q_.values[at(a.outputs[i])].shape == f_.values[at(b.outputs[i])].shape)) return false;
    }
    return constants_fit(a, b);
  }

  bool constants_fit(const ir::Node& a, const ir::Node& b) const {
    for (size_t i = 0; i < std::min(a.inputs.size(), b.inputs.size()); ++i) {
      if (a.inputs[i] == ir::kAbsent || b.inputs[i] == ir::kAbsent) continue;
      const ir::Value& x = q_.values[at(a.inputs[i])];
      const ir::Value& y = f_.values[at(b.inputs[i])];
      if (y.constant && match_.from_constant[at(a.inputs[i])] && !(x.shape == y.shape)) return false;
    }
    return true;
  }

  /// Names are alike when one only has digits more at its end: converters make names unique that way.
  static bool alike(const std::string& a, const std::string& b) {
    const std::string& longer = a.size() >= b.size() ? a : b;
    const std::string& shorter = a.size() >= b.size() ? b : a;
    return longer.starts_with(shorter) && std::all_of(longer.begin() + static_cast<std::ptrdiff_t>(shorter.size()),
                                                      longer.end(), [](char c) { return c >= '0' && c <= '9'; });
  }

  int likeness(const ir::Node& a, const ir::Node& b) const {
    int score = 0;
    const auto compare = [&](int x, int y, int weight) {
      if (x == ir::kAbsent || y == ir::kAbsent) return;
      const std::string& name = q_.values[at(x)].name;
      const std::string& other = f_.values[at(y)].name;
      if (!name.empty() && alike(name, other)) score += name == other ? 2 * weight : weight;
    };
    if (!a.outputs.empty() && !b.outputs.empty()) compare(a.outputs[0], b.outputs[0], 2);
    for (size_t i = 0; i < std::min(a.inputs.size(), b.inputs.size()); ++i) {
      if (b.inputs[i] != ir::kAbsent && f_.values[at(b.inputs[i])].constant) compare(a.inputs[i], b.inputs[i], 1);
    }
    return score;
  }

  /// What likeness() cannot exceed: only operands that stand for nothing computed are compared with constants.
  int best_likeness(const ir::Node& node) const {
    const auto named = [&](int v) { return v != ir::kAbsent && !q_.values[at(v)].name.empty(); };
    const auto inputs = std::count_if(node.inputs.begin(), node.inputs.end(),
                                      [&](int v) { return named(v) && match_.value[at(v)] < 0; });
    return 2 * static_cast<int>(inputs) + (!node.outputs.empty() && named(node.outputs[0]) ? 4 : 0);
  }

  int find_node(const ir::Node& node) {
    Found found;
    const int enough = best_likeness(node);
    look_at({node.op, ir::kAbsent}, node, enough, found);
    int last = ir::kAbsent;
    for (const int v : node.inputs) {
      const int y = v == ir::kAbsent ? ir::kAbsent : match_.value[at(v)];
      if (y >= 0 && y != last) look_at({node.op, y}, node, enough, found);
      last = y;
    }
    return found.node;
  }

  struct Found {
    int node = -1;
    int score = -1;
  };

  /// Of equals the first: both files are in the same order.
  void look_at(const std::pair<ir::OpId, int>& key, const ir::Node& node, int enough, Found& found) {
    const auto list = candidates_.find(key);
    if (list == candidates_.end()) return;
    Candidates& candidates = list->second;
    while (candidates.first < candidates.nodes.size() && taken_[at(candidates.nodes[candidates.first])]) {
      ++candidates.first;
    }
    for (size_t i = candidates.first; i < candidates.nodes.size(); ++i) {
      check_.count(64);
      const int n = candidates.nodes[i];
      if (taken_[at(n)] || !fits(node, f_.nodes[at(n)])) continue;
      const int score = likeness(node, f_.nodes[at(n)]);
      if (score > found.score || (score == found.score && n < found.node)) found = {n, score};
      if (score >= enough) break;
    }
  }

  void accept(int n, int found) {
    match_.node[at(n)] = found;
    taken_[at(found)] = true;
    const ir::Node& node = q_.nodes[at(n)];
    for (size_t i = 0; i < node.outputs.size(); ++i) match_.value[at(node.outputs[i])] = f_.nodes[at(found)].outputs[i];
  }

  /// Where the nodes around differ, a tensor of the same name and shape is taken for the same.
  void match_outputs_by_name(const ir::Node& node) {
    for (int v : node.outputs) {
      const auto named = names_.find(q_.values[at(v)].name);
      if (named == names_.end() || q_.values[at(v)].name.empty()) continue;
      if (f_.values[at(named->second)].shape == q_.values[at(v)].shape) match_.value[at(v)] = named->second;
    }
  }

  const ir::Subgraph& q_;
  const ir::Subgraph& f_;
  Match match_;
  std::vector<bool> taken_;
  struct Candidates {
    std::vector<int> nodes;
    size_t first = 0;  // those before are taken
  };
  std::map<std::pair<ir::OpId, int>, Candidates> candidates_;  // float nodes by op and first computed operand
  PacedCheck check_;
  std::map<std::string, int> names_;
};

}  // namespace

bool changes_type_only(const ir::Node& node) {
  return ir::is_one_of(node.op, {op::kQuantize, op::kDequantize}) && node.inputs.size() == 1 &&
         node.outputs.size() == 1 && node.inputs[0] != ir::kAbsent;
}

bool is_quantized(const ir::Value& value) {
  switch (value.dtype) {
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kInt16:
    case DType::kInt4:
    case DType::kUInt4:
    case DType::kInt2:
      return !value.quantization.scale.empty();
    default:
      return false;
  }
}

bool is_real(const ir::Value& value) {
  return value.dtype == DType::kFloat32 || value.dtype == DType::kFloat16 || is_quantized(value);
}

Match match_subgraphs(const ir::Subgraph& quantized, const ir::Subgraph& reference) {
  return Matcher(quantized, reference).run();
}

}  // namespace leadline::debug
