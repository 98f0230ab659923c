// SPDX-License-Identifier: Apache-2.0
// Names of functions by their place in a library's file, for stacks of processes that are gone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leadline::guard {

/// One name for each offset in the file, from its symbol tables; empty where they have none. Nothing is loaded; a
/// file that is damaged, or no ELF file of 64 bits, has no names.
std::vector<std::string> function_names(const std::string& path, const std::vector<uint64_t>& offsets);

}  // namespace leadline::guard
