// SPDX-License-Identifier: Apache-2.0
// Dense, EinsumDense, Embedding.
#include <algorithm>

#include "import/einsum.h"
#include "import/keras/importer.h"
#include "import/keras/layer_functions.h"

namespace leadline::keras {
namespace {

/// The parts of "ab,bc->ac", with letters for the axes that "..." stands for.
struct Equation {
  std::string input;
  std::string kernel;
  std::string output;
};

Equation read_equation(Call& call, int rank) {
  std::string text = call.config.text("equation");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const size_t comma = text.find(',');
  const size_t arrow = text.find("->");
  require(comma != std::string::npos && arrow != std::string::npos && comma < arrow, kBad,
          "the equation is '{}', expected two terms and a result, such as 'ab,bc->ac'", printable(text));
  Equation q{text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
  const size_t dots = q.input.find("...");
  if (dots == std::string::npos) return q;
  require(q.input.size() >= 3 && q.input.size() - 3 <= static_cast<size_t>(rank), kBad,
          "the equation '{}' names {} axes besides '...', the input has rank {}", printable(text), q.input.size() - 3,
          rank);
  std::string letters;
  for (size_t i = q.input.size() - 3; i < static_cast<size_t>(rank); ++i) {
    letters += static_cast<char>('0' + static_cast<int>(letters.size()));
  }
  q.input.replace(dots, 3, letters);
  const size_t out = q.output.find("...");
  require(out != std::string::npos, kBad, "the equation '{}' has '...' in its input, expected it in its result too",
          printable(text));
  q.output.replace(out, 3, letters);
  return q;
}

bool in(const std::string& text, char c) { return text.find(c) != std::string::npos; }

std::vector<int> permutation_to(const std::string& from, const std::string& to) {
  std::vector<int> result;
  for (const char c : to) result.push_back(static_cast<int>(from.find(c)));
  return result;
}

/// A bias in the axes of the output from its first one on, 1 where it has none.
int add_bias(Call& call, int y, const Equation& q, const std::string& axes) {
  const size_t first = q.output.find_first_of(axes);
  require(first != std::string::npos, kBad, "the bias has the axes '{}', expected axes of the result", printable(axes));
  Dims dims;
  for (size_t i = first; i < q.output.size(); ++i) {
    dims.push_back(in(axes, q.output[i]) ? call.e.dims(y)[i] : 1);
  }
  return call.e.add(y, call.constant(1, "bias", dims));
}

/// Equations that are not a FULLY_CONNECTED: the kernel is a constant like any tensor.
Outputs general_einsum(Call& call, int x, const Equation& q) {
  Dims kernel;
  for (const char c : q.kernel) {
    const size_t where = q.input.find(c);
    kernel.push_back(where == std::string::npos ? -1 : call.e.dims(x)[where]);
  }
  const int weights = call.constant(0, "kernel", kernel);
  int y = importing::einsum(call.e, q.input + "," + q.kernel + "->" + q.output, {x, weights});
  if (const auto bias_axes = call.config.find("bias_axes")) y = add_bias(call, y, q, bias_axes->text());
  return {activation_of(call, y, "activation")};
}

}  // namespace

Outputs dense(Call& call) {
  Emitter& e = call.e;
  call.refuse_if(call.config.has("lora_rank") && call.weight_count() > 2,
                 "has LoRA weights; merge them before the model is saved");
  const int x = e.cast(call.x(), DType::kFloat32);
  const int64_t units = call.config.integer("units");
  require(e.rank(x) >= 1, kBad, "the input has no axes");
  const int64_t size = e.dims(x).back();
  const int weights = call.constant(0, "kernel", {size, units}, {1, 0});
  // Programs look for the op's name in that of its weights, where TensorFlow's files have it.
  e.builder().rename(weights, e.name("MatMul/kernel"));
  const int bias = call.config.boolean("use_bias", true) ? call.constant(1, "bias", {units}) : ir::kAbsent;
  return {activation_of(call, e.fully_connected(x, weights, bias), "activation")};
}

/// Axes of the kernel are contracted with the input, or become axes of the output: a FULLY_CONNECTED between two
/// transpositions, most of which vanish.
Outputs einsum_dense(Call& call) {
  Emitter& e = call.e;
  const int x = e.cast(call.x(), DType::kFloat32);
  const Equation q = read_equation(call, e.rank(x));
  require(static_cast<int>(q.input.size()) == e.rank(x), kBad, "the equation has {} axes for an input of rank {}",
          q.input.size(), e.rank(x));
  std::string kept;
  std::string contracted;
  for (const char c : q.input) {
    if (in(q.kernel, c) == in(q.output, c)) return general_einsum(call, x, q);
    (in(q.kernel, c) ? contracted : kept) += c;
  }
  std::string made;
  for (const char c : q.output) {
    if (!in(q.input, c)) made += c;
  }
  Dims kernel_dims;
  for (const char c : q.kernel) {
    require(in(contracted, c) || in(made, c), kBad, "axis '{}' of the kernel is in no other term", c);
    const size_t where = q.input.find(c);
    kernel_dims.push_back(where == std::string::npos ? -1 : e.dims(x)[where]);
  }
  require(q.kernel.size() == contracted.size() + made.size(), kBad,
          "the equation '{},{}->{}' has an axis twice in one term", printable(q.input), printable(q.kernel),
          printable(q.output));
  const Weight& kernel = call.weight(0, "kernel", kernel_dims);
  const auto size_of = [&](char c) { return kernel.shape[static_cast<int>(q.kernel.find(c))]; };
  int64_t inner = 1;
  int64_t outer = 1;
  for (const char c : contracted) inner *= size_of(c);
  for (const char c : made) outer *= size_of(c);
  const int weights =
      call.constant(0, "kernel", kernel_dims, permutation_to(q.kernel, made + contracted), {outer, inner});

  const int front = e.transpose(x, permutation_to(q.input, kept + contracted));
  std::vector<Emitter::Size> flat;
  for (const char c : kept) flat.emplace_back(front, static_cast<int64_t>(kept.find(c)));
  std::vector<Emitter::Size> wide = flat;
  flat.emplace_back(-1, inner);
  const int rows = contracted.size() == 1 ? front : e.reshape_like(front, flat);
  int bias = ir::kAbsent;
  const auto bias_axes = call.config.find("bias_axes");
  std::string bias_text = bias_axes ? bias_axes->text() : "";
  const bool simple_bias = bias_text == made && q.output.ends_with(made);
  if (bias_axes && simple_bias) {
    Dims bias_dims;
    for (const char c : made) bias_dims.push_back(size_of(c));
    bias = call.constant(1, "bias", bias_dims, {}, {outer});
  }
  int y = e.fully_connected(rows, weights, bias);
  for (const char c : made) wide.emplace_back(-1, size_of(c));
  if (made.size() != 1) y = e.reshape_like(y, wide);
  y = e.transpose(y, permutation_to(kept + made, q.output));
  if (bias_axes && !simple_bias) y = add_bias(call, y, q, bias_text);
  return {activation_of(call, y, "activation")};
}

Outputs embedding(Call& call) {
  Emitter& e = call.e;
  const int table =
      call.constant(0, "embeddings", {call.config.integer("input_dim"), call.config.integer("output_dim")});
  const int indices = e.cast(call.x(), DType::kInt32);
  const int result = e.gather(table, indices, 0);
  if (call.config.boolean("mask_zero", false)) {
    call.importer.set_mask(result, e.compare("NOT_EQUAL", indices, e.integer(0)));
  }
  return {result};
}

/// An embedding that also maps back: to the scores of all entries.
Outputs reversible_embedding(Call& call) {
  Emitter& e = call.e;
  const Argument* second = call.arguments.find(1, "reverse");
  const bool reverse =
      second != nullptr && second->constant && second->constant->is_boolean() && second->constant->boolean();
  if (!reverse) return embedding(call);
  const int64_t entries = call.config.integer("input_dim");
  const int64_t size = call.config.integer("output_dim");
  const bool tied = call.config.boolean("tie_weights", true);
  const int weights = tied ? call.constant(0, "embeddings", {entries, size})
                           : call.constant(1, "reverse_embeddings", {size, entries}, {1, 0});
  int y = e.fully_connected(e.cast(call.x(), DType::kFloat32), weights, ir::kAbsent);
  if (const double cap = call.config.number("logit_soft_cap", 0.0); cap != 0.0) {
    y = e.mul(e.unary("TANH", e.mul(y, 1.0 / cap)), cap);
  }
  return {y};
}

}  // namespace leadline::keras
