// SPDX-License-Identifier: Apache-2.0
// Progress as the engine reports it.
#pragma once

#include <cstdint>

#include "leadline/progress.h"

namespace leadline {

/// Counts what is done of a piece of work and reports it to `progress`, which may be empty. Throws Error(kCancelled)
/// when that returns false.
class ProgressCounter {
 public:
  ProgressCounter(const Progress& progress, int64_t total) : progress_(progress), total_(total) {}
  /// Before the first add() too, so that work can be stopped before it starts.
  void add(int64_t done);

 private:
  const Progress& progress_;
  int64_t total_;
  int64_t done_ = 0;
};

}  // namespace leadline
