// SPDX-License-Identifier: Apache-2.0
// Layout, all numbers little-endian:
//   file    blocks, each followed by a compression byte and the masked CRC-32C of both; a footer of 48 bytes
//   footer  handle of a block not needed here, handle of the index block, padding, magic number
//   handle  offset and size of a block, as varints
//   block   entries; uint32 places where a key is whole; uint32 number of those
//   entry   varints: bytes shared with the key before, further bytes of the key, bytes of the value; then both
#include "import/saved_model/table.h"

#include <cstring>
#include <utility>

#include "core/error.h"
#include "import/saved_model/crc32c.h"
#include "import/saved_model/snappy.h"

namespace leadline::saved_model {
namespace {

constexpr size_t kFooterBytes = 48;
constexpr size_t kTrailerBytes = 5;
constexpr uint64_t kMagic = 0xDB4775248B80FB57ULL;
constexpr size_t kMaxKeyBytes = 1 << 16;
constexpr size_t kMaxBlockBytes = 1 << 30;

class Cursor {
 public:
  Cursor(const WireFile& file, Bytes bytes) : file_(file), at_(bytes.data()), end_(at_ + bytes.size()) {}

  bool at_end() const { return at_ == end_; }
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint64_t>(take(1)[0]);
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail_here("a number has more than 10 bytes");
  }
  Bytes take(uint64_t size) {
    if (size > static_cast<uint64_t>(end_ - at_)) fail_here("the table is cut off");
    const Bytes taken(at_, static_cast<size_t>(size));
    at_ += size;
    return taken;
  }
  [[noreturn]] void fail_here(std::string_view problem) const { file_.fail_at(at_, problem); }

 private:
  const WireFile& file_;
  const std::byte* at_;
  const std::byte* end_;
};

uint32_t load32(const std::byte* data) {
  uint32_t value = 0;
  std::memcpy(&value, data, 4);
  return value;
}

class TableReader {
 public:
  TableReader(std::shared_ptr<WireFile> file, std::shared_ptr<Budget> budget)
      : file_(std::move(file)), budget_(std::move(budget)) {}

  std::vector<TableEntry> run() {
    const Bytes all = file_->bytes();
    if (all.size() < kFooterBytes) file_->fail_at(all.data(), "too short for a table of variables");
    const Bytes footer = all.last(kFooterBytes);
    uint64_t magic = 0;
    std::memcpy(&magic, footer.data() + kFooterBytes - 8, 8);
    if (magic != kMagic) file_->fail_at(footer.data(), "not a table of variables, or cut off: no mark at its end");
    Cursor handles(*file_, footer);
    handles.varint();
    handles.varint();
    const uint64_t offset = handles.varint();
    const std::vector<TableEntry> index = block_entries(read_block(offset, handles.varint()));
    std::vector<TableEntry> entries;
    for (const TableEntry& block : index) {
      Cursor handle(*block.file, block.value);
      const uint64_t at = handle.varint();
      for (TableEntry& entry : block_entries(read_block(at, handle.varint()))) {
        // Also keeps a block from being listed twice.
        if (!entries.empty() && entry.key <= entries.back().key)
          entry.file->fail_at(entry.value.data(), "the keys are not in order");
        entries.push_back(std::move(entry));
      }
    }
    return entries;
  }

 private:
  struct Block {
    std::shared_ptr<WireFile> file;
    Bytes bytes;
  };

  Block read_block(uint64_t offset, uint64_t size) {
    const Bytes all = file_->bytes();
    if (offset > all.size() || size > all.size() - offset || all.size() - offset - size < kTrailerBytes)
      file_->fail_at(all.data(), fmt::format("a block of {} bytes at {} is outside of the file", size, offset));
    // Blocks lie beside each other. Without this, an index of many rows could have one block checked over and over.
    taken_ += size + kTrailerBytes;
    if (taken_ > all.size()) file_->fail_at(all.data(), "the blocks of the table overlap");
    const Bytes checked = all.subspan(offset, size + 1);
    const Bytes bytes = checked.first(size);
    if (masked_crc(crc32c(checked)) != load32(checked.data() + checked.size()))
      file_->fail_at(bytes.data(), "the checksum of a block is wrong: the file is damaged");
    const auto compression = static_cast<int>(checked.back());
    if (compression == 0) return {file_, bytes};
    const std::string name = fmt::format("{} (compressed block at {})", file_->name(), offset);
    if (compression != 1) file_->fail_at(bytes.data(), fmt::format("compression {} is not known", compression));
    file_->charge(snappy_size(bytes, kMaxBlockBytes, name));  // before the memory is taken
    const auto plain = std::make_shared<std::vector<std::byte>>(snappy_decode(bytes, kMaxBlockBytes, name));
    return {std::make_shared<WireFile>(name, ModelBytes::borrow(*plain, plain), budget_), *plain};
  }

  std::vector<TableEntry> block_entries(const Block& block) {
    const auto damaged = [&](const char* problem) { block.file->fail_at(block.bytes.data(), problem); };
    if (block.bytes.size() < 4) damaged("a block is too short");
    const uint64_t restarts = load32(block.bytes.data() + block.bytes.size() - 4);
    if (restarts > (block.bytes.size() - 4) / 4) damaged("a block has more restarts than bytes");
    std::vector<TableEntry> entries;
    std::string key;
    for (Cursor cursor(*block.file, block.bytes.first(block.bytes.size() - 4 - 4 * restarts)); !cursor.at_end();) {
      const uint64_t shared = cursor.varint();
      const uint64_t added = cursor.varint();
      const uint64_t value_size = cursor.varint();
      if (shared > key.size() || added > kMaxKeyBytes || shared + added > kMaxKeyBytes)
        cursor.fail_here(fmt::format("a key shares {} of {} bytes and adds {}", shared, key.size(), added));
      key.resize(shared);
      const Bytes suffix = cursor.take(added);
      if (added != 0) key.append(reinterpret_cast<const char*>(suffix.data()), suffix.size());
      file_->charge(sizeof(TableEntry) + key.size());
      entries.push_back({key, cursor.take(value_size), block.file});
    }
    return entries;
  }

  std::shared_ptr<WireFile> file_;
  std::shared_ptr<Budget> budget_;
  uint64_t taken_ = 0;  // bytes of the file in blocks that were read
};

}  // namespace

std::vector<TableEntry> read_table(const std::shared_ptr<WireFile>& file, const std::shared_ptr<Budget>& budget) {
  return TableReader(file, budget).run();
}

}  // namespace leadline::saved_model
