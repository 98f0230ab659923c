// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "import/hdf5/format.h"

namespace leadline::hdf5 {
namespace {

struct State {
  uint32_t a, b, c;

  void mix() {
    a -= c;
    a ^= std::rotl(c, 4);
    c += b;
    b -= a;
    b ^= std::rotl(a, 6);
    a += c;
    c -= b;
    c ^= std::rotl(b, 8);
    b += a;
    a -= c;
    a ^= std::rotl(c, 16);
    c += b;
    b -= a;
    b ^= std::rotl(a, 19);
    a += c;
    c -= b;
    c ^= std::rotl(b, 4);
    b += a;
  }
  void finish() {
    c ^= b;
    c -= std::rotl(b, 14);
    a ^= c;
    a -= std::rotl(c, 11);
    b ^= a;
    b -= std::rotl(a, 25);
    c ^= b;
    c -= std::rotl(b, 16);
    a ^= c;
    a -= std::rotl(c, 4);
    b ^= a;
    b -= std::rotl(a, 14);
    c ^= b;
    c -= std::rotl(b, 24);
  }
};

uint32_t word(std::span<const std::byte> bytes, size_t from) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4 && from + i < bytes.size(); ++i) {
    value |= std::to_integer<uint32_t>(bytes[from + i]) << (8 * i);
  }
  return value;
}

}  // namespace

uint32_t lookup3(std::span<const std::byte> bytes) {
  const uint32_t start = 0xdeadbeef + static_cast<uint32_t>(bytes.size());
  State state{start, start, start};
  if (bytes.empty()) return state.c;
  // The last block, of 1 to 12 bytes, is mixed in another way.
  while (bytes.size() > 12) {
    state.a += word(bytes, 0);
    state.b += word(bytes, 4);
    state.c += word(bytes, 8);
    state.mix();
    bytes = bytes.subspan(12);
  }
  state.a += word(bytes, 0);
  state.b += word(bytes, 4);
  state.c += word(bytes, 8);
  state.finish();
  return state.c;
}

void verify_checksum(const FileBytes& file, std::span<const std::byte> bytes, size_t covered, const char* what) {
  if (covered > bytes.size() || bytes.size() - covered < 4) damaged(what);
  if (!file.verify_checksums) return;
  if (lookup3(bytes.first(covered)) != word(bytes, covered)) {
    fail(ErrorCode::kInvalidModel, "the HDF5 file is damaged: the checksum of its {} does not match", what);
  }
}

}  // namespace leadline::hdf5
