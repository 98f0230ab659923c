// SPDX-License-Identifier: Apache-2.0
// Only what separates one extension from another is decoded: prefixes, opcode map, opcode, vector length. Opcode ranges
// are those of the processor manuals' opcode maps.
#include "guard/instruction.h"

#include <cstddef>
#include <cstdint>

namespace leadline::guard {
namespace {

bool between(int value, int first, int last) { return value >= first && value <= last; }

/// Integer operations of map 0F with prefix 66; with 256 bits they are AVX2.
bool is_integer_0f(int opcode) {
  return between(opcode, 0x60, 0x6D) || between(opcode, 0x71, 0x76) || between(opcode, 0xD1, 0xD5) ||
         between(opcode, 0xD8, 0xE5) || between(opcode, 0xE8, 0xEF) || between(opcode, 0xF1, 0xF6) ||
         between(opcode, 0xF8, 0xFE);
}

InstructionClass classify_vex(int map, int prefix, bool wide, int opcode) {
  constexpr int kPrefix66 = 1;
  constexpr int kPrefixF2 = 3;
  if (map == 2) {
    if (between(opcode, 0x96, 0x9F) || between(opcode, 0xA6, 0xAF) || between(opcode, 0xB6, 0xBF))
      return {"FMA", "fma"};
    if (between(opcode, 0xF2, 0xF3)) return {"BMI1", "bmi1"};
    if (opcode == 0xF7) return prefix == 0 ? InstructionClass{"BMI1", "bmi1"} : InstructionClass{"BMI2", "bmi2"};
    if (between(opcode, 0xF5, 0xF6)) return {"BMI2", "bmi2"};
    if (opcode == 0x13) return {"F16C", "f16c"};
    if (opcode == 0x49 || opcode == 0x4B || opcode == 0x5C || opcode == 0x5E) return {"AMX", "amx_tile"};
    if (between(opcode, 0x50, 0x53)) return {"AVX-VNNI", "avx_vnni"};
    if (between(opcode, 0xDC, 0xDF)) return wide ? InstructionClass{"VAES", "vaes"} : InstructionClass{"AES", "aes"};
    if (between(opcode, 0x45, 0x47) || between(opcode, 0x58, 0x5A) || between(opcode, 0x78, 0x79) || opcode == 0x8C ||
        opcode == 0x8E || between(opcode, 0x90, 0x93) || opcode == 0x36 || opcode == 0x16) {
      return {"AVX2", "avx2"};
    }
    const bool integer =
        opcode <= 0x0B || between(opcode, 0x1C, 0x1E) || between(opcode, 0x20, 0x2B) || between(opcode, 0x30, 0x41);
    if (integer && wide) return {"AVX2", "avx2"};
  }
  if (map == 3) {
    if (opcode == 0xF0 && prefix == kPrefixF2) return {"BMI2", "bmi2"};
    if (opcode == 0x1D) return {"F16C", "f16c"};
    if (between(opcode, 0x00, 0x02) || opcode == 0x38 || opcode == 0x39 || opcode == 0x46) return {"AVX2", "avx2"};
    if (wide && (opcode == 0x0E || opcode == 0x0F || opcode == 0x42 || opcode == 0x4C)) return {"AVX2", "avx2"};
  }
  if (map == 1 && wide && prefix == kPrefix66 && is_integer_0f(opcode)) return {"AVX2", "avx2"};
  return {"AVX", "avx"};
}

InstructionClass classify_legacy(int opcode, int third, bool has66, bool hasF2, bool hasF3) {
  if (opcode == 0x0B || opcode == 0xB9 || opcode == 0xFF) return {"trap", ""};
  if (opcode == 0xB8 && hasF3) return {"POPCNT", "popcnt"};
  if (opcode == 0xBD && hasF3) return {"LZCNT", "abm"};
  if (opcode == 0xBC && hasF3) return {"BMI1", "bmi1"};
  if (opcode == 0x38) {
    if (hasF2 && between(third, 0xF0, 0xF1)) return {"SSE4.2", "sse4_2"};
    if (between(third, 0xF0, 0xF1)) return {"MOVBE", "movbe"};
    if (between(third, 0xDB, 0xDF)) return {"AES", "aes"};
    if (between(third, 0xC8, 0xCD)) return {"SHA", "sha_ni"};
    if (third == 0x37) return {"SSE4.2", "sse4_2"};
    if (third <= 0x0B || between(third, 0x1C, 0x1E)) return {"SSSE3", "ssse3"};
    if (has66) return {"SSE4.1", "sse4_1"};
  }
  if (opcode == 0x3A) {
    if (third == 0x0F) return {"SSSE3", "ssse3"};
    if (between(third, 0x60, 0x63)) return {"SSE4.2", "sse4_2"};
    if (third == 0x44) return {"PCLMULQDQ", "pclmulqdq"};
    if (has66) return {"SSE4.1", "sse4_1"};
  }
  return {};
}

}  // namespace

InstructionClass classify_x86(std::span<const unsigned char> bytes) {
  size_t at = 0;
  bool has66 = false;
  bool hasF2 = false;
  bool hasF3 = false;
  const auto byte = [&](size_t i) { return i < bytes.size() ? static_cast<int>(bytes[i]) : -1; };
  for (; at < bytes.size(); ++at) {
    const int value = byte(at);
    has66 |= value == 0x66;
    hasF2 |= value == 0xF2;
    hasF3 |= value == 0xF3;
    const bool prefix = value == 0x66 || value == 0x67 || value == 0xF2 || value == 0xF3 || value == 0x2E ||
                        value == 0x36 || value == 0x3E || value == 0x26 || value == 0x64 || value == 0x65;
    if (!prefix) break;
  }
  if (byte(at) >= 0x40 && byte(at) <= 0x4F) ++at;  // REX
  switch (byte(at)) {
    case 0x62: {
      if (byte(at + 1) < 0) return {};
      const int map = byte(at + 1) & 7;
      if (map >= 5) return {"AVX-512 FP16", "avx512_fp16"};
      return {"AVX-512", "avx512f"};
    }
    case 0xC5:
      if (byte(at + 2) < 0) return {};
      return classify_vex(1, byte(at + 1) & 3, (byte(at + 1) & 4) != 0, byte(at + 2));
    case 0xC4:
      if (byte(at + 3) < 0) return {};
      return classify_vex(byte(at + 1) & 31, byte(at + 2) & 3, (byte(at + 2) & 4) != 0, byte(at + 3));
    case 0x0F:
      if (byte(at + 1) < 0) return {};
      return classify_legacy(byte(at + 1), byte(at + 2), has66, hasF2, hasF3);
    case 0xF1:
    case 0xCC:
      return {"trap", ""};
    default:
      return {};
  }
}

InstructionClass classify_aarch64(std::span<const unsigned char> bytes) {
  if (bytes.size() < 4) return {};
  const uint32_t word = static_cast<uint32_t>(bytes[0]) | static_cast<uint32_t>(bytes[1]) << 8 |
                        static_cast<uint32_t>(bytes[2]) << 16 | static_cast<uint32_t>(bytes[3]) << 24;
  if ((word >> 16) == 0) return {"trap", ""};                                 // UDF
  if ((word & 0xFFE0001F) == 0xD4200000) return {"trap", ""};                 // BRK
  if (((word >> 25) & 0xF) == 2) return {"SVE", "sve"};                       // op0 of the top-level encoding
  if ((word & 0xBFA0FC00) == 0x0E809400) return {"dot products", "asimddp"};  // SDOT, UDOT by vector
  if ((word & 0xFFE0FC00) == 0x4E80A400) return {"int8 matrix products", "i8mm"};
  if ((word & 0x3F200000) == 0x08200000 || (word & 0x3B200C00) == 0x38200000) return {"LSE atomics", "atomics"};
  return {};
}

InstructionClass classify_instruction(std::span<const unsigned char> bytes) {
#if defined(__aarch64__)
  return classify_aarch64(bytes);
#else
  return classify_x86(bytes);
#endif
}

}  // namespace leadline::guard
