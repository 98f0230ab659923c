// SPDX-License-Identifier: Apache-2.0
// With the processor's own instruction where it has one (about 8 bytes in 3 cycles), else by a table per byte.
#include "import/saved_model/crc32c.h"

#include <array>
#include <cstring>

#include "core/cpu_features.h"

namespace leadline::saved_model {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78U;  // reversed

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1U) != 0 ? kPolynomial : 0U);
    table[i] = value;
  }
  return table;
}
constexpr auto kTable = make_table();

uint32_t extend_by_table(uint32_t state, std::span<const std::byte> bytes) noexcept {
  for (const std::byte byte : bytes) state = (state >> 8) ^ kTable[(state ^ static_cast<uint32_t>(byte)) & 0xFFU];
  return state;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2,crc32"))) uint32_t extend_by_instruction(uint32_t state,
                                                                       std::span<const std::byte> bytes) noexcept {
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  uint64_t wide = state;
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  return extend_by_table(static_cast<uint32_t>(wide), {at, left});
}
#endif

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t crc) noexcept {
#if defined(__x86_64__)
  static const bool has_instruction = CpuFeatures().sse42();
  if (has_instruction) return ~extend_by_instruction(~crc, bytes);
#endif
  return ~extend_by_table(~crc, bytes);
}

}  // namespace leadline::saved_model
