// SPDX-License-Identifier: Apache-2.0
// Models of one op with the shapes of real networks: what op_bench times and the instruction counts guard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leadline::bench {

struct OpCase {
  std::string name;              ///< "conv/1x1_28x28x512/int8"
  std::vector<std::byte> model;  ///< a .tflite file with one node
  int64_t macs = 0;              ///< multiply-adds; 0: the op moves bytes
  int64_t bytes = 0;             ///< read and written by the node, constants included
  bool integer = false;          ///< the products are of 8-bit numbers
  bool counted = false;          ///< one of the few whose instructions are counted
};

/// All cases, made again. The contents are the same on every machine.
std::vector<OpCase> make_op_cases();

}  // namespace leadline::bench
