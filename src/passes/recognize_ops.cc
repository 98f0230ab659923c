// SPDX-License-Identifier: Apache-2.0
// Finds, from their last node, the forms in which frameworks write down ops that LiteRT has whole. A node that is
// recognized reads the data itself; what was between is removed when nothing else reads it.
#include <algorithm>
#include <cmath>

#include "ops/activation.h"
#include "ops/normalization.h"
#include "ops/reduce.h"
#include "passes/editor.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

constexpr int64_t kMostSlopes = int64_t{1} << 20;

bool near(double x, double wanted) { return std::fabs(x - wanted) <= 1e-5 * std::fabs(wanted); }

/// Reads the graph backwards from a value.
class Reader {
 public:
  explicit Reader(Editor& e) : e_(e) {}

  /// The node that makes `v` when it is `op` without a fused activation; null otherwise.
  const ir::Node* made_by(int v, const ir::OpId& op) {
    const int n = e_.producer(v);
    if (n < 0 || e_.node(n).op != op) return nullptr;
    const auto activation = activation_of(*e_.node(n).attributes);
    return activation.value_or(ir::Activation::kNone) == ir::Activation::kNone ? &e_.node(n) : nullptr;
  }

  struct Pair {
    int data = ir::kAbsent;
    float number = 0;
  };
  /// Operands of a node with two of them, one a single number.
  std::optional<Pair> with_number(const ir::Node& node) {
    for (size_t i : {size_t{0}, size_t{1}}) {
      if (const auto number = e_.number(node.inputs[1 - i])) return Pair{node.inputs[i], *number};
    }
    return {};
  }
  /// The other operand when `v` is the sum of it and `number`.
  std::optional<int> less(int v, double number) {
    const ir::Node* sum = made_by(v, op::kAdd);
    const auto pair = sum != nullptr ? with_number(*sum) : std::nullopt;
    if (!pair || !near(pair->number, number)) return {};
    return pair->data;
  }

  /// A product of numbers and other values; powers count as often as they say.
  struct Product {
    double number = 1;
    std::vector<int> factors;
    bool is(double wanted, std::vector<int> values) const {
      auto sorted = factors;
      std::sort(sorted.begin(), sorted.end());
      std::sort(values.begin(), values.end());
      return near(number, wanted) && sorted == values;
    }
  };
  Product product(int v) {
    Product result;
    multiply(v, result, kDeepest);
    return result;
  }

 private:
  static constexpr int kDeepest = 4;

  void multiply(int v, Product& result, int depth) {
    if (const auto number = e_.number(v)) {
      result.number *= *number;
      return;
    }
    if (depth > 0) {
      if (const ir::Node* node = made_by(v, op::kMul)) {
        for (int operand : node->inputs) multiply(operand, result, depth - 1);
        return;
      }
      const ir::Node* quotient = made_by(v, op::kDiv);
      const auto divisor = quotient != nullptr ? e_.number(quotient->inputs[1]) : std::nullopt;
      if (divisor && *divisor != 0) {
        result.number /= *divisor;
        return multiply(quotient->inputs[0], result, depth - 1);
      }
      const ir::Node* power = made_by(v, op::kPow);
      const auto exponent = power != nullptr ? e_.number(power->inputs[1]) : std::nullopt;
      if (exponent == 2.0F || exponent == 3.0F) {
        result.factors.insert(result.factors.end(), static_cast<size_t>(*exponent), power->inputs[0]);
        return;
      }
      if (const ir::Node* square = made_by(v, op::kSquare)) {
        result.factors.insert(result.factors.end(), 2, square->inputs[0]);
        return;
      }
    }
    result.factors.push_back(v);
  }

  Editor& e_;
};

/// An op that does what a node and those before it do.
struct Found {
  ir::OpId op;
  std::vector<int> inputs;
  std::shared_ptr<const ir::Attributes> attributes = nullptr;
};

/// min(max(x, low), high), in any order and with RELU for max(x, 0).
std::optional<Found> clip(Reader& read, const ir::Node& node) {
  const bool upper = node.op == op::kMinimum;
  const auto outer = read.with_number(node);
  if (!outer) return {};
  float low = upper ? 0 : outer->number;
  float high = upper ? outer->number : 0;
  if (upper) {
    if (const ir::Node* relu = read.made_by(outer->data, op::kRelu)) {
      if (high == 6.0F) return Found{op::kRelu6, {relu->inputs[0]}};
      if (high == 1.0F) return Found{op::kRelu0To1, {relu->inputs[0]}};
    }
  }
  const ir::Node* other = read.made_by(outer->data, upper ? op::kMaximum : op::kMinimum);
  const auto inner = other != nullptr ? read.with_number(*other) : std::nullopt;
  if (inner) {
    (upper ? low : high) = inner->number;
    if (low == 0.0F && high == 6.0F) return Found{op::kRelu6, {inner->data}};
    if (low == 0.0F && high == 1.0F) return Found{op::kRelu0To1, {inner->data}};
    if (low == -1.0F && high == 1.0F) return Found{op::kReluN1To1, {inner->data}};
  }
  if (!upper && low == 0.0F) {
    // A minimum that waits for its maximum becomes RELU6 or RELU_0_TO_1 with it; nothing else is lost.
    return Found{op::kRelu, {outer->data}};
  }
  return {};
}

/// max(x, alpha x) with alpha between 0 and 1.
std::optional<Found> leaky_relu(Reader& read, const ir::Node& node) {
  if (node.op != op::kMaximum) return {};
  for (size_t i : {size_t{0}, size_t{1}}) {
    const ir::Node* scaled = read.made_by(node.inputs[1 - i], op::kMul);
    const auto pair = scaled != nullptr ? read.with_number(*scaled) : std::nullopt;
    if (!pair || pair->data != node.inputs[i] || !(pair->number > 0 && pair->number < 1)) continue;
    auto a = std::make_shared<ops::LeakyReluAttributes>();
    a->alpha = pair->number;
    return Found{op::kLeakyRelu, {pair->data}, a};
  }
  return {};
}

/// relu(x) + c * relu(-x), where c is minus alpha.
std::optional<Found> prelu(Editor& e, Reader& read, const ir::Node& node) {
  if (e.for_runs()) return {};  // alpha would be a new constant
  for (size_t i : {size_t{0}, size_t{1}}) {
    const ir::Node* positive = read.made_by(node.inputs[i], op::kRelu);
    const ir::Node* negative = read.made_by(node.inputs[1 - i], op::kMul);
    if (positive == nullptr || negative == nullptr) continue;
    const int x = positive->inputs[0];
    for (size_t k : {size_t{0}, size_t{1}}) {
      const ir::Node* relu = read.made_by(negative->inputs[k], op::kRelu);
      const ir::Node* minus = relu != nullptr ? read.made_by(relu->inputs[0], op::kNeg) : nullptr;
      const int slope = negative->inputs[1 - k];
      if (minus == nullptr || minus->inputs[0] != x || e.value(slope).shape.rank() > e.value(x).shape.rank()) continue;
      auto numbers = e.floats(slope, kMostSlopes);
      if (!numbers) continue;
      for (float& number : *numbers) number = -number;
      const Shape shape = e.value(slope).shape;
      return Found{op::kPrelu, {x, e.add_constant(e.value(slope).name, DType::kFloat32, shape, *numbers)}};
    }
  }
  return {};
}

/// Whether `v` is relu6(x + 3).
bool is_shifted_relu6(Editor& e, Reader& read, int v, int x) {
  if (const ir::Node* relu = read.made_by(v, op::kRelu6)) return read.less(relu->inputs[0], 3) == x;
  const int n = e.producer(v);
  if (n < 0 || e.node(n).op != op::kAdd || activation_of(*e.node(n).attributes) != ir::Activation::kRelu6) return false;
  const auto pair = read.with_number(e.node(n));
  return pair && pair->data == x && pair->number == 3.0F;
}

/// Whether `v` is 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)).
bool is_gelu_gate(Reader& read, int v, int x) {
  const auto bend = read.less(v, 1);
  const ir::Node* tanh = bend ? read.made_by(*bend, op::kTanh) : nullptr;
  if (tanh == nullptr) return false;
  const auto argument = read.product(tanh->inputs[0]);
  if (argument.factors.size() != 1 || !near(argument.number, 0.7978845608)) return false;
  const ir::Node* sum = read.made_by(argument.factors[0], op::kAdd);
  if (sum == nullptr) return false;
  return std::any_of(sum->inputs.begin(), sum->inputs.end(), [&](int part) {
    return part != x && sum->inputs[part == sum->inputs[0] ? 1 : 0] == x && read.product(part).is(0.044715, {x, x, x});
  });
}

/// Whether `v` is the sum of x^2 along the last axis, kept as 1.
bool is_sum_of_squares(Editor& e, Reader& read, int v, int x) {
  const ir::Node* sum = read.made_by(v, op::kSum);
  if (sum == nullptr || !ir::attributes_as<ops::ReduceAttributes>(*sum).keep_dims) return false;
  const auto axes = e.ints(sum->inputs[1]);
  const int rank = e.value(x).shape.rank();
  return rank > 0 && axes && axes->size() == 1 && ((*axes)[0] == -1 || (*axes)[0] == rank - 1) &&
         read.product(sum->inputs[0]).is(1, {x, x});
}

/// x / max(|x|, 1e-6): the bound is that of LiteRT's kernel.
bool is_inverse_length(Editor& e, Reader& read, int v, int x) {
  const ir::Node* root = read.made_by(v, op::kRsqrt);
  const ir::Node* bound = root != nullptr ? read.made_by(root->inputs[0], op::kMaximum) : nullptr;
  const auto pair = bound != nullptr ? read.with_number(*bound) : std::nullopt;
  return pair && near(pair->number, 1e-12) && is_sum_of_squares(e, read, pair->data, x);
}

std::optional<Found> product(Editor& e, Reader& read, const ir::Node& node) {
  constexpr int kMostRankOfL2 = 4;
  const auto all = read.product(node.outputs[0]);
  if (all.factors.size() != 2) return {};
  for (size_t i : {size_t{0}, size_t{1}}) {
    const int x = all.factors[i];
    const int gate = all.factors[1 - i];
    if (near(all.number, 1.0 / 6) && is_shifted_relu6(e, read, gate, x)) return Found{op::kHardSwish, {x}};
    if (near(all.number, 0.5) && is_gelu_gate(read, gate, x)) {
      auto a = std::make_shared<ops::GeluAttributes>();
      a->approximate = true;
      return Found{op::kGelu, {x}, a};
    }
    if (all.number == 1 && e.value(x).shape.rank() <= kMostRankOfL2 && is_inverse_length(e, read, gate, x)) {
      return Found{op::kL2Normalization, {x}};
    }
  }
  return {};
}

/// For runs: node `n` is the only reader of something it would not read any more, so that memory does not grow.
bool frees_memory(Editor& e, int n, const std::vector<int>& inputs) {
  return std::any_of(e.node(n).inputs.begin(), e.node(n).inputs.end(), [&](int v) {
    const bool kept = std::find(inputs.begin(), inputs.end(), v) != inputs.end();
    return !kept && e.producer(v) >= 0 && !e.is_output(v) && e.consumers(v).size() == 1;
  });
}

/// Removes the nodes that made these values, and what they alone read, where nothing reads them any more.
void remove_unread(Editor& e, std::vector<int> values) {
  while (!values.empty()) {
    const int v = values.back();
    values.pop_back();
    const int maker = e.producer(v);
    if (maker < 0 || e.is_output(v) || !e.consumers(v).empty() || e.node(maker).outputs.size() != 1) continue;
    if (!is_pure(e.graph(), e.subgraph(), e.node(maker))) continue;
    values.insert(values.end(), e.node(maker).inputs.begin(), e.node(maker).inputs.end());
    e.remove(maker);
  }
}

bool recognize(Editor& e, int n) {
  const ir::Node& node = e.node(n);
  if (node.inputs.size() != 2 || node.outputs.size() != 1) return false;
  const int out = node.outputs[0];
  if (e.value(out).dtype != DType::kFloat32 || e.value(out).quantization.quantized()) return false;
  if (activation_of(*node.attributes).value_or(ir::Activation::kNone) != ir::Activation::kNone) return false;
  Reader read(e);
  std::optional<Found> found;
  if (node.op == op::kMaximum || node.op == op::kMinimum) {
    found = leaky_relu(read, node);
    if (!found) found = clip(read, node);
  } else if (node.op == op::kAdd) {
    found = prelu(e, read, node);
  } else if (node.op == op::kMul || node.op == op::kDiv) {
    found = product(e, read, node);
  }
  if (!found || e.value(found->inputs[0]).variable) return false;
  if (dims_of(e.value(found->inputs[0])) != dims_of(e.value(out))) return false;
  const std::vector<int> before = node.inputs;
  if (e.for_runs() && !frees_memory(e, n, found->inputs)) return false;
  e.become(n, found->op, std::move(found->inputs), std::move(found->attributes));
  if (e.for_runs()) remove_unread(e, before);
  return true;
}

}  // namespace

int recognize_ops(PassTarget target) { return for_each_node(target, recognize); }

}  // namespace leadline::passes
