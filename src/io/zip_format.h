// SPDX-License-Identifier: Apache-2.0
// Signatures of the records of a zip file, as the reader and the writer see them.
#pragma once

#include <bit>
#include <cstdint>

namespace leadline::zip {

static_assert(std::endian::native == std::endian::little, "zip and .npy files are read and written as they lie");

inline constexpr uint32_t kLocalHeader = 0x04034b50;
inline constexpr uint32_t kDirectoryEntry = 0x02014b50;
inline constexpr uint32_t kDirectoryEnd = 0x06054b50;

}  // namespace leadline::zip
