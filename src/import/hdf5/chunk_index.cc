// SPDX-License-Identifier: Apache-2.0
// The lists of chunks: B-trees of both versions, fixed arrays, and the two that need none.
#include <algorithm>
#include <limits>

#include "import/hdf5/btree_v2.h"
#include "import/hdf5/dataset.h"

namespace leadline::hdf5 {
namespace {

constexpr const char* kIndex = "chunk index";
using Visit = std::function<void(const Chunk&)>;

class BtreeV1 {
 public:
  BtreeV1(const FileBytes& file, const Dataset& dataset, const Visit& visit)
      : file_(file), dataset_(dataset), visit_(visit), allowance_(file.bytes.size()) {}

  void walk(uint64_t address, int expected_level) {
    seen_.enter(address, kIndex);
    Cursor cursor(file_, file_.from(address, kIndex), kIndex);
    cursor.expect("TREE");
    if (cursor.u8() != 1) damaged(kIndex);
    const int level = cursor.u8();
    if (expected_level >= 0 && level != expected_level) damaged(kIndex);
    const int entries = cursor.u16();
    cursor.address();
    cursor.address();
    for (int i = 0; i < entries; ++i) {
      allowance_.take(16, kIndex);
      Chunk chunk;
      chunk.size = cursor.u32();
      chunk.mask = cursor.u32();
      for (const uint64_t size : dataset_.chunk) {
        const uint64_t start = cursor.u64();
        if (start % size != 0) damaged(kIndex);
        chunk.place.push_back(start / size);
      }
      cursor.skip(8);  // inside the element
      chunk.address = cursor.address();
      if (level > 0) {
        walk(chunk.address, level - 1);
      } else {
        visit_(chunk);
      }
    }
  }

 private:
  const FileBytes& file_;
  const Dataset& dataset_;
  const Visit& visit_;
  Allowance allowance_;
  Visited seen_;
};

/// Numbers of chunks in row-major order over the largest shape that the dataset may get.
class LinearPlaces {
 public:
  explicit LinearPlaces(const Dataset& dataset) {
    for (size_t i = 0; i < dataset.chunk.size(); ++i) {
      const uint64_t size = std::max(dataset.space.max_dims[i], dataset.space.dims[i]);
      if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) damaged(kIndex);
      counts_.push_back(size == 0 ? 0 : (size - 1) / dataset.chunk[i] + 1);
      total_ = checked_product(total_, counts_.back(), kIndex);
    }
  }
  uint64_t total() const { return total_; }
  std::vector<uint64_t> place(uint64_t number) const {
    std::vector<uint64_t> result(counts_.size());
    for (size_t i = counts_.size(); i-- > 0;) {
      result[i] = number % counts_[i];
      number /= counts_[i];
    }
    return result;
  }

 private:
  std::vector<uint64_t> counts_;
  uint64_t total_ = 1;
};

void visit_implicit(const FileBytes& file, const Dataset& dataset, const Visit& visit) {
  const LinearPlaces places(dataset);
  file.at(dataset.index_address, checked_product(places.total(), dataset.chunk_bytes, kIndex), kIndex);
  for (uint64_t i = 0; i < places.total(); ++i) {
    visit({dataset.index_address + i * dataset.chunk_bytes, dataset.chunk_bytes, 0, places.place(i)});
  }
}

void visit_fixed_array(const FileBytes& file, const Dataset& dataset, const Visit& visit) {
  const std::span<const std::byte> start = file.from(dataset.index_address, kIndex);
  Cursor header(file, start, kIndex);
  header.expect("FAHD");
  header.expect_version(0, 0);
  const bool filtered = header.u8() == 1;
  const int entry_size = header.u8();
  const int page_bits = header.u8();
  const uint64_t entries = header.length();
  const uint64_t block = header.address();
  verify_checksum(file, start, header.position(), kIndex);
  const int size_size = entry_size - file.offset_size - 4;  // bytes of a filtered chunk's stored size
  const bool sound = filtered ? size_size >= 1 && size_size <= 8 : entry_size == file.offset_size;
  const LinearPlaces places(dataset);
  if (!sound || page_bits > 32 || entries != places.total()) damaged(kIndex);
  if (block == kUndefined) return;
  const auto entry_bytes = static_cast<uint64_t>(entry_size);
  file.at(block, checked_product(entries, entry_bytes, kIndex), kIndex);  // so that the numbers below are small

  Cursor cursor(file, file.from(block, kIndex), kIndex);
  cursor.expect("FADB");
  cursor.expect_version(0, 0);
  cursor.skip(1);
  if (cursor.address() != dataset.index_address) damaged(kIndex);
  const uint64_t page = uint64_t{1} << page_bits;
  const bool paged = entries > page;
  std::span<const std::byte> bitmap;
  if (paged) {
    bitmap = cursor.take(((entries + page - 1) / page + 7) / 8);
    cursor.skip(4);
  }
  for (uint64_t i = 0; i < entries; ++i) {
    if (paged && i % page == 0) {
      if (i > 0) cursor.skip(4);  // checksum of the page before
      const uint64_t number = i / page;
      const auto bits = std::to_integer<unsigned>(bitmap[static_cast<size_t>(number / 8)]);
      if ((bits & 0x80U >> number % 8) == 0) {  // never written
        const uint64_t count = std::min(page, entries - i);
        cursor.skip(count * entry_bytes);
        i += count - 1;
        continue;
      }
    }
    Chunk chunk;
    chunk.address = cursor.address();
    chunk.size = filtered ? cursor.number(size_size) : dataset.chunk_bytes;
    if (filtered) chunk.mask = cursor.u32();
    chunk.place = places.place(i);
    if (chunk.address != kUndefined) visit(chunk);
  }
}

void visit_btree_v2(const FileBytes& file, const Dataset& dataset, const Visit& visit) {
  constexpr int kPlain = 10;
  constexpr int kFiltered = 11;
  const bool filtered = !dataset.filters.empty();
  const size_t rank = dataset.chunk.size();
  for_each_record(file, dataset.index_address, filtered ? kFiltered : kPlain, [&](std::span<const std::byte> record) {
    Cursor cursor(file, record, kIndex);
    Chunk chunk;
    chunk.address = cursor.address();
    chunk.size = dataset.chunk_bytes;
    if (filtered) {
      const size_t fixed = cursor.position() + 4 + 8 * rank;
      if (record.size() <= fixed || record.size() - fixed > 8) damaged(kIndex);
      chunk.size = cursor.number(static_cast<int>(record.size() - fixed));
      chunk.mask = cursor.u32();
    }
    for (size_t i = 0; i < rank; ++i) chunk.place.push_back(cursor.u64());
    visit(chunk);
  });
}

}  // namespace

void for_each_chunk(const FileBytes& file, const Dataset& dataset, const Visit& visit) {
  if (dataset.index_address == kUndefined) return;
  switch (dataset.index) {
    case Dataset::Index::kBtreeV1:
      BtreeV1(file, dataset, visit).walk(dataset.index_address, -1);
      return;
    case Dataset::Index::kSingle: {
      const bool filtered = dataset.single_size > 0;
      visit({dataset.index_address, filtered ? dataset.single_size : dataset.chunk_bytes, dataset.single_mask,
             std::vector<uint64_t>(dataset.chunk.size(), 0)});
      return;
    }
    case Dataset::Index::kImplicit:
      return visit_implicit(file, dataset, visit);
    case Dataset::Index::kFixedArray:
      return visit_fixed_array(file, dataset, visit);
    case Dataset::Index::kBtreeV2:
      return visit_btree_v2(file, dataset, visit);
    case Dataset::Index::kExtensibleArray:
      break;
  }
  fail(ErrorCode::kUnsupported,
       "HDF5 datasets that can grow in one dimension and were written with libver='latest' "
       "(extensible array) are not read");
}

}  // namespace leadline::hdf5
