// SPDX-License-Identifier: Apache-2.0
// Ops that keep their states in variables, as integers: UNIDIRECTIONAL_SEQUENCE_LSTM and LSTM with int8 values and
// int16 cell states, SVDF with an int16 state. These are the only forms that kernels have, so int16x8 means them too.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "quantize/parameters.h"
#include "quantize/treatment.h"

namespace leadline::quantize {

/// Inputs of UNIDIRECTIONAL_SEQUENCE_LSTM and LSTM; weights and biases are those of four gates, one after the other.
enum LstmInput {
  kLstmInputWeights = 1,
  kLstmRecurrentWeights = 5,
  kLstmPeephole = 9,  // without one for the cell gate
  kLstmBias = 12,
  kLstmProjection = 16,
  kLstmProjectionBias = 17,
  kLstmOutputState = 18,
  kLstmCellState = 19,
  kLstmNorm = 20,
};

/// The inputs of a node that are its states; none for other ops.
std::span<const int> state_inputs(const ir::Node& node);

/// What keeps a node with states from integers; empty: nothing.
std::string state_obstacle(const ir::Subgraph& subgraph, const ir::Node& node);

/// A node that sets a state to zeros at the beginning of every run: zeros times a value of each row of a batch.
struct StateSetter {
  int node = 0;
  int reader = 0;  // the node whose state it is
  int input = 0;   // which of its inputs
};
std::vector<StateSetter> state_setters(const ir::Subgraph& subgraph);

/// Nodes that set states become what the nodes become that have these states.
void treat_setters(const ir::Subgraph& subgraph, std::vector<NodeTreatment>& treatments);

struct IntegerConstant {
  DType type = DType::kInt8;
  Quantization quantization;
  bool narrow = false;  // the lowest integer is left out
};

struct IntegerState {
  DType type = DType::kInt8;
  Parameters parameters;
};

/// A node with states as integers, by input.
struct RecurrentForm {
  std::map<int, IntegerConstant> constants;
  std::map<int, IntegerState> states;
  std::optional<Parameters> hidden;  // of an LSTM: what its output gate makes of the cell state, before a projection
};

/// `range_of` a state, by its number as an input of the node.
using StateRange = std::function<RealRange(int input)>;
RecurrentForm recurrent_form(const ir::Graph& graph, const ir::Subgraph& subgraph, const ir::Node& node,
                             const Parameters& input, const Parameters& output, const StateRange& range_of);

}  // namespace leadline::quantize
