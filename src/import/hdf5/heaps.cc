// SPDX-License-Identifier: Apache-2.0
#include "import/hdf5/heaps.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "import/hdf5/btree_v2.h"

namespace leadline::hdf5 {
namespace {

constexpr const char* kLocal = "local heap";
constexpr const char* kGlobal = "global heap";
constexpr const char* kFractal = "fractal heap";

}  // namespace

LocalHeap::LocalHeap(const FileBytes& file, uint64_t address) {
  Cursor cursor(file, file.from(address, kLocal), kLocal);
  cursor.expect("HEAP");
  cursor.expect_version(0, 0);
  cursor.skip(3);
  const uint64_t size = cursor.length();
  cursor.length();  // free list
  data_ = file.at(cursor.address(), size, kLocal);
}

std::string_view LocalHeap::text(uint64_t offset) const {
  if (offset >= data_.size()) damaged(kLocal);
  const auto* start = reinterpret_cast<const char*>(data_.data() + offset);
  const void* end = std::memchr(start, 0, data_.size() - static_cast<size_t>(offset));
  if (end == nullptr) damaged(kLocal);
  return {start, static_cast<size_t>(static_cast<const char*>(end) - start)};
}

std::span<const std::byte> GlobalHeap::object(uint64_t collection, uint32_t index) {
  const auto known = collections_.find(collection);
  const Collection& objects = known != collections_.end() ? known->second : read(collection);
  const auto found = objects.find(index);
  if (found == objects.end()) damaged(kGlobal);
  return found->second;
}

const GlobalHeap::Collection& GlobalHeap::read(uint64_t address) {
  const size_t head = 8 + static_cast<size_t>(file_.length_size);
  Cursor start(file_, file_.at(address, head, kGlobal), kGlobal);
  start.expect("GCOL");
  start.expect_version(1, 1);
  start.skip(3);
  const uint64_t size = start.length();
  if (size < head) damaged(kGlobal);
  allowance_.take(size, kGlobal);
  Cursor cursor(file_, file_.at(address, size, kGlobal), kGlobal);
  cursor.skip(head);
  Collection objects;
  while (cursor.left() >= head) {
    const uint32_t index = cursor.u16();
    cursor.skip(6);
    const uint64_t bytes = cursor.length();
    if (index == 0) break;  // free space, always the last
    if (!objects.emplace(index, cursor.take(bytes)).second) damaged(kGlobal);
    cursor.skip(std::min<uint64_t>((8 - bytes % 8) % 8, cursor.left()));
  }
  return collections_.emplace(address, std::move(objects)).first->second;
}

FractalHeap::FractalHeap(const FileBytes& file, uint64_t address) : file_(file), address_(address) {
  const std::span<const std::byte> start = file.from(address, kFractal);
  Cursor cursor(file, start, kFractal);
  cursor.expect("FRHP");
  cursor.expect_version(0, 0);
  id_size_ = cursor.u16();
  if (cursor.u16() != 0) fail(ErrorCode::kUnsupported, "compressed links and attributes of HDF5 are not read");
  cursor.skip(1);
  const uint32_t max_managed = cursor.u32();
  cursor.length();  // next id of a huge object
  huge_tree_ = cursor.address();
  cursor.length();
  cursor.address();  // free space
  for (int i = 0; i < 8; ++i) cursor.length();
  width_ = cursor.u16();
  start_size_ = cursor.length();
  max_direct_size_ = cursor.length();
  const int heap_bits = cursor.u16();
  cursor.skip(2);
  root_ = cursor.address();
  root_rows_ = cursor.u16();
  verify_checksum(file, start, cursor.position(), kFractal);
  if (!std::has_single_bit(width_) || !std::has_single_bit(start_size_) || !std::has_single_bit(max_direct_size_) ||
      max_direct_size_ < start_size_ || max_direct_size_ > uint64_t{1} << 32U || heap_bits == 0 || heap_bits > 64) {
    damaged(kFractal);
  }
  offset_size_ = (heap_bits + 7) / 8;
  length_size_ = std::min(encoded_size(max_direct_size_), encoded_size(max_managed));
  direct_rows_ = std::countr_zero(max_direct_size_) - std::countr_zero(start_size_) + 2;
}

std::span<const std::byte> FractalHeap::object(std::span<const std::byte> id) const {
  Cursor cursor(file_, id, kFractal);
  const uint8_t flags = cursor.u8();
  if (flags >> 6U != 0) damaged(kFractal);
  switch (flags >> 4U & 3U) {
    case 0: {
      const uint64_t offset = cursor.number(offset_size_);
      return managed(offset, cursor.number(length_size_));
    }
    case 1:
      return huge(cursor);
    case 2: {
      // The object itself is in the id; long ids have 12 bits for the length.
      uint64_t size = flags & 0xFU;
      if (id_size_ > 17) size = size << 8U | cursor.u8();
      return cursor.take(size + 1);
    }
    default:
      damaged(kFractal);
  }
}

std::span<const std::byte> FractalHeap::managed(uint64_t offset, uint64_t size) const {
  uint64_t block = root_;
  uint64_t block_size = start_size_;
  int rows = root_rows_;
  while (rows > 0) {
    const uint64_t first_row = width_ * start_size_;
    const int row = offset < first_row ? 0 : static_cast<int>(std::bit_width(offset / first_row));
    if (row >= rows || row > 63 - std::countr_zero(first_row)) damaged(kFractal);
    block_size = row_size(row);
    const uint64_t in_row = row == 0 ? offset : offset - (first_row << (row - 1));
    const uint64_t entry = static_cast<uint64_t>(row) * width_ + in_row / block_size;
    Cursor cursor(file_, file_.from(block, kFractal), kFractal);
    cursor.expect("FHIB");
    cursor.expect_version(0, 0);
    if (cursor.address() != address_) damaged(kFractal);
    cursor.skip(static_cast<uint64_t>(offset_size_));
    cursor.skip(entry * static_cast<uint64_t>(file_.offset_size));
    block = cursor.address();
    offset = in_row % block_size;
    // A child that is an indirect block covers less than its parent, so this ends.
    if (row < direct_rows_) {
      rows = 0;
    } else {
      rows = std::countr_zero(block_size) - std::countr_zero(first_row) + 1;
      if (rows <= 0 || rows > row) damaged(kFractal);
    }
  }
  const std::span<const std::byte> bytes = file_.at(block, block_size, kFractal);
  Cursor cursor(file_, bytes, kFractal);
  cursor.expect("FHDB");
  cursor.expect_version(0, 0);
  if (cursor.address() != address_) damaged(kFractal);
  if (offset < cursor.position() || offset > block_size || size > block_size - offset) damaged(kFractal);
  return bytes.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
}

std::span<const std::byte> FractalHeap::huge(Cursor& id) const {
  // An id that has room for it says where the object is; others are keys of a tree.
  if (id_size_ >= 1 + static_cast<uint64_t>(file_.offset_size + file_.length_size)) {
    const uint64_t address = id.address();
    return file_.at(address, id.length(), kFractal);
  }
  constexpr int kHugeIndirect = 1;
  const uint64_t key =
      id.number(static_cast<int>(std::min<uint64_t>(id.left(), static_cast<uint64_t>(file_.length_size))));
  std::span<const std::byte> found;
  bool known = false;
  for_each_record(file_, huge_tree_, kHugeIndirect, [&](std::span<const std::byte> record) {
    Cursor cursor(file_, record, kFractal);
    const uint64_t address = cursor.address();
    const uint64_t size = cursor.length();
    if (cursor.length() != key) return;
    found = file_.at(address, size, kFractal);
    known = true;
  });
  if (!known) damaged(kFractal);
  return found;
}

}  // namespace leadline::hdf5
