// SPDX-License-Identifier: Apache-2.0
// What a Calibration holds.
#pragma once

#include "base/charge.h"
#include "leadline/calibration.h"
#include "quantize/statistics.h"

namespace leadline {

struct Calibration::Data {
  Data() = default;
  explicit Data(std::shared_ptr<Budget> budget) : charge(std::move(budget), MemoryCategory::kStatistics) {}

  Charge charge;  // statistics.bytes(); of no budget while there is no model
  quantize::ModelStatistics statistics;
};

}  // namespace leadline
