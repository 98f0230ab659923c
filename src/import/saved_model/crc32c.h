// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli), as the files of a checkpoint use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace leadline::saved_model {

/// The checksum of what `crc` is the checksum of, followed by `bytes`. Start with 0.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc = 0) noexcept;

/// How a checksum is stored beside the data it covers: rotated and moved, so that the checksum of data that contains
/// checksums stays useful.
constexpr uint32_t masked_crc(uint32_t crc) noexcept { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U; }

}  // namespace leadline::saved_model
