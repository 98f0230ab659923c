// SPDX-License-Identifier: Apache-2.0
#include "import/hdf5/object.h"

#include <algorithm>

#include "import/hdf5/btree_v2.h"
#include "import/hdf5/heaps.h"

namespace leadline::hdf5 {
namespace {

constexpr const char* kGroup = "group";
constexpr const char* kLink = "link";
constexpr const char* kAttribute = "attribute";
constexpr int kLinkNameRecord = 5;
constexpr int kAttributeNameRecord = 8;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Collects the links of one group, from whichever of the three forms it has.
class LinkReader {
 public:
  explicit LinkReader(const FileBytes& file) : file_(file), allowance_(file.bytes.size()) {}

  Links links;

  void read_symbol_table(std::span<const std::byte> message) {
    Cursor cursor(file_, message, kGroup);
    const uint64_t tree = cursor.address();
    const LocalHeap heap(file_, cursor.address());
    if (tree != kUndefined) read_tree(tree, heap, -1);
  }

  void read_dense(std::span<const std::byte> message) {
    Cursor cursor(file_, message, kGroup);
    cursor.expect_version(0, 0);
    const uint8_t flags = cursor.u8();
    if ((flags & 1U) != 0) cursor.skip(8);
    const uint64_t heap_address = cursor.address();
    const uint64_t names = cursor.address();
    if (heap_address == kUndefined) return;
    const FractalHeap heap(file_, heap_address);
    for_each_record(file_, names, kLinkNameRecord, [&](std::span<const std::byte> record) {
      if (record.size() < 5) damaged(kGroup);
      read_link(heap.object(record.subspan(4)));
    });
  }

  void read_link(std::span<const std::byte> message) {
    Cursor cursor(file_, message, kLink);
    cursor.expect_version(1, 1);
    const uint8_t flags = cursor.u8();
    const int type = (flags & 8U) != 0 ? cursor.u8() : 0;
    if ((flags & 4U) != 0) cursor.skip(8);
    if ((flags & 16U) != 0) cursor.skip(1);
    const uint64_t size = cursor.number(1 << (flags & 3U));
    const std::string_view name = as_text(cursor.take(size));
    add(name, type == 0 ? cursor.address() : kUndefined);
  }

 private:
  void read_tree(uint64_t address, const LocalHeap& heap, int expected_level) {
    seen_.enter(address, kGroup);
    Cursor cursor(file_, file_.from(address, kGroup), kGroup);
    cursor.expect("TREE");
    if (cursor.u8() != 0) damaged(kGroup);
    const int level = cursor.u8();
    if (expected_level >= 0 && level != expected_level) damaged(kGroup);
    const int entries = cursor.u16();
    cursor.address();
    cursor.address();
    for (int i = 0; i < entries; ++i) {
      allowance_.take(4, kGroup);
      cursor.length();
      const uint64_t child = cursor.address();
      if (level > 0) {
        read_tree(child, heap, level - 1);
      } else {
        read_leaf(child, heap);
      }
    }
  }

  void read_leaf(uint64_t address, const LocalHeap& heap) {
    seen_.enter(address, kGroup);
    Cursor cursor(file_, file_.from(address, kGroup), kGroup);
    cursor.expect("SNOD");
    cursor.expect_version(1, 1);
    cursor.skip(1);
    const int entries = cursor.u16();
    for (int i = 0; i < entries; ++i) {
      const uint64_t name = cursor.number(file_.offset_size);
      const uint64_t header = cursor.address();
      constexpr uint32_t kSoftLink = 2;
      const bool soft = cursor.u32() == kSoftLink;
      cursor.skip(20);
      add(heap.text(name), soft ? kUndefined : header);
    }
  }

  void add(std::string_view name, uint64_t header) {
    allowance_.take(name.size() + 1, kGroup);
    if (name.empty() || !links.emplace(name, header).second) damaged(kGroup);
  }

  const FileBytes& file_;
  Allowance allowance_;
  Visited seen_;
};

/// The name comes first, so that the rest of other attributes need not be understood.
std::optional<Attribute> read_attribute(const FileBytes& file, std::span<const std::byte> message,
                                        std::string_view wanted) {
  Cursor cursor(file, message, kAttribute);
  cursor.expect_version(1, 3);
  const uint8_t flags = cursor.u8();
  const uint64_t name_size = cursor.u16();
  const uint64_t type_size = cursor.u16();
  const uint64_t space_size = cursor.u16();
  if (cursor.version() == 3) cursor.skip(1);
  const bool padded = cursor.version() == 1;
  std::string_view name = as_text(cursor.take(name_size));
  name = name.substr(0, name.find('\0'));
  if (name != wanted) return std::nullopt;
  if (padded) cursor.pad_to_8();
  Attribute attribute;
  attribute.name = name;
  const bool shares = !padded;
  attribute.type = read_datatype(
      file, resolve_shared(file, MessageType::kDatatype, shares && (flags & 1U) != 0, cursor.take(type_size)));
  if (padded) cursor.pad_to_8();
  attribute.space = read_dataspace(
      file, resolve_shared(file, MessageType::kDataspace, shares && (flags & 2U) != 0, cursor.take(space_size)));
  if (padded) cursor.pad_to_8();
  attribute.data = cursor.take(checked_product(attribute.space.elements, attribute.type.item_bytes, kAttribute));
  return attribute;
}

}  // namespace

std::optional<Links> read_links(const FileBytes& file, const std::vector<Message>& messages) {
  LinkReader reader(file);
  bool is_group = false;
  for (const Message& message : messages) {
    switch (message.type) {
      case MessageType::kSymbolTable:
        reader.read_symbol_table(message.bytes);
        break;
      case MessageType::kLinkInfo:
        reader.read_dense(message.bytes);
        break;
      case MessageType::kLink:
        reader.read_link(message.bytes);
        break;
      default:
        continue;
    }
    is_group = true;
  }
  if (!is_group) return std::nullopt;
  return std::move(reader.links);
}

std::optional<Attribute> find_attribute(const FileBytes& file, const std::vector<Message>& messages,
                                        std::string_view name) {
  std::optional<Attribute> result;
  for (const Message& message : messages) {
    if (message.type == MessageType::kAttribute) {
      if (message.shared()) fail(ErrorCode::kUnsupported, "shared attributes of HDF5 are not read");
      result = read_attribute(file, message.bytes, name);
    } else if (message.type == MessageType::kAttributeInfo) {
      Cursor cursor(file, message.bytes, kAttribute);
      cursor.expect_version(0, 0);
      const uint8_t flags = cursor.u8();
      if ((flags & 1U) != 0) cursor.skip(2);
      const uint64_t heap_address = cursor.address();
      const uint64_t names = cursor.address();
      if (heap_address == kUndefined) continue;
      const FractalHeap heap(file, heap_address);
      for_each_record(file, names, kAttributeNameRecord, [&](std::span<const std::byte> record) {
        if (record.size() < 9) damaged(kAttribute);
        if (!result) result = read_attribute(file, heap.object(record.first(8)), name);
      });
    }
    if (result) break;
  }
  return result;
}

std::vector<std::string> attribute_strings(const FileBytes& file, const Attribute& attribute) {
  // An empty list has lost what its elements were: h5py writes numbers.
  if (attribute.space.elements == 0) return {};
  const bool variable = attribute.type.kind == Datatype::Kind::kVariableString;
  if (!variable && attribute.type.kind != Datatype::Kind::kFixedString) {
    fail(ErrorCode::kInvalidModel, "attribute '{}' has elements of type {}, not strings", printable(attribute.name),
         attribute.type.text());
  }
  GlobalHeap heap(file);
  Allowance allowance(file.bytes.size());
  std::vector<std::string> result;
  Cursor cursor(file, attribute.data, kAttribute);
  for (uint64_t i = 0; i < attribute.space.elements; ++i) {
    Cursor item(file, cursor.take(attribute.type.item_bytes), kAttribute);
    std::string_view text;
    if (variable) {
      const uint32_t size = item.u32();
      const uint64_t collection = item.address();
      const uint32_t index = item.u32();
      if (size > 0) {
        const std::span<const std::byte> object = heap.object(collection, index);
        if (size > object.size()) damaged(kAttribute);
        text = as_text(object.first(size));
      }
    } else {
      text = as_text(item.take(attribute.type.item_bytes));
    }
    // Strings that are filled up with zeros may not hold one in the middle either: h5py and numpy agree on that.
    if (attribute.type.padding == 2) {
      while (text.ends_with(' ')) text.remove_suffix(1);
    } else {
      text = text.substr(0, text.find('\0'));
    }
    allowance.take(text.size(), kAttribute);
    result.emplace_back(text);
  }
  return result;
}

}  // namespace leadline::hdf5
