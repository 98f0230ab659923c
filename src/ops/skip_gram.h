// SPDX-License-Identifier: Apache-2.0
// Attributes of SKIP_GRAM.
#pragma once

#include "ir/attributes.h"

namespace leadline::ops {

struct SkipGramAttributes : ir::AttributeSet<SkipGramAttributes> {
  int32_t ngram_size = 0;
  int32_t max_skip_size = 0;
  bool include_all_ngrams = false;  // shorter ones too
  void fields(ir::FieldVisitor& v) {
    v.field("ngram_size", ngram_size);
    v.field("max_skip_size", max_skip_size);
    v.field("include_all_ngrams", include_all_ngrams);
  }
};

}  // namespace leadline::ops
