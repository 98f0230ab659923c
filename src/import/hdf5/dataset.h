// SPDX-License-Identifier: Apache-2.0
// Datasets: where the elements are, and how chunks are unpacked.
#pragma once

#include <functional>
#include <memory>

#include "import/hdf5/datatype.h"
#include "import/hdf5/object_header.h"
#include "leadline/budget.h"

namespace leadline::hdf5 {

struct Filter {
  int id = 0;
  std::vector<uint32_t> values;
};

struct Dataset {
  enum class Layout { kCompact, kContiguous, kChunked };
  /// Where the chunks are listed. The numbers from 1 on are those of the format's version 4.
  enum class Index { kBtreeV1 = 0, kSingle = 1, kImplicit = 2, kFixedArray = 3, kExtensibleArray = 4, kBtreeV2 = 5 };

  Datatype type;
  Dataspace space;
  uint64_t bytes = 0;  ///< of all elements
  Layout layout = Layout::kContiguous;
  std::span<const std::byte> stored;  ///< compact and contiguous; empty where nothing was ever written
  std::span<const std::byte> fill;    ///< one element for what was never written; empty means zeros

  std::vector<uint64_t> chunk;  ///< dimensions of a chunk, in elements
  uint64_t chunk_bytes = 0;
  Index index = Index::kBtreeV1;
  uint64_t index_address = kUndefined;
  uint64_t single_size = 0;  ///< stored size of a filtered single chunk
  uint32_t single_mask = 0;
  std::vector<Filter> filters;
};

/// The dataset with these messages; nothing when the object is none.
std::optional<Dataset> read_dataset(const FileBytes& file, const std::vector<Message>& messages);

/// A chunk as it is stored. `place` counts in chunks, one number per dimension.
struct Chunk {
  uint64_t address = kUndefined;
  uint64_t size = 0;
  uint32_t mask = 0;  ///< bit i: filter i was left out
  std::vector<uint64_t> place;
};

/// Calls `visit` with each chunk that was written.
void for_each_chunk(const FileBytes& file, const Dataset& dataset, const std::function<void(const Chunk&)>& visit);

/// Reads all elements as they are in the file, without changing their byte order. `out` has dataset.bytes bytes.
/// Memory for unpacking a chunk is charged to `budget`.
void read_elements(const FileBytes& file, const Dataset& dataset, const std::shared_ptr<Budget>& budget,
                   std::span<std::byte> out);

}  // namespace leadline::hdf5
