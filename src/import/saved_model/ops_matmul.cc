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

/// An operand of einsum: a tensor, and a letter for each of its axes.
struct Term {
  int value = -1;
  std::string axes;
};

/// The axes of two operands by what becomes of them.
struct Axes {
  std::string batch, inner, left, right;
};

std::vector<int> permutation(const std::string& from, const std::string& to) {
  std::vector<int> result;
  for (const char c : to) result.push_back(static_cast<int>(from.find(c)));
  return result;
}

size_t dots_rank(OpCall& call, const Term& term) {
  if (term.axes.find("...") == std::string::npos) return 0;
  const auto rank = static_cast<size_t>(call.e.rank(term.value));
  require(rank + 3 >= term.axes.size(), kBad, "the equation does not fit its inputs");
  return rank + 3 - term.axes.size();
}

/// Letters for the `count` axes that "..." stands for: the last of `all` that any operand has.
void replace_dots(std::string& axes, size_t count, size_t all) {
  const size_t dots = axes.find("...");
  if (dots == std::string::npos) return;
  std::string letters;
  for (size_t i = all - count; i < all; ++i) letters += static_cast<char>('0' + static_cast<int>(i));
  axes.replace(dots, 3, letters);
}

void check_term(OpCall& call, const Term& term) {
  require(static_cast<int>(term.axes.size()) == call.e.rank(term.value), kBad,
          "the equation has {} axes for an input of rank {}", term.axes.size(), call.e.rank(term.value));
  std::string sorted = term.axes;
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

int product(OpCall& call, const Term& a, const Term& b, const Axes& q) {
  Emitter& e = call.e;
  const bool weights = q.batch.empty() && is_constant(call, b.value) && e.dtype(a.value) == DType::kFloat32 &&
                       !q.inner.empty() && q.inner.size() <= 4;
  if (weights) {
    const int x = e.transpose(a.value, permutation(a.axes, q.left + q.inner));
    std::vector<Emitter::Size> rows;
    for (size_t i = 0; i < q.left.size(); ++i) rows.emplace_back(x, static_cast<int64_t>(i));
    const int w = merge_groups(e, b.value, b.axes, "", q.right, q.inner);
    rows.emplace_back(-1, e.dims(w)[1]);
    const int flat = q.inner.size() == 1 ? x : e.reshape_like(x, rows);
    if (e.rank(flat) >= 2) return e.fully_connected(flat, w, ir::kAbsent);
  }
  const int left = merge_groups(e, a.value, a.axes, q.batch, q.left, q.inner);
  // The right side may stay as it is when its last two axes are the other way round.
  const size_t last = b.axes.size();
  const bool turned = last >= 2 && q.right.size() == 1 && q.inner.size() == 1 && b.axes[last - 1] == q.inner[0];
  const int right = turned ? merge_groups(e, b.value, b.axes, q.batch, q.right, q.inner)
                           : merge_groups(e, b.value, b.axes, q.batch, q.inner, q.right);
  return e.matmul(left, right, false, turned);
}

/// Sums over the axes that are not in `kept`.
Term sum_others(OpCall& call, const Term& term, const std::string& kept) {
  Term result{term.value, ""};
  std::vector<int32_t> gone;
  for (size_t i = 0; i < term.axes.size(); ++i) {
    if (in(kept, term.axes[i])) {
      result.axes += term.axes[i];
    } else {
      gone.push_back(static_cast<int32_t>(i));
    }
  }
  if (!gone.empty()) result.value = call.e.reduce("SUM", term.value, gone, false);
  return result;
}

/// Two operands as one, without the axes that are not in `kept`.
Term contract(OpCall& call, const Term& first, const Term& second, const std::string& kept) {
  Emitter& e = call.e;
  const Term a = sum_others(call, first, kept + second.axes);
  const Term b = sum_others(call, second, kept + first.axes);
  Axes q;
  for (const char c : a.axes) {
    (in(b.axes, c) ? in(kept, c) ? q.batch : q.inner : q.left) += c;
    if (!in(b.axes, c)) continue;
    const int64_t size = e.dims(a.value)[a.axes.find(c)];
    const int64_t other = e.dims(b.value)[b.axes.find(c)];
    call.refuse_if(size != other && size >= 0 && other >= 0, fmt::format("broadcasts axis '{}'", c));
  }
  for (const char c : b.axes) {
    if (!in(a.axes, c)) q.right += c;
  }
  Term result{product(call, a, b, q), q.batch + q.left + q.right};
  if (e.rank(result.value) == static_cast<int>(result.axes.size()) && q.left.size() == 1 && q.right.size() == 1) {
    return result;
  }
  std::vector<Emitter::Size> sizes;
  for (const char c : result.axes) {
    const Term& from = in(a.axes, c) ? a : b;
    const auto axis = static_cast<int64_t>(from.axes.find(c));
    const int64_t size = e.dims(from.value)[static_cast<size_t>(axis)];
    sizes.emplace_back(size >= 0 ? -1 : from.value, size >= 0 ? size : axis);
  }
  result.value = e.reshape_like(result.value, sizes);
  return result;
}

std::vector<Term> terms_of(OpCall& call, std::string_view text) {
  std::vector<Term> terms;
  for (size_t i = 0;; ++i) {
    const size_t comma = text.find(',');
    terms.push_back({call.in(i), std::string(text.substr(0, comma))});
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  require(terms.size() == call.inputs.size(), kBad, "the equation has {} terms for {} inputs", terms.size(),
          call.inputs.size());
  return terms;
}

}  // namespace

/// Products of matrices between transpositions, most of which vanish; several operands from left to right.
Outputs einsum(OpCall& call) {
  std::string text = call.attr_text("equation", "");
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  require(arrow != std::string::npos, kBad, "the equation '{}' has no result", printable(text));
  std::string out = text.substr(arrow + 2);
  std::vector<Term> terms = terms_of(call, std::string_view(text).substr(0, arrow));
  size_t dots = 0;
  for (const Term& term : terms) dots = std::max(dots, dots_rank(call, term));
  call.refuse_if(dots > 8, "has too many axes");
  for (Term& term : terms) {
    replace_dots(term.axes, dots_rank(call, term), dots);
    check_term(call, term);
  }
  replace_dots(out, dots, dots);
  Term result = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string kept = out;
    for (size_t k = i + 1; k < terms.size(); ++k) kept += terms[k].axes;
    result = contract(call, result, terms[i], kept);
  }
  result = sum_others(call, result, out);
  require(result.axes.size() == out.size() && std::is_permutation(out.begin(), out.end(), result.axes.begin()), kBad,
          "the equation '{}' is wrong", printable(text));
  return {call.e.transpose(result.value, permutation(result.axes, out))};
}

}  // namespace leadline::saved_model
