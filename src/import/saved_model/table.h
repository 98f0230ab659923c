// SPDX-License-Identifier: Apache-2.0
// Reads a table file (variables.index): sorted keys and values in blocks, an index of the blocks, and a footer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "import/saved_model/wire.h"

namespace leadline::saved_model {

struct TableEntry {
  std::string key;
  Bytes value;                     // inside `file`
  std::shared_ptr<WireFile> file;  // the table, or a block of it that was compressed
};

/// All entries in the order of their keys. Checksums are verified. Throws Error(kInvalidModel) for any damage.
std::vector<TableEntry> read_table(const std::shared_ptr<WireFile>& file, const std::shared_ptr<Budget>& budget);

}  // namespace leadline::saved_model
