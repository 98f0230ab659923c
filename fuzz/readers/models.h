// SPDX-License-Identifier: Apache-2.0
// Small .tflite files made by code: nodes of every op that runs, loops, signatures, quantized and sparse constants.
#pragma once

#include <string>
#include <vector>

#include "leadline/model.h"

namespace leadline::fuzz {

/// Files that load; most of them run.
const std::vector<std::string>& model_files();
/// Inputs x [1, 4] float, ids [2] int32 and words [2] string, one output for each.
Model input_model();
/// Two layers and an activation, all float, with names like those of real models.
Model float_model();

/// Loads, plans and runs every subgraph within small limits.
void load_and_run(const Model& model);

}  // namespace leadline::fuzz
