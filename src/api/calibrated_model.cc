// SPDX-License-Identifier: Apache-2.0
// Calibrations inside of .tflite files: the range of a float tensor is the min and max of its quantization.
#include <cmath>
#include <memory>
#include <utility>

#include "api/calibration_data.h"
#include "core/boundary.h"
#include "core/error.h"
#include "leadline/calibration.h"
#include "quantize/statistics_bytes.h"
#include "runtime/loaded_model.h"

namespace leadline {

Calibration calibration_of(const Model& calibrated_model, std::shared_ptr<Budget> budget) try {
  const ir::Graph& graph = *calibrated_model.loaded()->graph();
  auto data = std::make_unique<Calibration::Data>(budget ? std::move(budget) : calibrated_model.budget());
  quantize::ModelStatistics& statistics = data->statistics;
  statistics = quantize::empty_statistics(graph, false);
  data->charge.resize(statistics.bytes());
  for (quantize::WatchedTensor& tensor : statistics.tensors) {
    const Quantization& quantization =
        graph.subgraphs[static_cast<size_t>(tensor.subgraph)].value(tensor.tensor).quantization;
    if (quantization.min.size() != 1 || quantization.max.size() != 1) continue;
    const quantize::Range range{quantization.min[0], quantization.max[0]};
    if (range.empty() || !std::isfinite(range.min) || !std::isfinite(range.max)) continue;
    tensor.statistics.all.elements = 1;
    tensor.statistics.all.range = range;
    tensor.statistics.recent = {range};
    statistics.samples = 1;
  }
  require(statistics.samples > 0, ErrorCode::kInvalidArgument,
          "no tensor of the model has a range (min and max): it was not calibrated. Convert it with "
          "_experimental_calibrate_only, or calibrate with leadline.calibrate");
  return Calibration(std::move(data));
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
