// SPDX-License-Identifier: Apache-2.0
// Hooks into a run: profiling, calibration and debugging are observers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leadline/types.h"

namespace leadline {

/// A tensor as an observer sees it; valid during the call only.
struct ObservedTensor {
  int index = -1;  ///< number in its subgraph; -1: absent optional operand
  std::string_view name;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::span<const std::byte> data;
  float scale = 0.0F;  ///< 0: not quantized per tensor
  int64_t zero_point = 0;
};

/// The node about to run or just done.
struct ObservedNode {
  int subgraph = 0;
  int node = 0;
  std::string_view op;
  std::string_view name;  ///< of its first output
  std::span<const ObservedTensor> inputs;
  std::span<const ObservedTensor> outputs;
};

/// Called on the thread that runs the interpreter. An exception thrown by an observer ends the run and reaches the
/// caller of invoke().
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void before_node(const ObservedNode& /*node*/) {}
  virtual void after_node(const ObservedNode& /*node*/) {}
};

/// Time spent per node, collected by Interpreter::profile().
struct NodeProfile {
  int subgraph = 0;
  int node = 0;
  std::string op;
  std::string name;
  int64_t runs = 0;
  double total_ms = 0.0;
  double fastest_ms = 0.0;
};

}  // namespace leadline
