// SPDX-License-Identifier: Apache-2.0
// Cross-layer equalization: what a channel's weights have too much in one layer they have too little in the next.
//
// ReLU and no activation let positive factors pass: dividing the weights and the bias of an output channel by s, and
// multiplying the next layer's weights of that input channel by s, changes nothing of what the model computes. Factors
// that make the largest weights of both sides equal (Nagel et al., 2019) let one scale for many channels, of
// activations and of weights, fit them all better; depthwise nets gain most.
#pragma once

#include "ir/graph.h"

namespace leadline::quantize {

/// Equalizes pairs of CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED nodes with float32 constants where nothing else
/// reads the values between them, and the first has no activation or RELU. RELU6 bounds what it lets pass, so such
/// pairs stay as they are. Weights become sources that are scaled while the file is written. Returns the number of
/// pairs.
int equalize(ir::Graph& graph);

}  // namespace leadline::quantize
