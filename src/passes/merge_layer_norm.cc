// SPDX-License-Identifier: Apache-2.0
// Layer normalization as Keras, TensorFlow and Leadline's converter write it down. With mean and variance along the
// last axis and r = RSQRT(variance + epsilon):
//   (x - mean) r, then perhaps times a gain, then perhaps plus a shift
//   x s + (shift - mean s), or x s + (-mean) s, with s = r or r times a gain
#include <algorithm>

#include "ops/fused.h"
#include "ops/reduce.h"
#include "passes/editor.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

/// What nodes from one on backwards compute; each attempt is a new object.
class Pattern {
 public:
  Pattern(Editor& e, int last) : e_(e), nodes_({last}) {}

  bool find() {
    const ir::Node& last = e_.node(nodes_[0]);
    if (last.outputs.size() != 1 || !is_float(last.outputs[0])) return false;
    return joined(last) || centered(last.outputs[0]);
  }
  /// Nothing else uses what is between x and the result.
  bool is_closed() {
    return std::all_of(nodes_.begin() + 1, nodes_.end(), [&](int n) {
      const int v = e_.node(n).outputs[0];
      return !e_.is_output(v) && std::all_of(e_.consumers(v).begin(), e_.consumers(v).end(), [&](int reader) {
        return std::find(nodes_.begin(), nodes_.end(), reader) != nodes_.end();
      });
    });
  }
  bool fits() {
    const ir::Value& x = e_.value(x_);
    if (x.variable || x.shape.rank() < 1 || (axis_ != -1 && axis_ != x.shape.rank() - 1)) return false;
    const int64_t count = x.shape[x.shape.rank() - 1];
    return std::all_of(along_.begin(), along_.end(), [&](int v) {
      if (v == ir::kAbsent) return true;
      const Shape& shape = e_.value(v).shape;
      return is_float(v) && !e_.value(v).variable && shape.rank() >= 1 && shape.rank() <= x.shape.rank() &&
             shape[shape.rank() - 1] == count && shape.elements() == count;
    });
  }
  void apply() {
    auto a = std::make_shared<ops::LayerNormAttributes>();
    a->epsilon = epsilon_;
    a->axis = static_cast<int32_t>(axis_);
    for (size_t i = 1; i < nodes_.size(); ++i) e_.remove(nodes_[i]);
    e_.become(nodes_[0], op::kLayerNorm, {x_, along_[0], along_[1]}, std::move(a));
  }

 private:
  bool is_float(int v) { return v != ir::kAbsent && e_.value(v).dtype == DType::kFloat32; }

  /// The float node that makes `v` when it is `op` without an activation; null otherwise. It is part of the pattern.
  const ir::Node* take(int v, const ir::OpId& op) {
    const int n = v == ir::kAbsent ? -1 : e_.producer(v);
    if (n < 0 || !is(e_.node(n), op) || !is_float(v) || e_.value(v).variable) return nullptr;
    if (std::find(nodes_.begin(), nodes_.end(), n) == nodes_.end()) nodes_.push_back(n);
    return &e_.node(n);
  }
  static bool is(const ir::Node& node, const ir::OpId& op) {
    if (node.op != op || node.outputs.size() != 1) return false;
    return activation_of(*node.attributes).value_or(ir::Activation::kNone) == ir::Activation::kNone;
  }

  /// Tries both orders of a node's two operands; what a failed attempt took is forgotten.
  template <typename Attempt>
  bool either(const ir::Node& node, const Attempt& attempt) {
    if (node.inputs.size() != 2) return false;
    const Pattern before = *this;
    for (const int i : {0, 1}) {
      if (attempt(node.inputs[static_cast<size_t>(i)], node.inputs[static_cast<size_t>(1 - i)])) return true;
      restore(before);
    }
    return false;
  }
  void restore(const Pattern& before) {
    nodes_ = before.nodes_;
    along_ = before.along_;
    x_ = before.x_;
    mean_ = before.mean_;
    axis_ = before.axis_;
    epsilon_ = before.epsilon_;
  }

  /// MEAN(of) with its axis kept.
  bool mean_of(int v, int& of) {
    const ir::Node* mean = take(v, op::kMean);
    if (mean == nullptr || !ir::attributes_as<ops::ReduceAttributes>(*mean).keep_dims) return false;
    const auto axes = e_.ints(mean->inputs[1]);
    if (!axes || axes->size() != 1 || (axis_ != kNoAxis && axis_ != (*axes)[0])) return false;
    axis_ = (*axes)[0];
    of = mean->inputs[0];
    return is_float(of);
  }
  bool set_mean(int mean) {
    int x = ir::kAbsent;
    if (mean_ != ir::kAbsent) return mean == mean_;
    if (!mean_of(mean, x) || (x_ != ir::kAbsent && x_ != x)) return false;
    mean_ = mean;
    x_ = x;
    return true;
  }
  /// x - mean.
  bool difference(int v) {
    const ir::Node* node = take(v, op::kSub);
    return node != nullptr && set_mean(node->inputs[1]) && node->inputs[0] == x_;
  }
  bool squares(int v) {
    if (const ir::Node* node = take(v, op::kSquaredDifference)) {
      return either(*node, [&](int a, int b) { return set_mean(b) && a == x_; });
    }
    if (const ir::Node* node = take(v, op::kSquare)) return difference(node->inputs[0]);
    const ir::Node* node = take(v, op::kMul);
    return node != nullptr && node->inputs[0] == node->inputs[1] && difference(node->inputs[0]);
  }
  /// r, or r times a gain.
  bool scale(int v) {
    if (const ir::Node* product = take(v, op::kMul)) {
      if (along_[0] != ir::kAbsent) return false;
      return either(*product, [&](int root, int gain) {
        along_[0] = gain;
        return inverse_root(root);
      });
    }
    return inverse_root(v);
  }
  bool inverse_root(int v) {
    const ir::Node* root = take(v, op::kRsqrt);
    const ir::Node* sum = root == nullptr ? nullptr : take(root->inputs[0], op::kAdd);
    if (sum == nullptr) return false;
    return either(*sum, [&](int variance, int small) {
      const auto number = e_.number(small);
      int of = ir::kAbsent;
      if (!number || e_.value(small).shape.rank() > 1 || !mean_of(variance, of)) return false;
      epsilon_ = *number;
      return squares(of);
    });
  }

  /// (x - mean) r, times a gain, plus a shift.
  bool centered(int v) {
    const Pattern before = *this;
    if (normalized(v)) return true;
    restore(before);
    const ir::Node* sum = take(v, op::kAdd);
    return sum != nullptr && either(*sum, [&](int product, int shift) {
             along_[1] = shift;
             return normalized(product);
           });
  }
  bool normalized(int v) {
    const ir::Node* product = take(v, op::kMul);
    if (product == nullptr) return false;
    if (either(*product, [&](int d, int s) { return scale(s) && difference(d); })) return true;
    return either(*product, [&](int inner, int gain) {
      const ir::Node* node = take(inner, op::kMul);
      along_[0] = gain;
      return node != nullptr && either(*node, [&](int d, int r) { return inverse_root(r) && difference(d); });
    });
  }
  /// x s + (shift - mean s), or x s + (-mean) s.
  bool joined(const ir::Node& last) {
    if (!is(last, op::kAdd)) return false;
    return either(last, [&](int first, int second) {
      const ir::Node* product = take(first, op::kMul);
      if (product == nullptr) return false;
      return either(*product, [&](int x, int s) { return scale(s) && x == x_ && offset(second, s); });
    });
  }
  bool offset(int v, int s) {
    if (const ir::Node* node = take(v, op::kSub)) {
      along_[1] = node->inputs[0];
      const ir::Node* product = take(node->inputs[1], op::kMul);
      return product != nullptr && either(*product, [&](int a, int b) { return a == mean_ && b == s; });
    }
    const ir::Node* product = take(v, op::kMul);
    if (product == nullptr) return false;
    return either(*product, [&](int a, int b) {
      const ir::Node* minus = take(a, op::kNeg);
      return minus != nullptr && minus->inputs[0] == mean_ && b == s;
    });
  }

  static constexpr int64_t kNoAxis = INT64_MIN;

  Editor& e_;
  std::vector<int> nodes_;                               // the last first
  std::vector<int> along_ = {ir::kAbsent, ir::kAbsent};  // gain and shift
  int x_ = ir::kAbsent;
  int mean_ = ir::kAbsent;
  int64_t axis_ = kNoAxis;
  float epsilon_ = 0.0F;
};

bool merge_norm(Editor& e, int n) {
  const ir::Node& node = e.node(n);
  if ((node.op != op::kAdd && node.op != op::kMul)) return false;
  Pattern pattern(e, n);
  if (!pattern.find() || !pattern.is_closed() || !pattern.fits()) return false;
  pattern.apply();
  return true;
}

}  // namespace

int merge_layer_norm(PassTarget target) {
  return for_each_subgraph(target, [](Editor& editor, int) {
    int changes = 0;
    for (int n = editor.node_count() - 1; n >= 0; --n) {  // from the end: gain and shift belong to it
      if (!editor.removed(n) && merge_norm(editor, n)) ++changes;
    }
    return changes;
  });
}

}  // namespace leadline::passes
