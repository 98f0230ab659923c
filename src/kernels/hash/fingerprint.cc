// SPDX-License-Identifier: Apache-2.0
// FarmHash Fingerprint64 from its published definition: one formula for each of four ranges of length, and a loop over
// blocks of 64 bytes above them. All arithmetic wraps; words are little-endian.
#include "kernels/hash/fingerprint.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <utility>

namespace leadline::kernels {
namespace {

// Three primes between 2^63 and 2^64.
constexpr uint64_t kA = 0xC3A5C85C97CB3127ULL;
constexpr uint64_t kB = 0xB492B66FBE98F273ULL;
constexpr uint64_t kC = 0x9AE16A3B2F90404FULL;

/// The bytes to be hashed, read as words at any place.
class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : data_(bytes.data()), size_(bytes.size()) {}

  size_t size() const { return size_; }
  uint64_t byte(size_t at) const { return std::to_integer<uint64_t>(data_[at]); }
  uint64_t word32(size_t at) const { return load<uint32_t>(at); }
  uint64_t word64(size_t at) const { return load<uint64_t>(at); }
  /// The word that ends `back - 8` bytes before the end.
  uint64_t from_end(size_t back) const { return word64(size_ - back); }

 private:
  template <typename T>
  T load(size_t at) const {
    T value;
    std::memcpy(&value, data_ + at, sizeof(value));
    return value;
  }
  const std::byte* data_;
  size_t size_;
};

uint64_t rotate(uint64_t value, int right) { return std::rotr(value, right); }
uint64_t fold(uint64_t value) { return value ^ (value >> 47); }

uint64_t combine(uint64_t u, uint64_t v, uint64_t factor) {
  const uint64_t a = fold((u ^ v) * factor);
  return fold((v ^ a) * factor) * factor;
}

uint64_t factor_for(const Bytes& s) { return kC + 2 * s.size(); }

uint64_t hash_up_to_16(const Bytes& s) {
  const size_t size = s.size();
  if (size >= 8) {
    const uint64_t first = s.word64(0) + kC;
    const uint64_t last = s.from_end(8);
    const uint64_t factor = factor_for(s);
    return combine(rotate(last, 37) * factor + first, (rotate(first, 25) + last) * factor, factor);
  }
  if (size >= 4) return combine(size + (s.word32(0) << 3), s.word32(size - 4), factor_for(s));
  if (size == 0) return kC;
  const uint64_t y = s.byte(0) + (s.byte(size / 2) << 8);
  const uint64_t z = size + (s.byte(size - 1) << 2);
  return fold((y * kC) ^ (z * kA)) * kC;
}

uint64_t hash_17_to_32(const Bytes& s) {
  const uint64_t factor = factor_for(s);
  const uint64_t a = s.word64(0) * kB;
  const uint64_t b = s.word64(8);
  const uint64_t c = s.from_end(8) * factor;
  const uint64_t d = s.from_end(16) * kC;
  return combine(rotate(a + b, 43) + rotate(c, 30) + d, a + rotate(b + kC, 18) + c, factor);
}

uint64_t hash_33_to_64(const Bytes& s) {
  const uint64_t factor = factor_for(s);
  const uint64_t a = s.word64(0) * kC;
  const uint64_t b = s.word64(8);
  const uint64_t c = s.from_end(8) * factor;
  const uint64_t d = s.from_end(16) * kC;
  const uint64_t y = rotate(a + b, 43) + rotate(c, 30) + d;
  const uint64_t z = combine(y, a + rotate(b + kC, 18) + c, factor);
  const uint64_t e = s.word64(16) * factor;
  const uint64_t f = s.word64(24);
  const uint64_t g = (y + s.from_end(32)) * factor;
  const uint64_t h = (z + s.from_end(24)) * factor;
  return combine(rotate(e + f, 43) + rotate(g, 30) + h, e + rotate(f + a, 18) + g, factor);
}

struct Pair {
  uint64_t first = 0;
  uint64_t second = 0;
};

/// Mixes 32 bytes into two seeds.
Pair absorb(const Bytes& s, size_t at, uint64_t a, uint64_t b) {
  const uint64_t z = s.word64(at + 24);
  a += s.word64(at);
  b = rotate(b + a + z, 21);
  const uint64_t before = a;
  a += s.word64(at + 8) + s.word64(at + 16);
  return {a + z, b + rotate(a, 44) + before};
}

/// The 56 bytes of state that long inputs run through.
struct State {
  explicit State(uint64_t (&words)[7])
      : x(words[0]), y(words[1]), z(words[2]), v{words[3], words[4]}, w{words[5], words[6]} {}
  void save(uint64_t (&words)[7]) const {
    const uint64_t values[] = {x, y, z, v.first, v.second, w.first, w.second};
    std::copy(std::begin(values), std::end(values), words);
  }

  uint64_t x, y, z;
  Pair v, w;

  /// One block of 64 bytes. The last one uses another factor and weight than the others.
  void block(const Bytes& s, size_t at, uint64_t factor, uint64_t weight) {
    x = rotate(x + y + v.first + s.word64(at + 8), 37) * factor;
    y = rotate(y + v.second + s.word64(at + 48), 42) * factor;
    x ^= w.second * weight;
    y += v.first * weight + s.word64(at + 40);
    z = rotate(z + w.first, 33) * factor;
    v = absorb(s, at, v.second * factor, x + w.first);
    w = absorb(s, at + 32, z + w.second, y + s.word64(at + 16));
    std::swap(z, x);
  }
};

}  // namespace

LongFingerprint::LongFingerprint(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {
  constexpr uint64_t kSeed = 81;
  State t(state_);
  t.x = kSeed * kC + Bytes(bytes).word64(0);
  t.y = kSeed * kB + 113;
  t.z = fold(t.y * kC + 113) * kC;
  t.save(state_);
}

void LongFingerprint::add(IndexRange blocks) noexcept {
  const Bytes s(bytes_);
  State t(state_);
  for (int64_t i = blocks.begin; i < blocks.end; ++i) t.block(s, static_cast<size_t>(i) * 64, kB, 1);
  t.save(state_);
}

uint64_t LongFingerprint::value() noexcept {
  const Bytes s(bytes_);
  State t(state_);
  const uint64_t factor = kB + ((t.z & 0xFF) << 1);
  t.w.first += (s.size() - 1) & 63;
  t.v.first += t.w.first;
  t.w.first += t.v.first;
  t.block(s, s.size() - 64, factor, 9);
  return combine(combine(t.v.first, t.w.first, factor) + fold(t.y) * kA + t.z,
                 combine(t.v.second, t.w.second, factor) + t.x, factor);
}

uint64_t fingerprint64(std::span<const std::byte> bytes) noexcept {
  const Bytes s(bytes);
  if (s.size() <= 16) return hash_up_to_16(s);
  if (s.size() <= 32) return hash_17_to_32(s);
  if (s.size() <= 64) return hash_33_to_64(s);
  LongFingerprint hash(bytes);
  hash.add({0, hash.blocks()});
  return hash.value();
}

}  // namespace leadline::kernels
