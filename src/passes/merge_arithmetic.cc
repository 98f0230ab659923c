// SPDX-License-Identifier: Apache-2.0
// x + 0, x - 0, x * 1 and x / 1 are x; (x + a) + b is x + (a + b), and (x * a) * b is x * (a * b), up to rounding.
#include <algorithm>
#include <cmath>

#include "passes/editor.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

constexpr int64_t kMostNumbers = int64_t{1} << 16;

/// An arithmetic node with one constant operand, as data + numbers or data * numbers.
struct Step {
  int data = 0;
  int constant = 0;
  bool sum = false;      // otherwise a product
  bool inverse = false;  // the operand is subtracted or divides
};

std::optional<Step> step_of(Editor& e, const ir::Node& node) {
  const bool sum = node.op == op::kAdd || node.op == op::kSub;
  if (!sum && node.op != op::kMul && node.op != op::kDiv) return {};
  const bool inverse = node.op == op::kSub || node.op == op::kDiv;
  const bool swapped = !inverse && e.is_constant(node.inputs[0]);
  const Step step{node.inputs[swapped ? 1 : 0], node.inputs[swapped ? 0 : 1], sum, inverse};
  if (e.is_constant(step.data) || !e.is_constant(step.constant)) return {};
  if (e.value(step.data).quantization.quantized() || e.value(node.outputs[0]).quantization.quantized()) return {};
  // The constant must not stretch the other operand.
  if (dims_of(e.value(step.data)) != dims_of(e.value(node.outputs[0]))) return {};
  return step;
}

bool is_plain(const ir::Node& node) { return activation_of(*node.attributes) == ir::Activation::kNone; }

bool is_neutral(Editor& e, const Step& step) {
  const auto is_all = [&](const auto& numbers) {
    return numbers && std::all_of(numbers->begin(), numbers->end(), [&](auto x) { return x == (step.sum ? 0 : 1); });
  };
  return is_all(e.floats(step.constant, kMostNumbers)) || is_all(e.ints(step.constant));
}

bool remove_neutral(Editor& e, int n, const Step& step) {
  if (!is_plain(e.node(n)) || !is_neutral(e, step)) return false;
  if (e.value(step.data).variable || !e.replace(e.node(n).outputs[0], step.data)) return false;
  if (!e.removed(n)) e.remove(n);
  return true;
}

/// What must be added to x, or multiplied with it, instead of both operands; nothing when that loses a number's range.
std::optional<std::vector<float>> joined_numbers(std::vector<float> first, std::vector<float> second, const Step& inner,
                                                 const Step& outer) {
  const size_t count = std::max(first.size(), second.size());
  if (first.size() != count && first.size() != 1) return {};
  if (second.size() != count && second.size() != 1) return {};
  std::vector<float> joint(count);
  for (size_t i = 0; i < count; ++i) {
    const double a = first[first.size() == 1 ? 0 : i];
    const double b = second[second.size() == 1 ? 0 : i];
    double both = 0;
    if (inner.sum) {
      both = (inner.inverse ? -a : a) + (outer.inverse ? -b : b);
    } else {
      if ((inner.inverse && a == 0) || (outer.inverse && b == 0)) return {};
      both = (inner.inverse ? 1 / a : a) * (outer.inverse ? 1 / b : b);
    }
    joint[i] = static_cast<float>(both);
    if (!std::isfinite(joint[i]) || (both != 0 && !std::isnormal(joint[i]))) return {};
  }
  return joint;
}

bool merge_steps(Editor& e, int n, const Step& outer) {
  const int before = e.producer(outer.data);
  if (before < 0 || !e.used_once(outer.data) || !is_plain(e.node(before))) return false;
  const auto inner = step_of(e, e.node(before));
  if (!inner || inner->sum != outer.sum || e.value(inner->data).variable) return false;
  auto first = e.floats(inner->constant, kMostNumbers);
  auto second = e.floats(outer.constant, kMostNumbers);
  if (!first || !second || first->empty() || second->empty()) return false;
  const int shaped = first->size() >= second->size() ? inner->constant : outer.constant;
  if (first->size() == second->size() && !(e.value(inner->constant).shape == e.value(outer.constant).shape))
    return false;
  const auto joint = joined_numbers(std::move(*first), std::move(*second), *inner, outer);
  if (!joint) return false;
  const Shape shape = e.value(shaped).shape;
  const int constant = e.add_constant(e.value(outer.constant).name, DType::kFloat32, shape, *joint);
  e.become(n, outer.sum ? op::kAdd : op::kMul, {inner->data, constant}, e.node(n).attributes);
  return true;
}

bool merge_step(Editor& e, int n) {
  const auto step = step_of(e, e.node(n));
  return step && (remove_neutral(e, n, *step) || merge_steps(e, n, *step));
}

}  // namespace

int merge_arithmetic(PassTarget target) { return for_each_node(target, merge_step); }

}  // namespace leadline::passes
