// SPDX-License-Identifier: Apache-2.0
#include "import/einsum.h"

#include <algorithm>

#include "core/error.h"

namespace leadline::importing {
namespace {

constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;

/// Axes of a tensor, a letter each.
struct Term {
  std::string axes;
  int tensor = -1;
};

bool in(const std::string& text, char c) { return text.find(c) != std::string::npos; }

std::vector<int> order_from(const std::string& from, const std::string& to) {
  std::vector<int> result;
  for (const char c : to) result.push_back(static_cast<int>(from.find(c)));
  return result;
}

Emitter::Size size_of(const Term& term, char axis) { return {term.tensor, static_cast<int64_t>(term.axes.find(axis))}; }

/// Sums over the axes that are not in `needed`.
Term without_lone_axes(Emitter& e, Term term, const std::string& needed) {
  std::vector<int32_t> lone;
  std::string kept;
  for (size_t i = 0; i < term.axes.size(); ++i) {
    if (in(needed, term.axes[i])) {
      kept += term.axes[i];
    } else {
      lone.push_back(static_cast<int32_t>(i));
    }
  }
  if (lone.empty()) return term;
  return {kept, e.reduce("SUM", term.tensor, lone, false)};
}

Term ordered(Emitter& e, const Term& term, const std::string& axes) {
  if (term.axes == axes) return term;
  return {axes, e.transpose(term.tensor, order_from(term.axes, axes))};
}

/// The size of several axes as one: their product, or -1.
Emitter::Size merged(Emitter& e, const Term& term, const std::string& axes) {
  if (axes.size() == 1) return size_of(term, axes[0]);
  int64_t product = 1;
  for (const char c : axes) {
    const int64_t size = e.dims(term.tensor)[term.axes.find(c)];
    if (size < 0) return {-1, -1};
    require(!__builtin_mul_overflow(product, size, &product), kBadModel, "an axis of too many elements");
  }
  return {-1, product};
}

/// The sizes of `kept` and the products of `groups`, computed when the model runs.
int merged_sizes(Emitter& e, const Term& term, const std::string& kept, const std::vector<std::string>& groups) {
  std::vector<int> parts;
  const auto sizes_of = [&](const std::string& axes) {
    std::vector<Emitter::Size> sizes;
    for (const char c : axes) sizes.push_back(size_of(term, c));
    return e.sizes_vector(sizes);
  };
  if (!kept.empty()) parts.push_back(sizes_of(kept));
  for (const std::string& group : groups) {
    if (group.empty()) {
      parts.push_back(e.ints({1}));
    } else {
      parts.push_back(group.size() == 1 ? sizes_of(group) : e.reduce("REDUCE_PROD", sizes_of(group), {0}, true));
    }
  }
  return e.concat(parts, 0);
}

/// A term whose axes are in the order of `kept` and then `groups`, with the axes of each group as one.
int grouped(Emitter& e, const Term& term, const std::string& kept, const std::vector<std::string>& groups) {
  if (std::all_of(groups.begin(), groups.end(), [](const std::string& g) { return g.size() == 1; })) return term.tensor;
  std::vector<Emitter::Size> sizes;
  for (const char c : kept) sizes.push_back(size_of(term, c));
  for (const std::string& group : groups) sizes.push_back(merged(e, term, group));
  const auto open = [](const Emitter::Size& s) { return s.first < 0 && s.second < 0; };
  if (std::count_if(sizes.begin(), sizes.end(), open) > 1) {
    return e.builder().node("RESHAPE", {term.tensor, merged_sizes(e, term, kept, groups)}, e.name("Reshape"));
  }
  return e.reshape_like(term.tensor, sizes);
}

/// The product without sums: axes of size 1 where a term has none.
Term outer_product(Emitter& e, const Term& a, const Term& b, const std::string& result) {
  const auto spread = [&](const Term& term) {
    std::string own;
    for (const char c : result) {
      if (in(term.axes, c)) own += c;
    }
    const Term sorted = ordered(e, term, own);
    int x = sorted.tensor;
    bool begun = false;  // axes in front come by broadcasting
    for (size_t i = 0; i < result.size(); ++i) {
      const bool has = in(own, result[i]);
      begun = begun || has;
      if (!has && begun) x = e.expand_dims(x, static_cast<int>(i - (result.find(own[0]))));
    }
    return x;
  };
  return {result, e.mul(spread(a), spread(b))};
}

/// The axes of two operands by what becomes of them.
struct Axes {
  std::string batch, summed, rows, columns;
};

Axes sort_axes(Emitter& e, const Term& a, const Term& b, const std::string& needed) {
  Axes q;
  for (const char c : a.axes) {
    (!in(b.axes, c) ? q.rows : in(needed, c) ? q.batch : q.summed) += c;
    if (!in(b.axes, c)) continue;
    const int64_t size = e.dims(a.tensor)[a.axes.find(c)];
    const int64_t other = e.dims(b.tensor)[b.axes.find(c)];
    require(size == other || size < 0 || other < 0, kUnsupported,
            "the equation broadcasts axis '{}', which is not converted", c);
  }
  for (const char c : b.axes) {
    if (!in(a.axes, c)) q.columns += c;
  }
  return q;
}

/// Constant right sides become the weights of FULLY_CONNECTED, which keeps the axes of the left one.
bool are_weights(Emitter& e, const Term& a, const Term& b, const Axes& q) {
  return q.batch.empty() && !q.rows.empty() && e.builder().value(b.tensor).constant &&
         e.dtype(a.tensor) == DType::kFloat32;
}

Term product(Emitter& e, Term a, Term b, const std::string& needed) {
  a = without_lone_axes(e, a, needed + b.axes);
  b = without_lone_axes(e, b, needed + a.axes);
  const Axes q = sort_axes(e, a, b, needed);
  if (q.summed.empty()) {
    std::string result;
    for (const char c : needed) {
      if (in(a.axes, c) || in(b.axes, c)) result += c;
    }
    return outer_product(e, a, b, result);
  }
  a = ordered(e, a, q.batch + q.rows + q.summed);
  const bool weights = are_weights(e, a, b, q);
  const bool turned = weights || b.axes == q.batch + q.columns + q.summed;
  b = ordered(e, b, turned ? q.batch + q.columns + q.summed : q.batch + q.summed + q.columns);
  const int right =
      turned ? grouped(e, b, q.batch, {q.columns, q.summed}) : grouped(e, b, q.batch, {q.summed, q.columns});
  int y = -1;
  bool joined = q.columns.size() != 1;
  if (weights) {
    y = e.fully_connected(grouped(e, a, q.rows, {q.summed}), right, ir::kAbsent);
  } else {
    y = e.matmul(grouped(e, a, q.batch, {q.rows, q.summed}), right, false, turned);
    joined = joined || q.rows.size() != 1;
  }
  if (joined) {
    std::vector<Emitter::Size> sizes;
    for (const char c : q.batch + q.rows) sizes.push_back(size_of(a, c));
    for (const char c : q.columns) sizes.push_back(size_of(b, c));
    y = e.reshape_like(y, sizes);
  }
  return {q.batch + q.rows + q.columns, y};
}

/// The terms of an equation, "..." written out.
std::vector<std::string> read_terms(Emitter& e, std::string text, const std::vector<int>& operands,
                                    std::string& result) {
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  std::vector<std::string> terms;
  for (size_t at = 0; at <= left.size();) {
    const size_t comma = std::min(left.find(',', at), left.size());
    terms.push_back(left.substr(at, comma - at));
    at = comma + 1;
  }
  require(terms.size() == operands.size(), kBadModel, "the equation '{}' has {} terms for {} tensors", printable(text),
          terms.size(), operands.size());
  std::string widest;
  const auto spread = [&](std::string& term, const std::string& dots) {
    if (const size_t at = term.find("..."); at != std::string::npos) term.replace(at, 3, dots);
  };
  for (size_t i = 0; i < terms.size(); ++i) {
    const auto rank = static_cast<size_t>(e.rank(operands[i]));
    std::string dots;
    if (in(terms[i], '.')) {
      require(terms[i].find("...") != std::string::npos && terms[i].size() - 3 <= rank, kBadModel,
              "the equation '{}' has the term '{}' for a tensor of rank {}", printable(text), printable(terms[i]),
              rank);
      const size_t count = rank - (terms[i].size() - 3);
      for (size_t k = 0; k < count; ++k) dots += static_cast<char>('0' + static_cast<int>(count - 1 - k));
      if (dots.size() > widest.size()) widest = dots;
    }
    spread(terms[i], dots);
    require(terms[i].size() == rank, kBadModel, "the equation '{}' has {} axes for a tensor of rank {}",
            printable(text), terms[i].size(), rank);
    std::string sorted = terms[i];
    std::sort(sorted.begin(), sorted.end());
    require(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(), kUnsupported,
            "the equation takes a diagonal (an axis twice in one term), which is not converted; take it before the "
            "product");
  }
  if (arrow != std::string::npos) {
    result = text.substr(arrow + 2);
    spread(result, widest);
  } else {
    std::string all;
    for (const std::string& term : terms) all += term;
    result = widest;
    std::string once;
    for (const char c : all) {
      if (std::count(all.begin(), all.end(), c) == 1 && !in(widest, c)) once += c;
    }
    std::sort(once.begin(), once.end());
    result += once;
  }
  for (const char c : result) {
    const bool known = std::any_of(terms.begin(), terms.end(), [&](const std::string& t) { return in(t, c); });
    require(known && std::count(result.begin(), result.end(), c) == 1, kBadModel,
            "the equation '{}' has a result with axis '{}', expected each of its axes once there and in a term",
            printable(text), c);
  }
  return terms;
}

}  // namespace

int einsum(Emitter& e, const std::string& equation, const std::vector<int>& operands) {
  std::string result;
  require(!operands.empty() && equation.size() < 1000, kBadModel,
          "an equation of {} characters for {} tensors; expected fewer than 1000 characters and some tensors",
          equation.size(), operands.size());
  const std::vector<std::string> axes = read_terms(e, equation, operands, result);
  Term term{axes[0], operands[0]};
  for (size_t i = 1; i < operands.size(); ++i) {
    std::string needed = result;
    for (size_t later = i + 1; later < axes.size(); ++later) needed += axes[later];
    std::string unique;
    for (const char c : needed) {
      if (!in(unique, c)) unique += c;
    }
    term = product(e, term, {axes[i], operands[i]}, unique);
  }
  return ordered(e, without_lone_axes(e, term, result), result).tensor;
}

}  // namespace leadline::importing
