// SPDX-License-Identifier: Apache-2.0
#include "import/keras/einsum.h"

#include <algorithm>

namespace leadline::keras {
namespace {

constexpr ErrorCode kBad = ErrorCode::kInvalidModel;

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
    require(!__builtin_mul_overflow(product, size, &product), kBad, "an axis of too many elements");
  }
  return {-1, product};
}

/// [batch..., rows, columns] of a term whose axes are in that order.
int matrix(Call& call, const Term& term, const std::string& batch, const std::string& rows,
           const std::string& columns) {
  if (rows.size() == 1 && columns.size() == 1) return term.tensor;
  std::vector<Emitter::Size> sizes;
  for (const char c : batch) sizes.push_back(size_of(term, c));
  sizes.push_back(merged(call.e, term, rows));
  sizes.push_back(merged(call.e, term, columns));
  const auto open = [](const Emitter::Size& s) { return s.first < 0 && s.second < 0; };
  call.refuse_if(std::count_if(sizes.begin(), sizes.end(), open) > 1,
                 "multiplies over several axes of unknown size, which is not converted; fix their sizes");
  return call.e.reshape_like(term.tensor, sizes);
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

Term product(Call& call, Term a, Term b, const std::string& needed) {
  Emitter& e = call.e;
  a = without_lone_axes(e, a, needed + b.axes);
  b = without_lone_axes(e, b, needed + a.axes);
  std::string batch;
  std::string summed;
  std::string rows;
  std::string columns;
  for (const char c : a.axes) (!in(b.axes, c) ? rows : in(needed, c) ? batch : summed) += c;
  for (const char c : b.axes) {
    if (!in(a.axes, c)) columns += c;
  }
  if (summed.empty()) {
    std::string result;
    for (const char c : needed) {
      if (in(a.axes, c) || in(b.axes, c)) result += c;
    }
    return outer_product(e, a, b, result);
  }
  a = ordered(e, a, batch + rows + summed);
  const bool turned = b.axes == batch + columns + summed;
  if (!turned) b = ordered(e, b, batch + summed + columns);
  const int left = matrix(call, a, batch, rows, summed);
  const int right = turned ? matrix(call, b, batch, columns, summed) : matrix(call, b, batch, summed, columns);
  int y = e.matmul(left, right, false, turned);
  if (rows.size() != 1 || columns.size() != 1) {
    std::vector<Emitter::Size> sizes;
    for (const char c : batch + rows) sizes.push_back(size_of(a, c));
    for (const char c : columns) sizes.push_back(size_of(b, c));
    y = e.reshape_like(y, sizes);
  }
  return {batch + rows + columns, y};
}

/// The terms of an equation, "..." written out.
std::vector<std::string> read_terms(Call& call, std::string text, const std::vector<int>& operands,
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
  require(terms.size() == operands.size(), kBad, "the equation '{}' has {} terms for {} tensors", printable(text),
          terms.size(), operands.size());
  std::string widest;
  const auto spread = [&](std::string& term, const std::string& dots) {
    if (const size_t at = term.find("..."); at != std::string::npos) term.replace(at, 3, dots);
  };
  for (size_t i = 0; i < terms.size(); ++i) {
    const auto rank = static_cast<size_t>(call.e.rank(operands[i]));
    std::string dots;
    if (in(terms[i], '.')) {
      require(terms[i].find("...") != std::string::npos && terms[i].size() - 3 <= rank, kBad,
              "the equation '{}' is wrong", printable(text));
      const size_t count = rank - (terms[i].size() - 3);
      for (size_t k = 0; k < count; ++k) dots += static_cast<char>('0' + static_cast<int>(count - 1 - k));
      if (dots.size() > widest.size()) widest = dots;
    }
    spread(terms[i], dots);
    require(terms[i].size() == rank, kBad, "the equation '{}' has {} axes for a tensor of rank {}", printable(text),
            terms[i].size(), rank);
    std::string sorted = terms[i];
    std::sort(sorted.begin(), sorted.end());
    call.refuse_if(std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end(),
                   "has an equation with an axis twice in one term, which is not converted");
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
    require(known && std::count(result.begin(), result.end(), c) == 1, kBad, "the equation '{}' is wrong",
            printable(text));
  }
  return terms;
}

}  // namespace

int einsum(Call& call, const std::string& equation, const std::vector<int>& operands) {
  std::string result;
  require(!operands.empty() && equation.size() < 1000, kBad, "the equation '{}' is wrong", printable(equation));
  const std::vector<std::string> axes = read_terms(call, equation, operands, result);
  Term term{axes[0], operands[0]};
  for (size_t i = 1; i < operands.size(); ++i) {
    std::string needed = result;
    for (size_t later = i + 1; later < axes.size(); ++later) needed += axes[later];
    std::string unique;
    for (const char c : needed) {
      if (!in(unique, c)) unique += c;
    }
    term = product(call, term, {axes[i], operands[i]}, unique);
  }
  return ordered(call.e, without_lone_axes(call.e, term, result), result).tensor;
}

}  // namespace leadline::keras
