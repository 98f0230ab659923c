// SPDX-License-Identifier: Apache-2.0
// What attention layers share.
#pragma once

#include "import/keras/layer_functions.h"

namespace leadline::keras {

/// Whether a call has this argument as true.
bool call_flag(const Call& call, std::string_view name);
/// A bool mask [1, query, key]: nothing after the query when `causal`, nothing `window` steps away or more unless it is
/// negative.
int band_mask(Call& call, int query, int key, bool causal, int64_t window);
/// Scores where a bool mask is false become very small, as small as Keras makes them.
int masked_scores(Emitter& e, int scores, int mask);

}  // namespace leadline::keras
