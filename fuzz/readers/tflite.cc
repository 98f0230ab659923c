// SPDX-License-Identifier: Apache-2.0
// .tflite files: loaded, described, written again, planned and run; and quantized.
#include <fmt/format.h>

#include <stdexcept>

#include "leadline/calibration.h"
#include "leadline/error.h"
#include "leadline/quantizer.h"
#include "readers/models.h"
#include "readers/readers.h"

namespace leadline::fuzz {
namespace {

void describe(const Model& model) {
  use(model.description());
  use(model.to_text());
  for (const SignatureInfo& signature : model.signatures()) use(signature.key);
  for (const auto& [name, bytes] : model.metadata()) use(name);
  for (const MissingOp& op : model.missing_ops()) use(op.reason);
  for (int i = 0; i < model.subgraph_count(); ++i) {
    for (const TensorInfo& tensor : model.subgraph(i).tensors) {
      if (tensor.sparse) use(std::to_string(model.sparsity(i, tensor.index)->dimensions.size()));
    }
  }
}

/// What was read can be written, and what was written can be read.
void write_anew(const Model& model) {
  const std::vector<std::byte> file = model.to_tflite();
  try {
    Model::from_bytes(file, nullptr, small_budget());
  } catch (const BudgetError&) {
    return;
  } catch (const Error& error) {
    throw std::logic_error(fmt::format("a file of Leadline's own is not read: {}", error.what()));
  }
}

void run_tflite(Bytes bytes) {
  const Model model = Model::from_bytes(bytes, nullptr, small_budget());
  describe(model);
  write_anew(model);
  load_and_run(model);
}

void run_quantize(Bytes bytes) {
  const Model model = Model::from_bytes(bytes, nullptr, small_budget());
  for (const QuantizationMode mode : {QuantizationMode::kDynamicRange, QuantizationMode::kFloat16,
                                      QuantizationMode::kWeightOnlyInt4, QuantizationMode::kInt8}) {
    QuantizeOptions options;
    options.mode = mode;
    options.min_weight_elements = 1;
    const Quantizer quantizer(model, options);
    if (mode != QuantizationMode::kInt8) {
      load_and_run(quantizer.quantize_to_model());
      continue;
    }
    Calibrator calibrator(quantizer.model());
    load_and_run(quantizer.model());  // ends what would take long
    calibrator.add_sample();
    const Calibration calibration = calibrator.calibration();
    load_and_run(quantizer.quantize_to_model(&calibration));
  }
}

std::vector<std::string> words() {
  std::vector<std::string> result = {"TFL3",
                                     "serving_default",
                                     "min_runtime_version",
                                     std::string(4, '\xFF'),
                                     std::string("\xFF\xFF\xFF\x7F", 4),
                                     std::string("\x01\0\0\0", 4)};
  return result;
}

std::vector<std::string> files() { return model_files(); }

}  // namespace

Reader tflite_reader() {
  return {.name = "tflite", .run = run_tflite, .seeds = files, .words = words, .most_bytes = 4096};
}
Reader quantize_reader() {
  return {.name = "quantize", .run = run_quantize, .seeds = files, .words = words, .most_bytes = 4096};
}

}  // namespace leadline::fuzz
