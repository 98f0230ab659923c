// SPDX-License-Identifier: Apache-2.0
// What `quantize`, `tune` and `convert --quantize` share: options, and what is said about the result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/sample_options.h"
#include "leadline/model.h"
#include "leadline/quantize.h"
#include "leadline/sample_reader.h"

namespace leadline::cli {

struct QuantizationOptions {
  std::string mode = "int8";
  SampleOptions samples;
  std::string input_type = "float32";
  std::string output_type = "float32";
  std::string recipe;
  std::vector<std::string> keep_float;
  std::string apply_path;  ///< a report of `debug`
  int suggestion = 1;      ///< of that report
  std::string method = "min_max";
  double percentile = 99.99;
  bool strict = false;
  bool per_tensor = false;
  bool bias_correction = false;
  bool ranges_only = false;
  bool keep_state = false;
  bool sparsify = false;
  bool equalize = false;
  std::string rounding = "nearest";
  int64_t min_weight_elements = 256;
  int threads = -1;

  /// All but the mode.
  void add_to(Command& command);
  /// As the job takes them.
  QuantizeOptions parsed() const;
};

struct QuantizationReport {
  std::string model_path;   ///< what the user calls the model
  std::string output_path;  ///< where the quantized file is written
  bool plan_only = false;   ///< only say what would be done
  bool json = false;
};

/// Says what memory each phase takes, runs the job, writes the file and says what was done.
void quantize_and_report(const Model& model, const QuantizationOptions& options, const QuantizationReport& report);

/// The messages.
Json findings_json(const std::vector<SampleFinding>& findings);

}  // namespace leadline::cli
