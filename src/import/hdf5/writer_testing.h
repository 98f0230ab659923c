// SPDX-License-Identifier: Apache-2.0
// For tests: writes small HDF5 files, with the structures of h5py's default (symbol tables, headers of version 1) or
// with those of libver='latest' (link messages, headers of version 2 with checksums).
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "import/hdf5/format.h"

namespace leadline::hdf5 {

class Hdf5Writer {
 public:
  enum class Store { kContiguous, kCompact, kChunked, kPacked };  ///< packed: shuffle and deflate

  struct Node {
    std::map<std::string, std::unique_ptr<Node>> children;
    std::vector<std::string> messages;  // type (2 bytes) and body
    bool dataset = false;
    uint64_t address = 0;
  };

  explicit Hdf5Writer(bool latest = false) : latest_(latest) {
    bytes_.assign(latest ? 48 : 96, '\0');  // the superblock, written at the end
  }

  Node& at(const std::string& path) {
    Node* node = &root_;
    for (size_t begin = 0; begin < path.size();) {
      const size_t end = std::min(path.find('/', begin), path.size());
      auto& child = node->children[path.substr(begin, end - begin)];
      if (child == nullptr) child = std::make_unique<Node>();
      node = child.get();
      begin = end + 1;
    }
    return *node;
  }

  /// Strings of fixed length, as numpy's 'S' arrays are written.
  void strings(const std::string& path, const std::string& name, const std::vector<std::string>& values) {
    size_t size = 1;
    for (const std::string& value : values) size = std::max(size, value.size());
    std::string data;
    for (const std::string& value : values) data += value + std::string(size - value.size(), '\0');
    attribute(path, name, type(3, 1, size), space({values.size()}), data);
  }
  /// One string of variable length, as Python's are written.
  void text(const std::string& path, const std::string& name, const std::string& value) {
    std::string heap = "GCOL";
    put<uint32_t>(heap, 1);
    put<uint64_t>(heap, 0);
    put<uint64_t>(heap, 1);  // index and references
    put<uint64_t>(heap, value.size());
    heap += value;
    pad(heap);
    heap.append(16, '\0');
    const uint64_t heap_size = heap.size();
    std::memcpy(heap.data() + 8, &heap_size, 8);
    std::string data;
    put<uint32_t>(data, static_cast<uint32_t>(value.size()));
    put<uint64_t>(data, append(heap));
    put<uint32_t>(data, 1);
    attribute(path, name, type(9, 1, 16) + type(3, 0, 1), space({}), data);
  }

  void floats(const std::string& path, const std::vector<uint64_t>& shape, const std::vector<float>& values,
              Store store = Store::kContiguous, bool big_endian = false) {
    std::string data(reinterpret_cast<const char*>(values.data()), values.size() * 4);
    if (big_endian) {
      for (size_t i = 0; i < data.size(); i += 4)
        std::reverse(data.begin() + static_cast<long>(i), data.begin() + static_cast<long>(i) + 4);
    }
    std::string float_type = type(1, 0x1F20U | (big_endian ? 1U : 0U), 4);
    put<uint32_t>(float_type, 32U << 16U);  // bit offset 0, precision 32
    for (const int value : {23, 8, 0, 23}) put<uint8_t>(float_type, static_cast<uint8_t>(value));
    put<uint32_t>(float_type, 127);
    dataset(path, float_type, 4, shape, data, store);
  }
  void opaque(const std::string& path, uint64_t item, const std::vector<uint64_t>& shape, const std::string& data) {
    dataset(path, type(5, 0, item), item, shape, data, Store::kContiguous);
  }

  std::string finish() {
    write(root_);
    std::string head = "\x89HDF\r\n\x1a\n";
    if (latest_) {
      head += std::string("\x02\x08\x08\x00", 4);
      put<uint64_t>(head, 0);
      put<uint64_t>(head, kUndefined);
      put<uint64_t>(head, bytes_.size());
      put<uint64_t>(head, root_.address);
      put_checksum(head);
    } else {
      head += std::string("\0\0\0\0\0\x08\x08\0", 8);
      put<uint16_t>(head, 4);
      put<uint16_t>(head, 16);
      put<uint32_t>(head, 0);
      for (const uint64_t value : {uint64_t{0}, kUndefined, uint64_t{bytes_.size()}, kUndefined, uint64_t{0}}) {
        put<uint64_t>(head, value);
      }
      put<uint64_t>(head, root_.address);
    }
    bytes_.replace(0, head.size(), head);
    return bytes_;
  }

  template <typename T>
  static void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }

 private:
  static void pad(std::string& out) { out.append((8 - out.size() % 8) % 8, '\0'); }
  static void put_checksum(std::string& out) { put<uint32_t>(out, lookup3(std::as_bytes(std::span(out)))); }

  uint64_t append(const std::string& block) {
    pad(bytes_);
    const uint64_t address = bytes_.size();
    bytes_ += block;
    return address;
  }

  static std::string type(unsigned number, unsigned bits, uint64_t size) {
    std::string out;
    put<uint32_t>(out, (0x10U | number) | bits << 8U);
    put<uint32_t>(out, static_cast<uint32_t>(size));
    return out;
  }
  std::string space(const std::vector<uint64_t>& shape) const {
    std::string out;
    put<uint8_t>(out, latest_ ? 2 : 1);
    put<uint8_t>(out, static_cast<uint8_t>(shape.size()));
    out.append(1, '\0');
    if (latest_) {
      put<uint8_t>(out, shape.empty() ? 0 : 1);
    } else {
      out.append(5, '\0');
    }
    for (const uint64_t size : shape) put<uint64_t>(out, size);
    return out;
  }

  static void message(Node& node, uint16_t number, const std::string& body) {
    std::string out;
    put<uint16_t>(out, number);
    node.messages.push_back(out + body);
  }

  void attribute(const std::string& path, const std::string& name, std::string type_text, std::string space_text,
                 const std::string& data) {
    std::string out;
    put<uint16_t>(out, latest_ ? 3 : 1);
    put<uint16_t>(out, static_cast<uint16_t>(name.size() + 1));
    put<uint16_t>(out, static_cast<uint16_t>(type_text.size()));
    put<uint16_t>(out, static_cast<uint16_t>(space_text.size()));
    if (latest_) out += '\0';
    for (std::string part : {name + '\0', std::move(type_text), std::move(space_text)}) {
      if (!latest_) pad(part);
      out += part;
    }
    message(at(path), 0x0C, out + data);
  }

  void dataset(const std::string& path, const std::string& type_text, uint64_t item, const std::vector<uint64_t>& shape,
               const std::string& data, Store store) {
    Node& node = at(path);
    node.dataset = true;
    message(node, 0x01, space(shape));
    message(node, 0x03, type_text);
    std::string layout;
    put<uint8_t>(layout, latest_ && store >= Store::kChunked ? 4 : 3);
    if (store == Store::kCompact) {
      put<uint8_t>(layout, 0);
      put<uint16_t>(layout, static_cast<uint16_t>(data.size()));
      layout += data;
    } else if (store == Store::kContiguous) {
      put<uint8_t>(layout, 1);
      put<uint64_t>(layout, append(data));
      put<uint64_t>(layout, data.size());
    } else {
      chunked(node, layout, item, shape, data, store == Store::kPacked);
    }
    message(node, 0x08, layout);
  }

  /// One chunk with all elements.
  void chunked(Node& node, std::string& layout, uint64_t item, const std::vector<uint64_t>& shape, std::string data,
               bool packed) {
    if (packed) {
      std::string shuffled;
      for (uint64_t byte = 0; byte < item; ++byte) {
        for (size_t i = byte; i < data.size(); i += item) shuffled += data[i];
      }
      uLongf size = compressBound(shuffled.size());
      data.assign(size, '\0');
      compress(reinterpret_cast<Bytef*>(data.data()), &size, reinterpret_cast<const Bytef*>(shuffled.data()),
               shuffled.size());
      data.resize(size);
      std::string filters;
      put<uint16_t>(filters, 0x0201);  // version 1, which newer files may have as well; 2 filters
      filters.append(6, '\0');
      for (const auto& [id, value] : {std::pair<uint16_t, uint32_t>{2, static_cast<uint32_t>(item)}, {1, 6}}) {
        put<uint16_t>(filters, id);
        put<uint32_t>(filters, 0);
        put<uint16_t>(filters, 1);
        put<uint32_t>(filters, value);
        put<uint32_t>(filters, 0);
      }
      message(node, 0x0B, filters);
    }
    const uint64_t address = append(data);
    put<uint8_t>(layout, 2);
    if (latest_) {
      put<uint8_t>(layout, packed ? 2 : 0);
      put<uint8_t>(layout, static_cast<uint8_t>(shape.size() + 1));
      put<uint8_t>(layout, 4);
      for (const uint64_t size : shape) put<uint32_t>(layout, static_cast<uint32_t>(size));
      put<uint32_t>(layout, static_cast<uint32_t>(item));
      put<uint8_t>(layout, 1);
      if (packed) {
        put<uint64_t>(layout, data.size());
        put<uint32_t>(layout, 0);
      }
      put<uint64_t>(layout, address);
      return;
    }
    std::string tree("TREE\x01\x00\x01\x00", 8);
    put<uint64_t>(tree, kUndefined);
    put<uint64_t>(tree, kUndefined);
    put<uint32_t>(tree, static_cast<uint32_t>(data.size()));
    put<uint32_t>(tree, 0);
    tree.append(8 * (shape.size() + 1), '\0');
    put<uint64_t>(tree, address);
    tree.append(8 + 8 * (shape.size() + 1), '\0');
    put<uint8_t>(layout, static_cast<uint8_t>(shape.size() + 1));
    put<uint64_t>(layout, append(tree));
    for (const uint64_t size : shape) put<uint32_t>(layout, static_cast<uint32_t>(size));
    put<uint32_t>(layout, static_cast<uint32_t>(item));
  }

  void write(Node& node) {
    for (auto& [name, child] : node.children) write(*child);
    if (!node.dataset) {
      if (latest_) {
        write_links(node);
      } else {
        write_symbol_table(node);
      }
    }
    std::string messages;
    for (std::string& body : node.messages) {
      if (!latest_) body.append((8 - (body.size() - 2) % 8) % 8, '\0');
      const auto size = static_cast<uint16_t>(body.size() - 2);
      if (latest_) {
        messages += body[0];
        put<uint16_t>(messages, size);
        messages.append(1, '\0');
      } else {
        messages += body.substr(0, 2);
        put<uint16_t>(messages, size);
        messages.append(4, '\0');
      }
      messages += body.substr(2);
    }
    std::string header;
    if (latest_) {
      header = std::string("OHDR\x02\x02", 6);
      put<uint32_t>(header, static_cast<uint32_t>(messages.size()));
      header += messages;
      put_checksum(header);
    } else {
      put<uint16_t>(header, 1);
      put<uint16_t>(header, static_cast<uint16_t>(node.messages.size()));
      put<uint32_t>(header, 1);
      put<uint64_t>(header, messages.size());
      header += messages;
    }
    node.address = append(header);
  }

  void write_links(Node& node) {
    std::string info(2, '\0');
    put<uint64_t>(info, kUndefined);
    put<uint64_t>(info, kUndefined);
    message(node, 0x02, info);
    for (const auto& [name, child] : node.children) {
      std::string link("\x01\x00", 2);
      put<uint8_t>(link, static_cast<uint8_t>(name.size()));
      link += name;
      put<uint64_t>(link, child->address);
      message(node, 0x06, link);
    }
  }

  void write_symbol_table(Node& node) {
    std::string names(8, '\0');
    std::string leaf("SNOD\x01\x00", 6);
    put<uint16_t>(leaf, static_cast<uint16_t>(node.children.size()));
    for (const auto& [name, child] : node.children) {
      put<uint64_t>(leaf, names.size());
      put<uint64_t>(leaf, child->address);
      leaf.append(24, '\0');
      names += name + '\0';
      pad(names);
    }
    std::string heap("HEAP\0\0\0\0", 8);
    put<uint64_t>(heap, names.size());
    put<uint64_t>(heap, 1);
    put<uint64_t>(heap, append(names));
    std::string tree("TREE\x00\x00\x01\x00", 8);
    put<uint64_t>(tree, kUndefined);
    put<uint64_t>(tree, kUndefined);
    put<uint64_t>(tree, 0);
    put<uint64_t>(tree, append(leaf));
    put<uint64_t>(tree, 0);
    std::string table;
    put<uint64_t>(table, append(tree));
    put<uint64_t>(table, append(heap));
    message(node, 0x11, table);
  }

  bool latest_;
  std::string bytes_;
  Node root_;
};

}  // namespace leadline::hdf5
