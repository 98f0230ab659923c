// SPDX-License-Identifier: Apache-2.0
// What Python says about calibration, as options.
#pragma once

#include <memory>
#include <utility>

#include "leadline/calibration.h"

namespace leadline::python {

inline CalibrateOptions calibrate_options(int num_threads, std::shared_ptr<Budget> budget, bool histograms,
                                          bool keep_state) {
  CalibrateOptions options;
  options.num_threads = num_threads;
  options.budget = std::move(budget);
  options.histograms = histograms;
  options.keep_state = keep_state;
  return options;
}

}  // namespace leadline::python
