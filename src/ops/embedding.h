// SPDX-License-Identifier: Apache-2.0
// Attributes of EMBEDDING_LOOKUP_SPARSE.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

enum class Combiner : int8_t { kSum = 0, kMean = 1, kSqrtN = 2 };

struct EmbeddingLookupSparseAttributes : ir::AttributeSet<EmbeddingLookupSparseAttributes> {
  Combiner combiner = Combiner::kSum;
  void fields(ir::FieldVisitor& v) { v.choice("combiner", combiner, 3); }
};

}  // namespace leadline::ops
