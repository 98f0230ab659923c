// SPDX-License-Identifier: Apache-2.0
// Undoes what was done to a chunk before it was written: deflate, shuffle, fletcher32.
#pragma once

#include <array>

#include "core/buffer.h"
#include "import/hdf5/dataset.h"

namespace leadline::hdf5 {

class ChunkUnpacker {
 public:
  /// Throws Error(kUnsupported) when a filter is not known. Memory is taken when the first chunk needs it.
  ChunkUnpacker(const Dataset& dataset, std::shared_ptr<Budget> budget);

  /// The elements of a chunk, chunk_bytes of them; valid until the next call. `mask` names filters left out.
  std::span<const std::byte> unpack(std::span<const std::byte> stored, uint32_t mask);

 private:
  std::span<std::byte> memory(int which);

  const Dataset& dataset_;
  std::shared_ptr<Budget> budget_;
  std::array<Buffer, 2> buffers_;
};

}  // namespace leadline::hdf5
