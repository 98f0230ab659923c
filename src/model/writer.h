// SPDX-License-Identifier: Apache-2.0
// Graph -> .tflite bytes.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph.h"

namespace leadline::model {

/// Writes the graph as a .tflite file. Constants that share their bytes share a buffer. Throws Error(kUnsupported) when
/// the file would exceed 2 GiB, the limit of a flatbuffer.
std::vector<std::byte> write(const ir::Graph& graph);

}  // namespace leadline::model
