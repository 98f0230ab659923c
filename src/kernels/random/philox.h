// SPDX-License-Identifier: Apache-2.0
// Counter-based generators of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011): a block of
// numbers is a function of key and counter alone. The constants are the paper's.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace leadline::kernels {

/// Philox4x32 with ten rounds.
inline std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 2> key, std::array<uint32_t, 4> x) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53U} * x[0];
    const uint64_t b = uint64_t{0xCD9E8D57U} * x[2];
    x = {static_cast<uint32_t>(b >> 32) ^ x[1] ^ key[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ x[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return x;
}

/// Threefry2x32 with twenty rounds: the key is added before the first and after every fourth.
inline std::array<uint32_t, 2> threefry2x32(std::array<uint32_t, 2> key, std::array<uint32_t, 2> x) {
  constexpr std::array<int, 8> kRotations = {13, 15, 26, 6, 17, 29, 16, 24};
  const std::array<uint32_t, 3> keys = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDAU};
  x[0] += keys[0];
  x[1] += keys[1];
  for (uint32_t round = 0; round < 20; ++round) {
    x[0] += x[1];
    x[1] = std::rotl(x[1], kRotations[round % 8]) ^ x[0];
    if (round % 4 != 3) continue;
    const uint32_t turn = round / 4 + 1;
    x[0] += keys[turn % 3];
    x[1] += keys[(turn + 1) % 3] + turn;
  }
  return x;
}

/// A stream of Philox blocks: one seed is the key, the other the upper half of a 128-bit counter.
class Philox {
 public:
  Philox(uint64_t seed, uint64_t seed2)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}, high_(seed2) {}

  std::array<uint32_t, 4> next() {
    const std::array<uint32_t, 4> counter = {static_cast<uint32_t>(low_), static_cast<uint32_t>(low_ >> 32),
                                             static_cast<uint32_t>(high_), static_cast<uint32_t>(high_ >> 32)};
    skip(1);
    return philox4x32(key_, counter);
  }

  void skip(uint64_t blocks) {
    low_ += blocks;
    if (low_ < blocks) ++high_;
  }

 private:
  std::array<uint32_t, 2> key_;
  uint64_t low_ = 0;
  uint64_t high_;
};

}  // namespace leadline::kernels
