// SPDX-License-Identifier: Apache-2.0
// The superblock of an HDF5 file and the headers of its objects (groups and datasets): lists of messages.
#pragma once

#include <vector>

#include "import/hdf5/format.h"

namespace leadline::hdf5 {

enum class MessageType : uint16_t {
  kDataspace = 0x01,
  kLinkInfo = 0x02,
  kDatatype = 0x03,
  kFillOld = 0x04,
  kFill = 0x05,
  kLink = 0x06,
  kExternalFiles = 0x07,
  kLayout = 0x08,
  kFilters = 0x0B,
  kAttribute = 0x0C,
  kContinuation = 0x10,
  kSymbolTable = 0x11,
  kAttributeInfo = 0x15,
};

struct Message {
  MessageType type;
  uint8_t flags = 0;  // bit 1: the message is elsewhere, and these bytes say where
  std::span<const std::byte> bytes;

  bool shared() const { return (flags & 2U) != 0; }
};

struct Superblock {
  FileBytes file;
  uint64_t root = 0;  // object header of the root group
};

/// Finds and reads the superblock. Throws Error(kInvalidModel) when there is none.
Superblock read_superblock(std::span<const std::byte> bytes, bool verify_checksums);

/// All messages of the object at `address`.
std::vector<Message> read_object_header(const FileBytes& file, uint64_t address);

/// The first message of a type, or null.
const Message* find(const std::vector<Message>& messages, MessageType type);

/// The bytes of `message`, or those of the message of the same type that it points at (a committed datatype).
std::span<const std::byte> resolve_shared(const FileBytes& file, MessageType type, bool shared,
                                          std::span<const std::byte> bytes);

}  // namespace leadline::hdf5
