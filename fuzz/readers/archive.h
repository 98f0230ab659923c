// SPDX-License-Identifier: Apache-2.0
// Zip archives for seeds, and right checksums for mutants of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace leadline::fuzz {

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

using Entries = std::vector<std::pair<std::string, std::string>>;

/// An archive of entries, stored or deflated.
std::string zip(const Entries& entries, bool deflate = false);

/// Sets the checksum of each entry that the directory leads to.
void repair_zip(std::string& bytes);

}  // namespace leadline::fuzz
