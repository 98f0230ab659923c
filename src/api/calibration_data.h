// SPDX-License-Identifier: Apache-2.0
// What a Calibration holds.
#pragma once

#include <memory>

#include "core/charge.h"
#include "leadline/calibration.h"
#include "quantize/statistics.h"

namespace leadline {

struct Calibration::Data {
  Data() = default;
  explicit Data(std::shared_ptr<Budget> budget) : charge(std::move(budget), MemoryCategory::kStatistics) {}

  /// Charged before it is copied.
  static std::unique_ptr<Data> copy_of(const quantize::ModelStatistics& statistics, std::shared_ptr<Budget> budget);

  Charge charge;  // statistics.bytes(); of no budget while there is no model
  quantize::ModelStatistics statistics;
};

}  // namespace leadline
