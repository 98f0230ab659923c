// SPDX-License-Identifier: Apache-2.0
// Small models and files of models, made by code: few allocations each, so that all of them can be refused in turn.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/cpp/sketch.h"

namespace leadline::faults {

using Bytes = std::vector<std::byte>;

/// Two convolutions, a pooling, a sum and a classifier: x [1, 6, 6, 2] -> y [1, 3].
Bytes float_model();
/// A convolution large enough for several threads: x [1, 24, 24, 16] -> y [1, 24, 24, 16].
Bytes wide_model();
/// Texts picked from a table that CALL_ONCE fills: x int64 [2] -> string [2].
Bytes string_model();
/// while (i < 4) x = concat(x, x), then one of two branches: i, x [2], which -> y [?].
Bytes control_flow_model();
/// The places of what is not zero: x [4] -> [?, 1]; shapes that are known during a run.
Bytes data_dependent_model();
/// A variable that counts: x [2] -> y [2].
Bytes stateful_model();
/// y = -Twice(|x|), where Twice is a custom op.
Bytes custom_model();

/// Keras: Dense, BatchNormalization, Dense; x [null, 3] -> [null, 2]. As .keras (deflated or not) or .h5.
std::string keras_file(bool deflated);
std::string keras_h5_file();
/// y = relu(x * w + v), with variables; written into `folder`.
void write_saved_model(const std::string& folder);

}  // namespace leadline::faults
