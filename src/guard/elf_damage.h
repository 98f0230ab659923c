// SPDX-License-Identifier: Apache-2.0
// Whether the file of a shared library is whole: the parts that its headers name must lie within it. Loading one that
// is not ends in SIGBUS, which no except clause catches.
#pragma once

#include <string>

namespace leadline::guard {

/// What is wrong with it, as the rest of a sentence ("has 1,000 bytes, but its segment 2 ends at 3,000"); empty when
/// nothing is, for files that are not there, and for what never was an ELF file.
std::string elf_damage(const std::string& path);

}  // namespace leadline::guard
