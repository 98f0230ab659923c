// SPDX-License-Identifier: Apache-2.0
// Tensors of an interpreter from and to numpy's files, and random inputs.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "cli/opened_model.h"
#include "io/npy.h"
#include "leadline/interpreter.h"

namespace leadline::cli {

/// Throws Error(kInvalidArgument), naming input, file, what is expected and what the file has, when the types differ.
void check_type(const NamedTensor& input, const TensorInfo& info, const ArrayReader& array);

/// Reads an array, whose type and shape fit, into an input of an allocated interpreter.
void load_input(Interpreter& interpreter, int index, ArrayReader& array);

/// Fills an input of an allocated interpreter. Floats lie in [-1, 1), quantized integers and bytes anywhere in their
/// range, other integers are 0 or 1 (they are mostly indices and counts), strings are short words.
void fill_random(Interpreter& interpreter, int index, std::mt19937_64& random);

/// Strings of a string tensor. Contents that do not hold exactly `count` strings give none.
std::vector<std::string> tensor_strings(const TensorMemory& memory);

/// Values of a sub-byte tensor (int4, uint4, int2), one byte each.
std::vector<std::byte> unpack_bits(const TensorMemory& memory);

/// Writes tensors as one .npz file, or as .npy where the path says so and there is one tensor. Types numpy does not
/// have are widened (int4 to int8) or written as raw bytes (bfloat16).
void save_tensors(const std::string& path, const std::vector<NamedTensor>& tensors, const Interpreter& interpreter);

}  // namespace leadline::cli
