// SPDX-License-Identifier: Apache-2.0
// .tflite bytes -> verified Graph.
#pragma once

#include <memory>

#include "io/mapped_file.h"
#include "ir/graph.h"

namespace leadline::model {

/// Reads and verifies a model. The graph keeps `bytes` alive and points into it.
/// Throws Error(kInvalidModel) for damaged, truncated or illegal files and Error(kUnsupported) for ops or versions that
/// Leadline does not know.
std::shared_ptr<const ir::Graph> read(std::shared_ptr<ModelBytes> bytes);

}  // namespace leadline::model
