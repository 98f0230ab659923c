// SPDX-License-Identifier: Apache-2.0
// B-trees of version 2, which hold fixed-size records: names of dense groups, attributes, chunks.
#pragma once

#include <functional>

#include "import/hdf5/format.h"

namespace leadline::hdf5 {

/// Calls `visit` with each record of the tree at `address`, in order. `type` is the kind of records expected.
void for_each_record(const FileBytes& file, uint64_t address, int type,
                     const std::function<void(std::span<const std::byte>)>& visit);

}  // namespace leadline::hdf5
