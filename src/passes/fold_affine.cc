// SPDX-License-Identifier: Apache-2.0
// Products and sums with constants per channel become part of a neighbouring contraction:
//   (w x + b) * c + d  =  (w * c) x + (b * c + d)       per output channel, behind the contraction
//   w (c * x + d) + b  =  (w * c) x + (b + w d)         per input channel, before it; d only without padding
#include <algorithm>
#include <map>
#include <tuple>

#include "ops/fully_connected.h"
#include "passes/conv_geometry.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

constexpr int64_t kMostChannels = int64_t{1} << 20;

/// Where a contraction with weights that passes may change keeps what; null for other nodes.
const ops::OpDef* contraction_of(const ir::Node& node) {
  const ops::OpDef* op = ops::row_of(node);
  if (op == nullptr || !op->contraction.has_weights()) return nullptr;
  const auto* dense = ir::attributes_if<ops::FullyConnectedAttributes>(*node.attributes);
  if (dense != nullptr && dense->weights_format != ops::WeightsFormat::kDefault) return nullptr;
  return op;
}

bool is_float_contraction(Editor& e, const ir::Node& node, const ops::ContractionOperands& c) {
  if (static_cast<int>(node.inputs.size()) <= std::max(c.activations, c.weights)) return false;
  const int weights = node.inputs[static_cast<size_t>(c.weights)];
  const int data = node.inputs[static_cast<size_t>(c.activations)];
  if (!e.is_constant(weights) || data == ir::kAbsent) return false;
  return e.value(weights).dtype == DType::kFloat32 && e.value(weights).shape.rank() == c.rank &&
         e.value(data).dtype == DType::kFloat32 && e.value(node.outputs[0]).dtype == DType::kFloat32 &&
         !e.value(data).quantization.quantized();
}

/// An op with a constant, as x * scale + shift per channel.
struct Affine {
  int data = 0;              // the value that is not a constant
  std::vector<float> scale;  // empty: 1
  std::vector<float> shift;  // empty: 0
  ir::Activation activation = ir::Activation::kNone;
};

/// The numbers of constant `v` for each of `channels`, when it is stretched along all axes but the last of a tensor of
/// rank `rank`.
std::optional<std::vector<float>> per_channel(Editor& e, int v, int64_t channels, int rank) {
  if (!e.is_constant(v) || channels > kMostChannels || e.value(v).shape.rank() > rank) return {};
  const Shape& shape = e.value(v).shape;
  for (int axis = 0; axis + 1 < shape.rank(); ++axis) {
    if (shape[axis] != 1) return {};
  }
  auto numbers = e.floats(v, channels);
  if (!numbers || (numbers->size() != 1 && static_cast<int64_t>(numbers->size()) != channels)) return {};
  if (numbers->size() == 1) numbers->assign(static_cast<size_t>(channels), (*numbers)[0]);
  return numbers;
}

std::optional<Affine> affine_of(Editor& e, const ir::Node& node) {
  const bool add = node.op == op::kAdd;
  const bool mul = node.op == op::kMul;
  const bool sub = node.op == op::kSub;
  const bool div = node.op == op::kDiv;
  if (!add && !mul && !sub && !div) return {};
  if (e.value(node.outputs[0]).dtype != DType::kFloat32) return {};
  const bool swapped = (add || mul) && e.is_constant(node.inputs[0]);
  Affine a;
  a.data = node.inputs[swapped ? 1 : 0];
  const int constant = node.inputs[swapped ? 0 : 1];
  if (e.is_constant(a.data) || !e.is_constant(constant)) return {};
  // The constant must not stretch the other operand.
  const auto dims = dims_of(e.value(a.data));
  if (dims.empty() || dims.back() < 1 || dims != dims_of(e.value(node.outputs[0]))) return {};
  auto numbers = per_channel(e, constant, dims.back(), static_cast<int>(dims.size()));
  if (!numbers) return {};
  if (sub) {
    for (float& x : *numbers) x = -x;
  }
  if (div) {
    for (float& x : *numbers) {
      if (x == 0.0F) return {};
      x = 1.0F / x;
    }
  }
  (add || sub ? a.shift : a.scale) = std::move(*numbers);
  a.activation = activation_of(*node.attributes).value_or(ir::Activation::kNone);
  return a;
}

/// sum over all but the output axis of w[o, ..., i] * shift[i], plus the bias. Extra memory: the weights.
class ShiftedBias final : public ir::PlannedSource {
 public:
  ShiftedBias(ir::Source weights, ir::Source bias, std::vector<float> shift, int64_t outputs)
      : weights_(std::move(weights)), bias_(std::move(bias)), shift_(std::move(shift)), outputs_(outputs) {}
  int64_t bytes() const override { return outputs_ * static_cast<int64_t>(sizeof(float)); }
  int64_t extra_bytes() const override {
    return weights_->bytes() + bytes() + std::max(ir::extra_bytes(*weights_), bias_ ? ir::extra_bytes(*bias_) : 0);
  }
  void read(std::span<std::byte> out) const override {
    std::vector<float> weights(static_cast<size_t>(weights_->bytes()) / sizeof(float));
    weights_->read(std::as_writable_bytes(std::span(weights)));
    std::vector<float> sums(static_cast<size_t>(outputs_));
    if (bias_) bias_->read(std::as_writable_bytes(std::span(sums)));
    const size_t per_output = weights.size() / sums.size();
    for (size_t o = 0; o < sums.size(); ++o) {
      double sum = 0;
      for (size_t k = 0; k < per_output; ++k) {
        sum += static_cast<double>(weights[o * per_output + k]) * shift_[k % shift_.size()];
      }
      sums[o] += static_cast<float>(sum);
    }
    std::copy_n(std::as_bytes(std::span(sums)).begin(), out.size(), out.begin());
  }

 private:
  ir::Source weights_;
  ir::Source bias_;
  std::vector<float> shift_;
  int64_t outputs_;
};

class Folder {
 public:
  explicit Folder(Editor& editor) : e_(editor) {}

  int run() {
    return for_each_node(e_, [this](Editor&, int n) { return fold_behind(n) || fold_before(n); });
  }

 private:
  /// Weights that several contractions share must not be written twice for it: all of them must be scaled alike, and
  /// share the result.
  bool may_scale(int weights, const std::vector<float>& factors, int axis) {
    const auto& users = e_.consumers(weights);
    return users.size() == 1 || scaled_.contains({weights, axis, factors}) ||
           std::all_of(users.begin(), users.end(), [&](int user) { return is_scaled_by(user, factors); });
  }

  bool is_scaled_by(int n, const std::vector<float>& factors) {
    if (!contraction_of(e_.node(n)) || !e_.used_once(e_.node(n).outputs[0])) return false;
    const auto affine = affine_of(e_, e_.node(*e_.consumers(e_.node(n).outputs[0]).begin()));
    return affine && affine->scale == factors;
  }

  int scaled(int weights, const std::vector<float>& factors, int axis) {
    const auto [it, is_new] = scaled_.try_emplace({weights, axis, factors}, 0);
    if (is_new) {
      const ir::Value& w = e_.value(weights);
      const std::string name = w.name;
      const Shape shape = w.shape;
      it->second =
          e_.add_constant(name, DType::kFloat32, shape, ir::scaled_source(e_.source_of(weights), shape, axis, factors));
    }
    return it->second;
  }

  int bias_value(const ir::Node& node, const ops::ContractionOperands& c) {
    return static_cast<int>(node.inputs.size()) > c.bias ? node.inputs[static_cast<size_t>(c.bias)] : ir::kAbsent;
  }

  /// The bias as numbers, zeros when there is none; nothing when it is not a constant vector.
  std::optional<std::vector<float>> bias_of(const ir::Node& node, const ops::ContractionOperands& c, int64_t channels) {
    const int bias = bias_value(node, c);
    if (bias == ir::kAbsent) return std::vector<float>(static_cast<size_t>(channels));
    auto numbers = e_.floats(bias, channels);
    if (!numbers || static_cast<int64_t>(numbers->size()) != channels) return {};
    return numbers;
  }

  /// Node `n` = contraction * scale or + shift.
  bool fold_behind(int n) {
    const auto affine = affine_of(e_, e_.node(n));
    if (!affine || !e_.used_once(affine->data)) return false;
    const int before = e_.producer(affine->data);
    if (before < 0) return false;
    const ir::Node& node = e_.node(before);
    const ops::OpDef* op = contraction_of(node);
    if (op == nullptr || !is_float_contraction(e_, node, op->contraction)) return false;
    const ops::ContractionOperands& c = op->contraction;
    if (activation_of(*node.attributes) != ir::Activation::kNone) return false;
    const int weights = node.inputs[static_cast<size_t>(c.weights)];
    const int64_t channels = e_.value(weights).shape[c.output_axis];
    const auto& numbers = affine->scale.empty() ? affine->shift : affine->scale;
    auto bias = bias_of(node, c, channels);
    if (!bias || static_cast<int64_t>(numbers.size()) != channels) return false;
    const bool had_bias = bias_value(node, c) != ir::kAbsent;
    if (!affine->scale.empty()) {
      if (!may_scale(weights, affine->scale, c.output_axis)) return false;
      e_.set_input(before, c.weights, scaled(weights, affine->scale, c.output_axis));
      for (size_t i = 0; i < bias->size(); ++i) (*bias)[i] *= affine->scale[i];
    } else {
      for (size_t i = 0; i < bias->size(); ++i) (*bias)[i] += affine->shift[i];
    }
    const int result = e_.node(n).outputs[0];
    if (had_bias || !affine->shift.empty()) {
      const std::string name = had_bias ? e_.value(bias_value(node, c)).name : e_.value(result).name + "/bias";
      e_.set_input(before, c.bias, e_.add_constant(name, DType::kFloat32, {channels}, *bias));
    }
    e_.remove(n);
    e_.set_output(before, result);
    e_.set_attributes(before, with_activation(*e_.node(before).attributes, affine->activation));
    return true;
  }

  /// Node `n` = contraction of a product or a sum.
  bool fold_before(int n) {
    const ir::Node& node = e_.node(n);
    const ops::OpDef* op = contraction_of(node);
    if (op == nullptr || !is_float_contraction(e_, node, op->contraction)) return false;
    const ops::ContractionOperands& c = op->contraction;
    const bool dense = c.kind == ops::ContractionKind::kDense;
    const bool depthwise = c.kind == ops::ContractionKind::kDepthwise;
    if (!dense && op->window == nullptr) return false;  // it is not known where it pads
    const int data = node.inputs[static_cast<size_t>(c.activations)];
    const int before = e_.producer(data);
    if (before < 0 || !e_.used_once(data)) return false;
    const auto affine = affine_of(e_, e_.node(before));
    if (!affine || affine->activation != ir::Activation::kNone) return false;
    const int weights = node.inputs[static_cast<size_t>(c.weights)];
    const Shape& shape = e_.value(weights).shape;
    const int64_t channels = shape[c.input_axis];
    const auto& numbers = affine->scale.empty() ? affine->shift : affine->scale;
    if (numbers.empty() || channels % static_cast<int64_t>(numbers.size()) != 0) return false;
    // FULLY_CONNECTED may take several pixels for one row; then channels repeat, as they lie in memory.
    const int64_t repeats = channels / static_cast<int64_t>(numbers.size());
    if (repeats != 1 && !dense && !depthwise) return false;
    std::vector<float> factors;
    for (int64_t i = 0; i < channels; ++i) {
      const int64_t k = depthwise ? i / repeats : i % static_cast<int64_t>(numbers.size());
      factors.push_back(numbers[static_cast<size_t>(k)]);
    }
    if (!affine->scale.empty()) {
      if (e_.consumers(weights).size() != 1) return false;
      e_.set_input(n, c.weights, scaled(weights, factors, c.input_axis));
    } else if (depthwise || !shift_bias(n, c, weights, factors)) {
      return false;
    }
    e_.set_input(n, c.activations, affine->data);
    return true;
  }

  bool shift_bias(int n, const ops::ContractionOperands& c, int weights, const std::vector<float>& factors) {
    const ir::Node& node = e_.node(n);
    const auto geometry = conv_geometry(e_, node);
    if (geometry && geometry->padding != ir::Padding::kValid &&
        (geometry->rows.filter != 1 || geometry->columns.filter != 1)) {
      return false;
    }
    const int64_t outputs = e_.value(weights).shape[c.output_axis];
    const int bias = bias_value(node, c);
    if (outputs == 0 || (bias != ir::kAbsent && (!e_.is_constant(bias) || e_.value(bias).dtype != DType::kFloat32 ||
                                                 e_.value(bias).shape.elements() != outputs))) {
      return false;
    }
    const std::string name = bias != ir::kAbsent ? e_.value(bias).name : e_.value(node.outputs[0]).name + "/bias";
    auto source = std::make_shared<ShiftedBias>(e_.source_of(weights),
                                                bias != ir::kAbsent ? e_.source_of(bias) : nullptr, factors, outputs);
    e_.set_input(n, c.bias, e_.add_constant(name, DType::kFloat32, {outputs}, ir::Source(source)));
    return true;
  }

  Editor& e_;
  std::map<std::tuple<int, int, std::vector<float>>, int> scaled_;
};

}  // namespace

int fold_affine(PassTarget target) {
  return for_each_subgraph(target, [](Editor& editor, int) { return Folder(editor).run(); });
}

}  // namespace leadline::passes
