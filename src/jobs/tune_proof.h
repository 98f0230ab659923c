// SPDX-License-Identifier: Apache-2.0
// What samples that were held out of a search say about others like them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "jobs/kept_samples.h"
#include "leadline/tune.h"

namespace leadline::jobs {

/// The largest share of all rows that would give `good` of `rows` or more with a probability of at most `doubt`: the
/// lower limit of Clopper and Pearson.
double lowest_share(int64_t good, int64_t rows, double doubt);

/// The share of samples that are at least as good as the worst of `count` drawn ones, but for a probability of `doubt`:
/// were it smaller, all of them would have been good with a probability below that.
double share_like_the_worst(int64_t count, double doubt);

/// Agreement with the float model on samples that nothing was chosen by. `measures`: one for each. `looks`: how many
/// models were measured on them to choose one; the chance to be deceived by one of them grows with it.
TuneBound bound_of(TuneMetric metric, const std::vector<DebugMeasure>& measures, const DebugMeasure& all, int looks);
/// The same of accuracy on labels.
TuneBound bound_of_accuracy(double accuracy, int64_t samples, int looks);

/// A metric's value, of what was measured.
double value_of(TuneMetric metric, const DebugMeasure& measure);

}  // namespace leadline::jobs
