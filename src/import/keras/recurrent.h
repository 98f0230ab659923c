// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: as a WHILE over time for any cell, and as the fused op for LSTM.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "import/keras/layer_functions.h"

namespace leadline::keras {

/// What a cell computes. The functions may be called in any subgraph: constants are made where they are used.
struct RecurrentCell {
  std::vector<Dims> states;  // sizes of each, without the batch; the first is the output's unless `output` says so
  size_t output = 0;         // which of the states is the output
  /// What the steps take from the input [batch, time, ...], for all of them at once.
  std::function<int(int sequence)> project;
  /// The share of one step [batch, ...] and the states give the new states.
  std::function<std::vector<int>(int share, const std::vector<int>& states)> step;
};

/// LSTMCell, GRUCell, SimpleRNNCell or StackedRNNCells; `layer` has its configuration and address.
RecurrentCell make_cell(Call& call, const Layer& layer);

/// Refuses what no converted layer does, and returns the input with time in the order in which the layer reads it.
int recurrent_input(Call& call);

/// The layer's outputs: all steps or the last, then the states if it returns them. `projected` is
/// cell.project(recurrent_input()).
Outputs run_cell(Call& call, const RecurrentCell& cell, int projected);

/// Whether a layer with this cell is what UNIDIRECTIONAL_SEQUENCE_LSTM computes: Keras's own activations, no mask, no
/// states that come from or go to elsewhere.
bool fuses(Call& call, const Layer& cell);
/// The output of such a layer, with that op. `sequence` is recurrent_input().
int fused_lstm(Call& call, const Layer& cell, int sequence);

}  // namespace leadline::keras
