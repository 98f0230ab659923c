// SPDX-License-Identifier: Apache-2.0
// What the headers of a shared library say: for which machine it is and what it needs. Nothing is loaded or run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/pep440.h"

namespace leadline::guard {

struct ElfFile {
  std::string machine;  ///< "x86_64", "aarch64", ... as uname names them; "machine 243" for others
  std::string soname;
  std::vector<std::string> needed;       ///< libraries: "libcudart.so.12"
  std::vector<std::string> needs;        ///< versions of symbols it needs: "GLIBC_2.28", "GLIBCXX_3.4.30"
  std::vector<std::string> definitions;  ///< versions of symbols it offers
};

/// Is it named like a library: "x.so", "x.so.1"?
inline bool is_library(const std::string& file) {
  return file.ends_with(".so") || file.find(".so.") != std::string::npos;
}

/// Nothing when the file is not an ELF file or its headers are damaged.
std::optional<ElfFile> read_elf(const std::string& path);

/// The highest version behind `prefix` ("GLIBC_") in a list like ElfFile::needs.
std::optional<Version> highest(const std::vector<std::string>& versions, std::string_view prefix);

}  // namespace leadline::guard
