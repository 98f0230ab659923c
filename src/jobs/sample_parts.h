// SPDX-License-Identifier: Apache-2.0
// A source of samples in two parts: those to search with, and every so-manieth one, which is held out of that.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "leadline/samples.h"

namespace leadline::jobs {

class SampleParts {
 public:
  /// Holds out the last of every `stride` samples. `source` outlives this and both parts; it must be able to begin
  /// again, as each part reads it from its beginning.
  SampleParts(SampleSource& source, int64_t stride);

  SampleSource& searched() { return *searched_; }
  SampleSource& held_out() { return *held_out_; }

 private:
  class Part;
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::unique_ptr<SampleSource> searched_;
  std::unique_ptr<SampleSource> held_out_;
};

/// How many samples a source has; they are read for it where it does not say. Nothing: it cannot begin again.
std::optional<int64_t> count_samples(SampleSource& source);

}  // namespace leadline::jobs
