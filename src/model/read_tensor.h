// SPDX-License-Identifier: Apache-2.0
// Tensors of a .tflite file and the buffers they point to.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ir/graph.h"

namespace leadline::tfl {
struct Model;
struct Tensor;
}  // namespace leadline::tfl

namespace leadline::model {

/// Finds the bytes of the model's buffers, inside the flatbuffer or behind it.
class BufferTable {
 public:
  BufferTable(const tfl::Model& model, ir::Graph& graph) : model_(model), graph_(graph) {}
  /// Bytes of buffer `index`; empty for buffers without data. Throws when the index or the place is out of range.
  std::span<const std::byte> bytes_of(uint32_t index, const std::string& owner) const;
  /// The same bytes, copied into the graph's own storage where they are not aligned for elements of `dtype`.
  std::span<const std::byte> aligned(std::span<const std::byte> bytes, DType dtype);

 private:
  const tfl::Model& model_;
  ir::Graph& graph_;
};

/// Reads one tensor. Throws Error(kInvalidModel) for what cannot be represented; the rest is ir::verify's work.
ir::Value read_tensor(const tfl::Tensor& source, uint32_t index, BufferTable& buffers);

}  // namespace leadline::model
