// SPDX-License-Identifier: Apache-2.0
#include "import/hdf5/object_header.h"

#include <algorithm>
#include <optional>

namespace leadline::hdf5 {
namespace {

constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
constexpr uint64_t kMaxHeaderBytes = 64 << 20;
constexpr size_t kMaxMessages =
    65535;  // what a header of version 1 can count; in memory each takes more than in the file
constexpr uint8_t kMaxSharing = 0x3;

bool known_size(int size) { return size == 2 || size == 4 || size == 8; }

/// Where the superblock is: at 0, or behind a user block of 512, 1024, 2048, ... bytes.
size_t find_superblock(std::span<const std::byte> bytes) {
  for (size_t at = 0; at < bytes.size() && bytes.size() - at > kSignature.size(); at = at == 0 ? 512 : at * 2) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data() + at), kSignature.size());
    if (text == kSignature) return at;
  }
  fail(ErrorCode::kInvalidModel, "not an HDF5 file: its signature is missing");
}

/// Collects the messages of one object, following continuation blocks.
class HeaderReader {
 public:
  explicit HeaderReader(const FileBytes& file)
      : file_(file), allowance_(std::min<uint64_t>(file.bytes.size(), kMaxHeaderBytes)) {}

  std::vector<Message> read(uint64_t address) {
    const std::span<const std::byte> start = file_.from(address, kWhat);
    if (std::to_integer<int>(start[0]) == 1) {
      read_version_1(start);
    } else {
      read_version_2(start);
    }
    // Blocks are appended while they are read.
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const auto [block_address, size] = blocks_[i];
      seen_.enter(block_address, kWhat);
      allowance_.take(size, kWhat);
      const std::span<const std::byte> block = file_.at(block_address, size, kWhat);
      if (version_ == 1) {
        read_messages(block);
        continue;
      }
      if (block.size() < 8) damaged(kWhat);
      verify_checksum(file_, block, block.size() - 4, kWhat);
      Cursor cursor(file_, block, kWhat);
      cursor.expect("OCHK");
      read_messages(block.subspan(4, block.size() - 8));
    }
    return std::move(messages_);
  }

 private:
  static constexpr const char* kWhat = "object header";

  void read_version_1(std::span<const std::byte> start) {
    version_ = 1;
    Cursor cursor(file_, start, kWhat);
    cursor.skip(2);
    count_ = cursor.u16();
    cursor.skip(4);
    const uint32_t size = cursor.u32();
    cursor.skip(4);
    allowance_.take(size, kWhat);
    read_messages(cursor.take(size));
  }

  void read_version_2(std::span<const std::byte> start) {
    Cursor cursor(file_, start, kWhat);
    cursor.expect("OHDR");
    cursor.expect_version(2, 2);
    version_ = 2;
    const uint8_t flags = cursor.u8();
    if ((flags & 0x20U) != 0) cursor.skip(16);
    if ((flags & 0x10U) != 0) cursor.skip(4);
    creation_order_ = (flags & 0x4U) != 0;
    const uint64_t size = cursor.number(1 << (flags & 3U));
    allowance_.take(size, kWhat);
    const std::span<const std::byte> messages = cursor.take(size);
    verify_checksum(file_, start, cursor.position(), kWhat);
    read_messages(messages);
  }

  void read_messages(std::span<const std::byte> block) {
    const size_t head = version_ == 1 ? 8 : creation_order_ ? 6 : 4;
    Cursor cursor(file_, block, kWhat);
    while (cursor.left() >= head) {  // less is a gap
      // In version 1 the number of messages is known, and what follows them is not in use any more.
      if (version_ == 1 && messages_.size() + skipped_ == count_) return;
      const uint16_t type = version_ == 1 ? cursor.u16() : cursor.u8();
      const uint16_t size = cursor.u16();
      Message message{static_cast<MessageType>(type), cursor.u8(), {}};
      cursor.skip(head - (version_ == 1 ? 5 : 4));
      message.bytes = cursor.take(size);
      if (message.type == MessageType::kContinuation) {
        Cursor where(file_, message.bytes, kWhat);
        const uint64_t address = where.address();
        blocks_.emplace_back(address, where.length());
        ++skipped_;
        continue;
      }
      if (messages_.size() == kMaxMessages) damaged(kWhat);
      messages_.push_back(message);
    }
  }

  const FileBytes& file_;
  Allowance allowance_;
  Visited seen_;
  int version_ = 0;
  bool creation_order_ = false;
  size_t count_ = 0;
  size_t skipped_ = 0;
  std::vector<Message> messages_;
  std::vector<std::pair<uint64_t, uint64_t>> blocks_;
};

void require_whole(uint64_t end, std::span<const std::byte> bytes) {
  require(end <= bytes.size(), ErrorCode::kInvalidModel, "the HDF5 file is truncated: it has {} bytes, expected {}",
          bytes.size(), end);
}

}  // namespace

Superblock read_superblock(std::span<const std::byte> bytes, bool verify_checksums) {
  Superblock result;
  // Addresses count from the superblock, whatever its base address says: so do files with a user block put before them.
  result.file.bytes = bytes.subspan(find_superblock(bytes));
  result.file.verify_checksums = verify_checksums;
  Cursor cursor(result.file, result.file.bytes, "superblock");
  cursor.skip(kSignature.size());
  cursor.expect_version(0, 3);
  const bool old = cursor.version() < 2;
  if (old) cursor.skip(4);
  result.file.offset_size = cursor.u8();
  result.file.length_size = cursor.u8();
  if (!known_size(result.file.offset_size) || !known_size(result.file.length_size)) damaged("superblock");
  if (old) {
    cursor.skip(9);
    if (cursor.version() == 1) cursor.skip(4);
    for (int i = 0; i < 2; ++i) cursor.address();  // base, free space
    require_whole(cursor.address(), bytes);
    for (int i = 0; i < 2; ++i) cursor.address();  // driver, offset of the root group's name
    result.root = cursor.address();
    return result;
  }
  cursor.skip(1);
  for (int i = 0; i < 2; ++i) cursor.address();  // base, extension
  require_whole(cursor.address(), bytes);
  result.root = cursor.address();
  verify_checksum(result.file, result.file.bytes, cursor.position(), "superblock");
  return result;
}

std::vector<Message> read_object_header(const FileBytes& file, uint64_t address) {
  return HeaderReader(file).read(address);
}

const Message* find(const std::vector<Message>& messages, MessageType type) {
  const auto found = std::find_if(messages.begin(), messages.end(), [&](const Message& m) { return m.type == type; });
  return found == messages.end() ? nullptr : &*found;
}

std::span<const std::byte> resolve_shared(const FileBytes& file, MessageType type, bool shared,
                                          std::span<const std::byte> bytes) {
  if (!shared) return bytes;
  Cursor cursor(file, bytes, "shared message");
  cursor.expect_version(1, kMaxSharing);
  const int kind = cursor.u8();
  if (cursor.version() == 1) cursor.skip(6);
  if (cursor.version() == 3 && kind != 2) {
    fail(ErrorCode::kUnsupported, "HDF5 files with a table of shared messages are not read");
  }
  const std::vector<Message> messages = read_object_header(file, cursor.address());
  const Message* target = find(messages, type);
  if (target == nullptr || target->shared()) damaged("shared message");
  return target->bytes;
}

}  // namespace leadline::hdf5
