// SPDX-License-Identifier: Apache-2.0
#include "guard/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "guard/untrusted_file.h"

namespace leadline::guard {
namespace {

constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::string base64_for_urls(const std::array<uint8_t, 32>& bytes) {
  static constexpr const char* kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  uint32_t bits = 0;
  int count = 0;
  for (const uint8_t byte : bytes) {
    bits = bits << 8 | byte;
    for (count += 8; count >= 6; count -= 6) text += kDigits[bits >> (count - 6) & 63];
  }
  if (count > 0) text += kDigits[bits << (6 - count) & 63];
  return text;
}

}  // namespace

void Sha256::take_block(const uint8_t* block) {
  std::array<uint32_t, 64> w{};
  for (size_t i = 0; i < 16; ++i) {
    const uint8_t* const at = block + 4 * i;
    w[i] = uint32_t{at[0]} << 24 | uint32_t{at[1]} << 16 | uint32_t{at[2]} << 8 | at[3];
  }
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const uint32_t b = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  std::array<uint32_t, 8> s = state_;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t e = std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25);
    const uint32_t first = s[7] + e + ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRound[i] + w[i];
    const uint32_t a = std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22);
    const uint32_t second = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    s = {first + second, s[0], s[1], s[2], s[3] + first, s[4], s[5], s[6]};
  }
  for (size_t i = 0; i < state_.size(); ++i) state_[i] += s[i];
}

void Sha256::add(const void* data, size_t bytes) {
  const auto* from = static_cast<const uint8_t*>(data);
  total_ += bytes;
  while (bytes > 0) {
    if (pending_size_ == 0 && bytes >= pending_.size()) {
      take_block(from);
      from += pending_.size();
      bytes -= pending_.size();
      continue;
    }
    const size_t size = std::min(bytes, pending_.size() - pending_size_);
    std::memcpy(pending_.data() + pending_size_, from, size);
    pending_size_ += size;
    from += size;
    bytes -= size;
    if (pending_size_ < pending_.size()) return;
    take_block(pending_.data());
    pending_size_ = 0;
  }
}

std::array<uint8_t, 32> Sha256::finish() {
  const uint64_t bits = total_ * 8;
  const uint8_t one = 0x80;
  const uint8_t zero = 0;
  add(&one, 1);
  while (pending_size_ != pending_.size() - sizeof bits) add(&zero, 1);
  std::array<uint8_t, 8> size{};
  for (size_t i = 0; i < size.size(); ++i) size[i] = static_cast<uint8_t>(bits >> (56 - 8 * i));
  add(size.data(), size.size());
  std::array<uint8_t, 32> digest{};
  for (size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

std::optional<std::string> record_hash(const std::string& path) {
  const FileReader file(path);
  if (!file.good()) return std::nullopt;
  Sha256 hash;
  std::vector<char> piece(size_t{1} << 20);
  for (uint64_t at = 0; at < file.size();) {
    const auto size = static_cast<size_t>(std::min<uint64_t>(piece.size(), file.size() - at));
    if (!file.read(at, piece.data(), size)) return std::nullopt;
    hash.add(piece.data(), size);
    at += size;
  }
  return base64_for_urls(hash.finish());
}

}  // namespace leadline::guard
