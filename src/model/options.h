// SPDX-License-Identifier: Apache-2.0
// Option tables of ops, read and written through the op's own list of fields.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include "ir/attributes.h"

namespace leadline::model {

/// Fills `attributes` from `table`, whose vtable the verifier has checked; null leaves the defaults. Every field is
/// bounds-checked here. Throws Error(kInvalidModel) naming the field. Returns the bytes of lists and strings it copied.
int64_t read_options(const flatbuffers::Table* table, flatbuffers::Verifier& verifier, ir::Attributes& attributes);

/// Writes a table with every field. The builder must not be inside another table.
flatbuffers::uoffset_t write_options(ir::Attributes& attributes, flatbuffers::FlatBufferBuilder& builder);

}  // namespace leadline::model
