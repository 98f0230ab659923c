// SPDX-License-Identifier: Apache-2.0
// Rewrites of a model's graph, by name: those an interpreter makes for its runs, and those of the converter.
#pragma once

#include <string>
#include <vector>

namespace leadline {

struct PassInfo {
  std::string name;
  std::string description;  ///< one line
  bool runs = false;        ///< made by an interpreter: InterpreterOptions::disabled_passes
  bool converts = false;    ///< made by a converter: ConversionOptions::disabled_passes
};

/// All passes, those of the interpreter first, in the order in which they are made.
std::vector<PassInfo> list_passes();

}  // namespace leadline
