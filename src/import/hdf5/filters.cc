// SPDX-License-Identifier: Apache-2.0
#include "import/hdf5/filters.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

namespace leadline::hdf5 {
namespace {

constexpr const char* kChunk = "chunk of a dataset";
constexpr int kDeflate = 1;
constexpr int kShuffle = 2;
constexpr int kFletcher32 = 3;
constexpr uint64_t kChecksumBytes = 4;
constexpr uint64_t kMaxExpansion = 1032;  // deflate spends at least 2 bits on 258 bytes

/// Inflates into `out` and returns the part that was filled.
std::span<const std::byte> inflate_all(std::span<const std::byte> packed, std::span<std::byte> out) {
  constexpr size_t kPart = 1 << 30;  // zlib counts in 32 bits
  z_stream stream{};
  const int started = inflateInit(&stream);
  if (started == Z_MEM_ERROR) throw_out_of_memory();
  if (started != Z_OK) fail(ErrorCode::kRuntime, "zlib cannot start");
  size_t taken = 0;
  size_t made = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    const size_t in = std::min(packed.size() - taken, kPart);
    const size_t room = std::min(out.size() - made, kPart);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + taken));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + made);
    stream.avail_out = static_cast<uInt>(room);
    status = inflate(&stream, Z_NO_FLUSH);
    taken += in - stream.avail_in;
    made += room - stream.avail_out;
    if (in == stream.avail_in && room == stream.avail_out) break;  // no progress: cut off, or more than fits
  }
  inflateEnd(&stream);
  if (status == Z_MEM_ERROR) throw_out_of_memory();
  if (status != Z_STREAM_END) damaged(kChunk);
  return out.first(made);
}

/// The first bytes of all items come first, then the second ones: puts them back. What does not fill an item stays.
void unshuffle(std::span<const std::byte> in, size_t item, std::span<std::byte> out) {
  const size_t count = in.size() / item;
  if (count == 0) item = 0;
  for (size_t byte = 0; byte < item; ++byte) {
    for (size_t i = 0; i < count; ++i) out[i * item + byte] = in[byte * count + i];
  }
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(count * item), in.end(),
            out.begin() + static_cast<std::ptrdiff_t>(count * item));
}

uint32_t fletcher32(std::span<const std::byte> bytes) {
  uint64_t sum1 = 0;
  uint64_t sum2 = 0;
  const auto add = [&](uint32_t value) {
    sum1 = (sum1 + value) % 65535;
    sum2 = (sum2 + sum1) % 65535;
  };
  size_t i = 0;
  for (; i + 1 < bytes.size(); i += 2) {
    add(std::to_integer<uint32_t>(bytes[i]) << 8U | std::to_integer<uint32_t>(bytes[i + 1]));
  }
  if (i < bytes.size()) add(std::to_integer<uint32_t>(bytes[i]) << 8U);
  return static_cast<uint32_t>(sum2 << 16U | sum1);
}

/// Sums that are equal modulo 65535: folding carries, as writers do, leaves 65535 where a remainder is 0.
bool same_sum(uint32_t a, uint32_t b) {
  return (a >> 16U) % 65535 == (b >> 16U) % 65535 && (a & 0xFFFFU) % 65535 == (b & 0xFFFFU) % 65535;
}

std::span<const std::byte> checked_fletcher32(std::span<const std::byte> bytes) {
  if (bytes.size() < kChecksumBytes) damaged(kChunk);
  const std::span<const std::byte> data = bytes.first(bytes.size() - kChecksumBytes);
  uint32_t stored = 0;
  for (size_t i = 0; i < kChecksumBytes; ++i) {
    stored |= std::to_integer<uint32_t>(bytes[data.size() + i]) << (8 * i);
  }
  const uint32_t sum = fletcher32(data);
  // Old versions of the library swapped the bytes of each half.
  const uint32_t swapped = (sum & 0x00FF00FFU) << 8U | (sum >> 8U & 0x00FF00FFU);
  if (!same_sum(sum, stored) && !same_sum(swapped, stored)) {
    fail(ErrorCode::kInvalidModel, "the HDF5 file is damaged: the checksum of a chunk does not match");
  }
  return data;
}

}  // namespace

ChunkUnpacker::ChunkUnpacker(const Dataset& dataset, std::shared_ptr<Budget> budget)
    : dataset_(dataset), budget_(std::move(budget)) {
  for (const Filter& filter : dataset.filters) {
    if (filter.id == kDeflate || filter.id == kFletcher32) continue;
    if (filter.id == kShuffle) {
      if (filter.values.empty() || filter.values[0] == 0) damaged("filter pipeline");
      continue;
    }
    fail(ErrorCode::kUnsupported, "HDF5 filter {} is not known; deflate, shuffle and fletcher32 are", filter.id);
  }
}

std::span<std::byte> ChunkUnpacker::memory(int which) {
  // Room for the elements, and for a checksum before each of the filters that has been undone.
  const uint64_t bytes = dataset_.chunk_bytes + kChecksumBytes * dataset_.filters.size();
  Buffer& buffer = buffers_[static_cast<size_t>(which)];
  if (!buffer) buffer = Buffer(budget_, static_cast<int64_t>(bytes), MemoryCategory::kScratch);
  return {buffer.data(), static_cast<size_t>(bytes)};
}

std::span<const std::byte> ChunkUnpacker::unpack(std::span<const std::byte> stored, uint32_t mask) {
  uint64_t expansion = 1;
  for (const Filter& filter : dataset_.filters)
    expansion *= filter.id == kDeflate && expansion < 1U << 30U ? kMaxExpansion : 1;
  // No memory for a chunk that these bytes cannot fill.
  if (dataset_.chunk_bytes / expansion > stored.size()) damaged(kChunk);
  std::span<const std::byte> bytes = stored;
  int free = 0;  // the buffer that `bytes` is not in
  for (size_t i = dataset_.filters.size(); i-- > 0;) {
    const Filter& filter = dataset_.filters[i];
    if ((mask >> i & 1U) != 0) continue;
    if (filter.id == kFletcher32) {
      bytes = checked_fletcher32(bytes);
      continue;
    }
    const std::span<std::byte> out = memory(free);
    if (filter.id == kDeflate) {
      bytes = inflate_all(bytes, out);
    } else {
      if (bytes.size() > out.size()) damaged(kChunk);
      const std::span<std::byte> part = out.first(bytes.size());
      unshuffle(bytes, filter.values[0], part);
      bytes = part;
    }
    free = 1 - free;
  }
  if (bytes.size() < dataset_.chunk_bytes) damaged(kChunk);
  return bytes.first(static_cast<size_t>(dataset_.chunk_bytes));
}

}  // namespace leadline::hdf5
