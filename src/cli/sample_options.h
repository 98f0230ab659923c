// SPDX-License-Identifier: Apache-2.0
// --data and related options: how every command that runs samples finds them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "leadline/budget.h"
#include "leadline/model.h"
#include "leadline/sample_reader.h"
#include "leadline/samples.h"

namespace leadline::cli {

struct SampleOptions {
  std::string data;
  int64_t max_samples = 0;
  std::string image_size;
  std::vector<float> mean;
  std::vector<float> scale;
  std::string colors = "auto";
  std::string resize = "bilinear";
  std::string labels;
  std::string classes;

  /// Whether --data was given.
  explicit operator bool() const { return !data.empty(); }
  /// The samples for `model`. Throws Error(kInvalidArgument) without --data.
  std::unique_ptr<SampleSource> open(const Model& model, std::shared_ptr<Budget> budget = nullptr) const;
};

/// Adds --data, --samples and the options for pictures. `about` says what the samples are for.
void add_sample_options(Command& command, SampleOptions& options, const std::string& about);
/// Adds --labels and --classes.
void add_label_options(Command& command, SampleOptions& options);

/// Prints what was found about samples on standard error: warnings, and notes if they are wanted.
void print_findings(const std::vector<SampleFinding>& findings, bool notes = false);

}  // namespace leadline::cli
