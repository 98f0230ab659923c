// SPDX-License-Identifier: Apache-2.0
#include "ops/size_search.h"

#include <algorithm>

namespace leadline::ops {
namespace {

constexpr int kMostTrials = 24;  // each builds the graph again
constexpr size_t kMostCandidates = 8;
constexpr int64_t kMostSize = 1 << 20;

/// A number that has a value in every sample, such as a size of an operand; 0 where it has none.
SampledSize size_of(const SizeSamples& shapes, int axis) {
  SampledSize sizes = {};
  for (size_t s = 0; s < kSizeSamples; ++s) {
    if (shapes[s] && axis < shapes[s]->rank()) sizes[s] = (*shapes[s])[axis];
  }
  return sizes;
}

bool varies(const SampledSize& sizes, const std::vector<bool>& used) {
  int64_t first = 0;
  for (size_t s = 0; s < kSizeSamples; ++s) {
    if (!used[s] || sizes[s] <= 0) continue;
    if (first == 0) first = sizes[s];
    if (sizes[s] != first) return true;
  }
  return false;
}

bool divides(const SampledSize& part, const SampledSize& whole, const std::vector<bool>& used) {
  for (size_t s = 0; s < kSizeSamples; ++s) {
    if (used[s] && (whole[s] <= 0 || part[s] <= 0 || whole[s] % part[s] != 0)) return false;
  }
  return true;
}

/// `size` scaled so that what is `from` now becomes `to`; nothing when that changes nothing or fits fewer than two.
std::optional<SampledSize> scaled(const SampledSize& size, const SampledSize& from, const SampledSize& to,
                                  const std::vector<bool>& used) {
  SampledSize result = size;
  int fitting = 0;
  for (size_t s = 0; s < kSizeSamples; ++s) {
    if (!used[s] || from[s] <= 0 || to[s] <= 0 || size[s] > kMostSize || to[s] > kMostSize * kMostSize) continue;
    const int64_t product = size[s] * to[s];
    const int64_t value = product % from[s] == 0 ? product / from[s] : 0;
    if (value < 1 || value > kMostSize) continue;
    result[s] = value;
    ++fitting;
  }
  if (fitting < 2 || result == size) return {};
  return result;
}

struct Candidate {
  int rank = 0;  // the most likely ones first
  std::vector<std::pair<const SizeConflict::Unknown*, SampledSize>> sizes;
};

/// Whether they are the same in the samples that count.
bool same(const SampledSize& a, const SampledSize& b, const std::vector<bool>& used) {
  for (size_t s = 0; s < kSizeSamples; ++s) {
    if (used[s] && a[s] != b[s]) return false;
  }
  return true;
}

int rank_of(const SizeSamples& shapes) {
  for (const auto& shape : shapes) {
    if (shape) return shape->rank();
  }
  return 0;
}

/// All sizes of one operand become those of another, from the last axis on; nothing when one of them cannot.
std::optional<Candidate> alike(const SizeConflict& conflict, const SizeSamples& from, const SizeSamples& to) {
  Candidate candidate;
  candidate.rank = -1;
  const int count = std::min(rank_of(from), rank_of(to));
  for (int i = 1; i <= count; ++i) {
    const SampledSize now = size_of(from, rank_of(from) - i);
    const SampledSize wanted = size_of(to, rank_of(to) - i);
    if (same(now, wanted, conflict.samples)) continue;
    const auto it = std::find_if(conflict.unknown.rbegin(), conflict.unknown.rend(), [&](const auto& unknown) {
      const bool taken = std::any_of(candidate.sizes.begin(), candidate.sizes.end(),
                                     [&](const auto& other) { return other.first == &unknown; });
      return !taken && same(unknown.sizes, now, conflict.samples);
    });
    if (it == conflict.unknown.rend()) return {};
    candidate.sizes.emplace_back(&*it, wanted);
  }
  if (candidate.sizes.empty()) return {};
  return candidate;
}

std::vector<Candidate> candidates_of(const SizeConflict& conflict) {
  std::vector<Candidate> result;
  const std::vector<bool>& used = conflict.samples;
  const auto consider = [&](const SampledSize& from, const SampledSize& to, int rank) {
    for (const auto& unknown : conflict.unknown) {
      if (!varies(from, used) || !divides(unknown.sizes, from, used)) continue;
      const bool both = varies(to, used) && divides(unknown.sizes, to, used);  // a common factor, such as the batch
      if (const auto sizes = scaled(unknown.sizes, from, to, used)) {
        result.push_back({rank + (both ? 8 : 0) + (unknown.axis == 0 ? 4 : 0), {{&unknown, *sizes}}});
      }
    }
  };
  for (size_t i = 0; i < conflict.operands.size(); ++i) {
    for (size_t j = 0; j < conflict.operands.size(); ++j) {
      if (i == j) continue;
      if (const auto candidate = alike(conflict, conflict.operands[i], conflict.operands[j])) {
        result.push_back(*candidate);
      }
      for (int p = 0; p < kMaxRank; ++p) {
        for (int q = 0; q < kMaxRank; ++q) {
          const SampledSize from = size_of(conflict.operands[i], p);
          const SampledSize to = size_of(conflict.operands[j], q);
          if (from != to) consider(from, to, (p == q ? 0 : 1) + (varies(to, used) ? 0 : 2));
        }
      }
      // A reshape: as many elements as its sizes ask for, or a multiple.
      if (conflict.contents[j]) {
        for (const auto& unknown : conflict.unknown) {
          SampledSize sizes = unknown.sizes;
          for (size_t s = 0; s < kSizeSamples; ++s) {
            const int64_t factor = (*conflict.contents[j])[s];
            if (used[s] && factor > 0 && factor <= kMostSize && sizes[s] * factor <= kMostSize) sizes[s] *= factor;
          }
          if (sizes != unknown.sizes) result.push_back({unknown.axis == 0 ? 6 : 3, {{&unknown, sizes}}});
        }
      }
    }
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return result;
}

}  // namespace

bool SizeSearch::next(const std::optional<SizeConflict>& conflict) {
  if (!conflict || ++trials_ > kMostTrials) return false;
  const std::tuple<int, size_t> reached = {conflict->subgraph, conflict->nodes};
  if (reached > reached_) {
    reached_ = reached;
    base_ = choices_;
    candidates_.clear();
    for (const Candidate& candidate : candidates_of(*conflict)) {
      SizeChoices choices = base_;
      for (const auto& [unknown, sizes] : candidate.sizes) {
        choices[{conflict->subgraph, unknown->place, unknown->axis}] = sizes;
      }
      const bool seen = std::find(candidates_.begin(), candidates_.end(), choices) != candidates_.end();
      if (!seen && candidates_.size() < kMostCandidates) candidates_.push_back(std::move(choices));
    }
  }
  if (candidates_.empty()) return false;
  choices_ = std::move(candidates_.front());
  candidates_.pop_front();
  return true;
}

}  // namespace leadline::ops
