// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), by which RECORD files know what was installed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace leadline::guard {

class Sha256 {
 public:
  void add(const void* data, size_t bytes);
  /// The digest; nothing may be added after it.
  std::array<uint8_t, 32> finish();

 private:
  void take_block(const uint8_t* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_ = {};
  size_t pending_size_ = 0;
  uint64_t total_ = 0;
};

/// Of a regular file, in the form of RECORD: base64 for URLs without padding. Nothing when it cannot be read.
std::optional<std::string> record_hash(const std::string& path);

}  // namespace leadline::guard
