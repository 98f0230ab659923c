// SPDX-License-Identifier: Apache-2.0
// Sizes that a model ties to each other: where it takes none of the samples, because one input's unknown size must be
// a multiple of another's or a number that only the model knows, the samples are changed until they fit.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "ops/size_samples.h"

namespace leadline::ops {

using SampledSize = std::array<int64_t, kSizeSamples>;

/// Other sizes than the usual ones: by subgraph, place and axis. The place of an input is its number; values whose
/// sizes depend on data have negative ones.
using SizeChoices = std::map<std::tuple<int, int, int>, SampledSize>;

/// A node that no two samples could be inferred for.
struct SizeConflict {
  struct Unknown {
    int place = 0;
    int axis = 0;
    SampledSize sizes = {};
  };
  int subgraph = 0;
  size_t nodes = 0;                                  // that were made before it
  std::vector<bool> samples;                         // that it was tried with
  std::vector<SizeSamples> operands;                 // shapes of what it takes
  std::vector<std::optional<SampledSize>> contents;  // the product of its positive numbers, where they are known
  std::vector<Unknown> unknown;                      // sizes that can be chosen
};

/// Which sizes to try next.
class SizeSearch {
 public:
  const SizeChoices& choices() const { return choices_; }
  /// After a conflict: whether there is something left to try.
  bool next(const std::optional<SizeConflict>& conflict);

 private:
  SizeChoices base_;
  SizeChoices choices_;
  std::deque<SizeChoices> candidates_;
  std::tuple<int, size_t> reached_ = {-1, 0};
  int trials_ = 0;
};

}  // namespace leadline::ops
