// SPDX-License-Identifier: Apache-2.0
// Writes the custom options of Flex nodes, as TensorFlow's converter does.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leadline::ops {

/// NodeDefWriter("Roll").type("T", 1).flag("on", true).options()
class NodeDefWriter {
 public:
  explicit NodeDefWriter(std::string op) : op_(std::move(op)) { body_ = field(2, op_); }

  NodeDefWriter& integer(std::string_view name, int64_t value) {
    return attribute(name, tag(3, 0) + varint(static_cast<uint64_t>(value)));
  }
  NodeDefWriter& flag(std::string_view name, bool value) { return attribute(name, tag(5, 0) + varint(value ? 1 : 0)); }
  /// `number` is that of TensorFlow's DataType.
  NodeDefWriter& type(std::string_view name, uint64_t number) { return attribute(name, tag(6, 0) + varint(number)); }
  NodeDefWriter& text(std::string_view name, std::string_view value) { return attribute(name, field(2, value)); }
  NodeDefWriter& number(std::string_view name, float value) {
    std::string bytes = tag(4, 5);
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(bits >> (8 * i) & 0xFF);
    return attribute(name, bytes);
  }
  NodeDefWriter& integers(std::string_view name, const std::vector<int64_t>& values) {
    std::string packed;
    for (int64_t value : values) packed += varint(static_cast<uint64_t>(value));
    return attribute(name, field(1, field(3, packed)));
  }
  NodeDefWriter& shape(std::string_view name, const std::vector<int64_t>& sizes) {
    std::string dims;
    for (int64_t size : sizes) dims += field(2, tag(1, 0) + varint(static_cast<uint64_t>(size)));
    return attribute(name, field(7, dims));
  }

  /// An attribute whose value is a message AttrValue already.
  NodeDefWriter& written(std::string_view name, std::string_view message) { return attribute(name, message); }
  /// The node's own name.
  NodeDefWriter& name(std::string_view name) {
    body_ += field(1, name);
    return *this;
  }

  const std::string& message() const { return body_; }
  /// A FlexBuffers vector of the op's name and the message, 4 bytes wide.
  std::vector<std::byte> options() const { return options_of(op_, body_); }
  static std::vector<std::byte> options_of(std::string_view op, std::string_view message) {
    std::string bytes;
    const auto put = [&](size_t value) {
      for (unsigned i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
    };
    std::vector<size_t> places;
    for (std::string_view text : {op, message}) {
      bytes.append((4 - bytes.size() % 4) % 4, '\0');
      put(text.size());
      places.push_back(bytes.size());
      bytes += text;
      bytes += '\0';
    }
    bytes.append((4 - bytes.size() % 4) % 4, '\0');
    put(2);
    const size_t vector = bytes.size();
    for (size_t place : places) put(bytes.size() - place);
    bytes += {5 << 2 | 2, 5 << 2 | 2};  // two strings
    bytes.append((4 - bytes.size() % 4) % 4, '\0');
    put(bytes.size() - vector);
    bytes += {10 << 2 | 2, 4};  // a vector
    std::vector<std::byte> result;
    for (char c : bytes) result.push_back(static_cast<std::byte>(c));
    return result;
  }

 private:
  static std::string varint(uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
    return bytes + static_cast<char>(value);
  }
  static std::string tag(unsigned number, unsigned wire) { return varint(number << 3 | wire); }
  static std::string field(unsigned number, std::string_view bytes) {
    return tag(number, 2) + varint(bytes.size()) + std::string(bytes);
  }
  NodeDefWriter& attribute(std::string_view name, std::string_view value) {
    body_ += field(5, field(1, name) + field(2, value));
    return *this;
  }

  std::string op_;
  std::string body_;
};

}  // namespace leadline::ops
