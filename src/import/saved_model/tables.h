// SPDX-License-Identifier: Apache-2.0
// Tables that map keys to values (tf.lookup): where their contents come from, and the contents.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "import/saved_model/program.h"
#include "import/saved_model/resolver.h"
#include "ir/sources.h"

namespace leadline::saved_model {

/// How a table is filled when the model is loaded: from two constants, or from the lines of a text file.
struct TableContents {
  const NodeDef* keys = nullptr;  // Const
  const NodeDef* values = nullptr;
  std::string file;                      // below the directory of the SavedModel, when it is one
  const NodeDef* initializer = nullptr;  // of a file: says which parts of lines are keys and values
};

/// By name (Resolver::variable_name). Tables that are not filled, or from what is not constant, are left out.
std::unordered_map<std::string, TableContents> find_tables(Program& program);

/// One side of a table in a text file.
struct TableColumn {
  ir::Source source;  // int64, or strings
  int64_t count = 0;
};

/// Keys and values of a file. Throws Error: kIo, kInvalidModel.
std::pair<TableColumn, TableColumn> read_table(const std::string& path, const Program& program,
                                               const NodeDef& initializer, TfType key, TfType value);

}  // namespace leadline::saved_model
