// SPDX-License-Identifier: Apache-2.0
// Some samples of a job, with what the float model makes of them, kept to measure other models on: every second one to
// choose by, the others to say what was chosen is worth.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/charge.h"
#include "leadline/interpreter.h"
#include "leadline/samples.h"

namespace leadline::jobs {

class KeptSamples {
 public:
  /// Which of them: all, those to choose and calibrate with, those that were held out of that.
  enum class Part { kAll, kChosenBy, kHeldOut };

  /// What they take at most, for samples like those that `interpreter`, of the float model, has room for.
  static int64_t capacity(const Interpreter& interpreter);
  /// `samples`: how many will come, where that is known; those that are kept are spread evenly over them.
  KeptSamples(const std::shared_ptr<Budget>& budget, int64_t capacity, std::optional<int64_t> samples);

  /// Room for larger samples than were expected.
  void raise_capacity(int64_t capacity) { capacity_ = std::max(capacity_, capacity); }

  /// `interpreter` has run the sample: its first outputs are the float model's, `float_outputs` in number.
  void add(const Sample& sample, const Interpreter& interpreter, size_t float_outputs);

  size_t count(Part part) const;
  /// A source of them, for jobs that read samples. This outlives it.
  std::unique_ptr<SampleSource> source(Part part) const;

  struct Kept {
    Sample sample;  // its tensors lie in `bytes`
    std::vector<std::vector<std::byte>> bytes;
    std::vector<std::vector<float>> outputs;  // of the float model; empty: not float32
  };
  /// With one sample alone it is the same in every part.
  std::vector<const Kept*> part(Part part) const;

 private:
  int64_t capacity_;
  int64_t stride_ = 1;
  int64_t seen_ = 0;
  Charge charge_;
  std::vector<std::unique_ptr<Kept>> kept_;
};

}  // namespace leadline::jobs
