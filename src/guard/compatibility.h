// SPDX-License-Identifier: Apache-2.0
// The table of versions that fit each other: data/compatibility.json, with its sources and dates.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "guard/pep440.h"

namespace leadline::guard {

extern const char* const kCompatibilityJson;

struct TensorFlowRow {
  std::string version;  ///< "2.16"
  std::string oldest_python;
  std::string newest_python;
  std::string cuda;
  std::string cudnn;
  std::map<std::string, std::string> requirements;  ///< of its wheels, for installations without metadata of their own
};

struct CpuRow {
  std::vector<std::string> packages;
  std::string since;
  std::string machine;
  std::vector<std::string> features;
  std::string source;
};

struct Compatibility {
  std::string date;
  std::map<std::string, std::string> sources;  ///< address by short name
  std::vector<TensorFlowRow> tensorflow;       ///< newest first
  std::string keras3_since;                    ///< the TensorFlow that needs Keras 3
  std::string numpy2_since;                    ///< the TensorFlow that is built for NumPy 2
  std::vector<std::string> tensorflow_family;
  std::vector<std::string> lite_runtimes;
  std::vector<std::string> lite_converters;
  std::vector<std::pair<int, std::string>> cuda_drivers;  ///< oldest driver by major version of CUDA
  std::vector<CpuRow> cpu;

  const TensorFlowRow* row_of(const Version& tensorflow_version) const;
  std::string source(const std::string& name) const;
};

/// The table of this build. A table that cannot be read is a defect of the build: Error(kInternal).
const Compatibility& compatibility();

}  // namespace leadline::guard
