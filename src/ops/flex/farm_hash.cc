// SPDX-License-Identifier: Apache-2.0
#include "ops/flex/farm_hash.h"

#include <bit>
#include <cstring>
#include <utility>

namespace leadline::ops {
namespace {

// Primes between 2^63 and 2^64 of the algorithm.
constexpr uint64_t k0 = 0xC3A5C85C97CB3127ULL;
constexpr uint64_t k1 = 0xB492B66FBE98F273ULL;
constexpr uint64_t k2 = 0x9AE16A3B2F90404FULL;

uint64_t load64(const char* at) noexcept {
  uint64_t value = 0;
  std::memcpy(&value, at, sizeof(value));
  return value;
}
uint64_t load32(const char* at) noexcept {
  uint32_t value = 0;
  std::memcpy(&value, at, sizeof(value));
  return value;
}
uint64_t fold(uint64_t value) noexcept { return value ^ (value >> 47); }

uint64_t mix(uint64_t u, uint64_t v, uint64_t factor) noexcept {
  const uint64_t a = fold((u ^ v) * factor);
  return fold((v ^ a) * factor) * factor;
}

uint64_t hash_to_16(const char* s, size_t size) noexcept {
  if (size >= 8) {
    const uint64_t factor = k2 + size * 2;
    const uint64_t a = load64(s) + k2;
    const uint64_t b = load64(s + size - 8);
    const uint64_t c = std::rotr(b, 37) * factor + a;
    const uint64_t d = (std::rotr(a, 25) + b) * factor;
    return mix(c, d, factor);
  }
  if (size >= 4) {
    const uint64_t factor = k2 + size * 2;
    return mix(size + (load32(s) << 3), load32(s + size - 4), factor);
  }
  if (size > 0) {
    const auto a = static_cast<uint8_t>(s[0]);
    const auto b = static_cast<uint8_t>(s[size >> 1]);
    const auto c = static_cast<uint8_t>(s[size - 1]);
    const uint32_t y = a + (uint32_t{b} << 8);
    const uint32_t z = static_cast<uint32_t>(size) + (uint32_t{c} << 2);
    return fold(y * k2 ^ z * k0) * k2;
  }
  return k2;
}

uint64_t hash_to_32(const char* s, size_t size) noexcept {
  const uint64_t factor = k2 + size * 2;
  const uint64_t a = load64(s) * k1;
  const uint64_t b = load64(s + 8);
  const uint64_t c = load64(s + size - 8) * factor;
  const uint64_t d = load64(s + size - 16) * k2;
  return mix(std::rotr(a + b, 43) + std::rotr(c, 30) + d, a + std::rotr(b + k2, 18) + c, factor);
}

uint64_t hash_to_64(const char* s, size_t size) noexcept {
  const uint64_t factor = k2 + size * 2;
  const uint64_t a = load64(s) * k2;
  const uint64_t b = load64(s + 8);
  const uint64_t c = load64(s + size - 8) * factor;
  const uint64_t d = load64(s + size - 16) * k2;
  const uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
  const uint64_t z = mix(y, a + std::rotr(b + k2, 18) + c, factor);
  const uint64_t e = load64(s + 16) * factor;
  const uint64_t f = load64(s + 24);
  const uint64_t g = (y + load64(s + size - 32)) * factor;
  const uint64_t h = (z + load64(s + size - 24)) * factor;
  return mix(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g, factor);
}

using Pair = std::pair<uint64_t, uint64_t>;

Pair weak_hash(const char* s, uint64_t a, uint64_t b) noexcept {
  const uint64_t w = load64(s);
  const uint64_t x = load64(s + 8);
  const uint64_t y = load64(s + 16);
  const uint64_t z = load64(s + 24);
  a += w;
  b = std::rotr(b + a + z, 21);
  const uint64_t c = a;
  a += x;
  a += y;
  b += std::rotr(a, 44);
  return {a + z, b + c};
}

}  // namespace

uint64_t farm_hash_64(std::string_view text) noexcept {
  const char* s = text.data();
  const size_t size = text.size();
  if (size <= 16) return hash_to_16(s, size);
  if (size <= 32) return hash_to_32(s, size);
  if (size <= 64) return hash_to_64(s, size);
  constexpr uint64_t kSeed = 81;
  uint64_t x = kSeed;
  uint64_t y = kSeed * k1 + 113;
  uint64_t z = fold(y * k2 + 113) * k2;
  Pair v = {0, 0};
  Pair w = {0, 0};
  x = x * k2 + load64(s);
  const char* end = s + (size - 1) / 64 * 64;
  const char* last = end + ((size - 1) & 63) - 63;
  const auto round = [&](uint64_t factor, uint64_t scale_w) {
    x = std::rotr(x + y + v.first + load64(s + 8), 37) * factor;
    y = std::rotr(y + v.second + load64(s + 48), 42) * factor;
    x ^= w.second * scale_w;
    y += v.first * scale_w + load64(s + 40);
    z = std::rotr(z + w.first, 33) * factor;
    v = weak_hash(s, v.second * factor, x + w.first);
    w = weak_hash(s + 32, z + w.second, y + load64(s + 16));
    std::swap(z, x);
  };
  do {
    round(k1, 1);
    s += 64;
  } while (s != end);
  const uint64_t factor = k1 + ((z & 0xFF) << 1);
  s = last;
  w.first += (size - 1) & 63;
  v.first += w.first;
  w.first += v.first;
  round(factor, 9);
  return mix(mix(v.first, w.first, factor) + fold(y) * k0 + z, mix(v.second, w.second, factor) + x, factor);
}

}  // namespace leadline::ops
