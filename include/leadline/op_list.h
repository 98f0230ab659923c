// SPDX-License-Identifier: Apache-2.0
// Which ops Leadline knows, and which of them it runs.
#pragma once

#include <string>
#include <vector>

namespace leadline {

/// One op of the .tflite format, or a custom op of Leadline's own.
struct OpInfo {
  std::string name;
  int code = 0;  ///< number of the builtin op; -1: a custom op
  int max_version = 1;
  bool runs = false;
  std::string types;   ///< types and quantized forms: "f32 i8 u8 i16x8 hybrid", "all but strings"
  std::string fast;    ///< those of them with kernels tuned for the CPU; empty: none
  std::string reason;  ///< why it does not run
};

/// Builtin ops by their number, then custom ops by name; what users registered is not among them.
std::vector<OpInfo> known_ops();

}  // namespace leadline
