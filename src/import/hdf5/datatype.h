// SPDX-License-Identifier: Apache-2.0
// Element types and shapes as HDF5 writes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "import/hdf5/format.h"
#include "leadline/types.h"

namespace leadline::hdf5 {

struct Datatype {
  enum class Kind { kNumber, kFixedString, kVariableString, kOpaque, kOther };
  Kind kind = Kind::kOther;
  uint64_t item_bytes = 0;     ///< of one element in the file, at least 1
  bool big_endian = false;     ///< numbers only
  std::optional<DType> dtype;  ///< of numbers that Leadline knows
  uint8_t padding = 0;         ///< of strings: 0 ends at a zero, 1 filled up with zeros, 2 with spaces
  std::string text() const;    ///< for messages: "float32", "opaque of 2 bytes"
};

struct Dataspace {
  std::vector<uint64_t> dims;
  std::vector<uint64_t> max_dims;  ///< as dims where the file names none
  bool null = false;               ///< no elements at all
  uint64_t elements = 1;
};

Datatype read_datatype(const FileBytes& file, std::span<const std::byte> bytes);
Dataspace read_dataspace(const FileBytes& file, std::span<const std::byte> bytes);

/// Product that fits in 63 bits. Throws Error(kInvalidModel) otherwise.
uint64_t checked_product(uint64_t a, uint64_t b, const char* what);

}  // namespace leadline::hdf5
