// SPDX-License-Identifier: Apache-2.0
// Calibrations as bytes: read, asked for every range, merged with themselves, written again.
#include "leadline/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "leadline/quantizer.h"
#include "readers/models.h"
#include "readers/readers.h"

namespace leadline::fuzz {
namespace {

void run(Bytes bytes) {
  static const Model model = float_model();
  Calibration calibration = Calibration::from_bytes(bytes, small_budget());
  const std::vector<std::byte> again = calibration.to_bytes();
  if (as_text(again) != as_text(bytes)) throw std::logic_error("bytes that were read are written otherwise");
  const std::vector<TensorCalibration> tensors = calibration.tensors();
  for (size_t i = 0; i < std::min<size_t>(tensors.size(), 8); ++i) {
    use(tensors[i].name);
    for (const CalibrationMethod method :
         {CalibrationMethod::kMinMax, CalibrationMethod::kMovingAverage, CalibrationMethod::kPercentile,
          CalibrationMethod::kMse, CalibrationMethod::kKl}) {
      if (!calibration.histograms() && method >= CalibrationMethod::kPercentile) continue;
      const auto range = calibration.range(tensors[i].subgraph, tensors[i].tensor, {method}, 8, false);
      if (range && !(range->min <= range->max)) throw std::logic_error("a range that is none");
    }
  }
  if (calibration.is_of(model)) {
    QuantizeOptions options;
    options.mode = QuantizationMode::kInt8;
    load_and_run(Quantizer(model, options).quantize_to_model(&calibration));
  }
  const Calibration copy = calibration;
  calibration.merge(copy);
}

std::vector<std::string> seeds() {
  std::vector<std::string> result = {as_string(Calibration().to_bytes())};
  for (const bool histograms : {false, true}) {
    CalibrateOptions options;
    options.histograms = histograms;
    options.gram_matrices = !histograms;
    Calibrator calibrator(float_model(), options);
    calibrator.interpreter().allocate();
    calibrator.add_sample();
    const TensorMemory input = calibrator.interpreter().tensor(calibrator.interpreter().inputs()[0]);
    for (int64_t i = 0; i + 4 <= input.bytes; i += 4) {
      const auto value = static_cast<float>(i - 100);
      std::memcpy(input.data + i, &value, 4);
    }
    calibrator.add_sample();
    result.push_back(as_string(calibrator.calibration().to_bytes()));
  }
  return result;
}

/// The last 8 bytes are the FNV-1a of those before.
void repair(std::string& bytes) {
  if (bytes.size() < 8) return;
  uint64_t sum = 0xCBF29CE484222325U;
  for (size_t i = 0; i + 8 < bytes.size(); ++i) sum = (sum ^ static_cast<unsigned char>(bytes[i])) * 0x100000001B3U;
  std::memcpy(bytes.data() + bytes.size() - 8, &sum, 8);
}

}  // namespace

Reader calibration_reader() {
  return {.name = "calibration", .run = run, .seeds = seeds, .repair = repair, .most_bytes = 65536};
}

}  // namespace leadline::fuzz
