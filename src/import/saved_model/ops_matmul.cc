// SPDX-License-Identifier: Apache-2.0
// Products of matrices. Constant right sides become the weights of FULLY_CONNECTED.
#include <algorithm>

#include "import/saved_model/op_functions.h"

namespace leadline::saved_model {
namespace {

constexpr ErrorCode kBad = ErrorCode::kInvalidModel;

bool is_constant(OpCall& call, int value) { return call.builder().value(value).constant; }

/// A RESHAPE to rows that keeps the last axis is not needed in front of FULLY_CONNECTED: tf.tensordot writes one.
int before_rows(OpCall& call, int x) {
  const FlatNode* rows = call.made_by(call.node.inputs[0], "Reshape", 2);
  if (rows == nullptr) return x;
  const int original = call.value(rows->inputs[0]);
  const Dims before = call.e.dims(original);
  return before.size() > 2 && before.back() > 0 && before.back() == call.e.dims(x).back() ? original : x;
}

std::vector<int> swap_last(int rank) {
  std::vector<int> order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  std::swap(order[static_cast<size_t>(rank) - 1], order[static_cast<size_t>(rank) - 2]);
  return order;
}

}  // namespace

Outputs matmul(OpCall& call) {
  Emitter& e = call.e;
  const int a = call.in(0);
  const int b = call.in(1);
  require(e.rank(a) == 2 && e.rank(b) == 2, kBad, "inputs have rank {} and {}, expected 2", e.rank(a), e.rank(b));
  const bool turn_a = call.attr_bool("transpose_a", false);
  const bool turn_b = call.attr_bool("transpose_b", false);
  if (!is_constant(call, b) || e.dtype(a) != DType::kFloat32) return {e.matmul(a, b, turn_a, turn_b)};
  const int weights = turn_b ? b : e.transpose(b, {1, 0});
  const int64_t units = e.dims(weights)[0];
  const int rows = turn_a ? e.transpose(a, {1, 0}) : a;
  const int x = turn_a ? rows : before_rows(call, rows);
  const int y = e.fully_connected(x, weights, ir::kAbsent);
  return {x == rows ? y : e.reshape(y, {e.dims(rows)[0], units})};
}

Outputs batch_matmul(OpCall& call) {
  Emitter& e = call.e;
  const int a = call.in(0);
  const int b = call.in(1);
  const bool turn_a = call.attr_bool("adj_x", false);
  const bool turn_b = call.attr_bool("adj_y", false);
  require(e.rank(a) >= 2 && e.rank(b) >= 2, kBad, "inputs have rank {} and {}, expected 2 or more", e.rank(a),
          e.rank(b));
  if (!is_constant(call, b) || e.rank(b) != 2 || e.dtype(a) != DType::kFloat32) {
    return {e.matmul(a, b, turn_a, turn_b)};
  }
  const int x = turn_a ? e.transpose(a, swap_last(e.rank(a))) : a;
  return {e.fully_connected(x, turn_b ? b : e.transpose(b, {1, 0}), ir::kAbsent)};
}

namespace {

bool in(const std::string& text, char c) { return text.find(c) != std::string::npos; }

/// The axes of two operands by what becomes of them.
struct Axes {
  std::string a, b, out;
  std::string batch, inner, left, right;
};

std::vector<int> permutation(const std::string& from, const std::string& to) {
  std::vector<int> result;
  for (const char c : to) result.push_back(static_cast<int>(from.find(c)));
  return result;
}

/// Letters for the axes that "..." stands for.
void replace_dots(OpCall& call, std::string& term, size_t count) {
  const size_t dots = term.find("...");
  if (dots == std::string::npos) return;
  std::string letters;
  for (size_t i = 0; i < count; ++i) letters += static_cast<char>('0' + static_cast<int>(i));
  call.refuse_if(count > 8, "has too many axes");
  term.replace(dots, 3, letters);
}

size_t dots_rank(OpCall& call, const std::string& term, size_t input) {
  if (term.find("...") == std::string::npos) return 0;
  const auto rank = static_cast<size_t>(call.e.rank(call.in(input)));
  require(rank + 3 >= term.size(), kBad, "the equation does not fit its inputs");
  return rank + 3 - term.size();
}

void check_term(OpCall& call, const std::string& term, size_t input) {
  require(static_cast<int>(term.size()) == call.e.rank(call.in(input)), kBad,
          "the equation has {} axes for an input of rank {}", term.size(), call.e.rank(call.in(input)));
  std::string sorted = term;
  std::sort(sorted.begin(), sorted.end());
  call.refuse_if(std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end(),
                 "takes a diagonal (an axis twice in one term); use tf.linalg.diag_part");
}

/// `x`, whose axes are `axes`, with the axes of each group as one.
int merge_groups(Emitter& e, int x, const std::string& axes, const std::string& batch, const std::string& first,
                 const std::string& second) {
  const int ordered = e.transpose(x, permutation(axes, batch + first + second));
  if (first.size() == 1 && second.size() == 1) return ordered;
  std::vector<Emitter::Size> sizes;
  int64_t axis = 0;
  for (; axis < static_cast<int64_t>(batch.size()); ++axis) sizes.emplace_back(ordered, axis);
  const Dims dims = e.dims(ordered);
  int unknown = 0;
  for (const std::string& group : {first, second}) {
    int64_t product = 1;
    for (size_t i = 0; i < group.size(); ++i, ++axis) {
      const int64_t size = dims[static_cast<size_t>(axis)];
      require(size <= (1 << 24) && (product < 0 || product <= (1 << 30)), kBad, "an axis is too large");
      product = size < 0 || product < 0 ? -1 : product * size;
    }
    const bool one_axis = group.size() == 1 && product < 0;
    sizes.emplace_back(one_axis ? ordered : -1, one_axis ? axis - 1 : product);
    if (product < 0 && !one_axis) ++unknown;
  }
  require(unknown == 0 || batch.empty() ||
              std::count(dims.begin(), dims.begin() + static_cast<int64_t>(batch.size()), -1) == 0,
          ErrorCode::kUnsupported, "joins axes of unknown size; give the inputs of the model known sizes");
  return e.reshape_like(ordered, sizes);
}

int product(OpCall& call, const Axes& q) {
  Emitter& e = call.e;
  const int a = call.in(0);
  const int b = call.in(1);
  const bool weights = q.batch.empty() && is_constant(call, b) && !q.inner.empty() && q.inner.size() <= 4;
  if (weights) {
    const int x = e.transpose(a, permutation(q.a, q.left + q.inner));
    std::vector<Emitter::Size> rows;
    for (size_t i = 0; i < q.left.size(); ++i) rows.emplace_back(x, static_cast<int64_t>(i));
    const int w = merge_groups(e, b, q.b, "", q.right, q.inner);
    rows.emplace_back(-1, e.dims(w)[1]);
    return e.fully_connected(q.inner.size() == 1 ? x : e.reshape_like(x, rows), w, ir::kAbsent);
  }
  const int left = merge_groups(e, a, q.a, q.batch, q.left, q.inner);
  // The right side may stay as it is when its last two axes are the other way round.
  const size_t last = q.b.size();
  const bool turned = last >= 2 && q.right.size() == 1 && q.inner.size() == 1 && q.b[last - 1] == q.inner[0];
  const int right =
      turned ? merge_groups(e, b, q.b, q.batch, q.right, q.inner) : merge_groups(e, b, q.b, q.batch, q.inner, q.right);
  return e.matmul(left, right, false, turned);
}

}  // namespace

/// A product of matrices between transpositions, most of which vanish.
Outputs einsum(OpCall& call) {
  Emitter& e = call.e;
  std::string text = call.attr_text("equation", "");
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  require(arrow != std::string::npos, kBad, "the equation '{}' has no result", printable(text));
  const size_t comma = text.find(',');
  Axes q;
  q.out = text.substr(arrow + 2);
  q.a = text.substr(0, std::min(comma, arrow));
  if (comma != std::string::npos) q.b = text.substr(comma + 1, arrow - comma - 1);
  call.refuse_if(in(q.b, ',') || call.inputs.size() > 2, "has more than two operands; split it");
  const size_t dots_a = dots_rank(call, q.a, 0);
  const size_t dots_b = comma == std::string::npos ? 0 : dots_rank(call, q.b, 1);
  call.refuse_if(dots_a != dots_b && dots_a != 0 && dots_b != 0, "broadcasts '...'; write the axes out");
  replace_dots(call, q.a, dots_a);
  replace_dots(call, q.b, dots_b);
  replace_dots(call, q.out, std::max(dots_a, dots_b));
  check_term(call, q.a, 0);
  if (comma == std::string::npos) {
    require(q.a.size() == q.out.size() && std::is_permutation(q.a.begin(), q.a.end(), q.out.begin()),
            ErrorCode::kUnsupported, "the equation '{}' sums over axes of one operand; use tf.reduce_sum",
            printable(text));
    return {e.transpose(call.in(), permutation(q.a, q.out))};
  }
  check_term(call, q.b, 1);
  for (const char c : q.a) {
    const bool shared = in(q.b, c);
    call.refuse_if(!shared && !in(q.out, c), "sums over an axis of one operand alone; use tf.reduce_sum before it");
    (shared ? in(q.out, c) ? q.batch : q.inner : q.left) += c;
  }
  for (const char c : q.b) {
    call.refuse_if(!in(q.a, c) && !in(q.out, c), "sums over an axis of one operand alone; use tf.reduce_sum before it");
    if (!in(q.a, c)) q.right += c;
  }
  const std::string made = q.batch + q.left + q.right;
  require(made.size() == q.out.size() && std::is_permutation(made.begin(), made.end(), q.out.begin()), kBad,
          "the equation '{}' is wrong", printable(text));
  int y = product(call, q);
  if (e.rank(y) != static_cast<int>(made.size()) || q.left.size() != 1 || q.right.size() != 1) {
    std::vector<Emitter::Size> sizes;
    for (const char c : made) {
      const size_t term = in(q.a, c) ? 0 : 1;
      sizes.emplace_back(call.in(term), static_cast<int64_t>((term == 0 ? q.a : q.b).find(c)));
    }
    for (auto& [tensor, axis] : sizes) {
      const int64_t size = e.dims(tensor)[static_cast<size_t>(axis)];
      if (size >= 0) tensor = -1, axis = size;
    }
    y = e.reshape_like(y, sizes);
  }
  return {e.transpose(y, permutation(made, q.out))};
}

}  // namespace leadline::saved_model
