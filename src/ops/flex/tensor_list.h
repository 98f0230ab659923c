// SPDX-License-Identifier: Apache-2.0
// The bytes of a variant tensor that is a list of tensors. It has the value of the list, as a string tensor has that of
// its texts, so that lists are planned, copied between subgraphs and charged like other tensors. Layout: a Header, an
// Element for each tensor of the list, then the bytes of the elements.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "leadline/types.h"

namespace leadline::ops {

/// A shape of which rank and sizes may be unknown (-1).
struct PartialShape {
  int32_t rank = -1;
  std::array<int64_t, kMaxRank> dims = {};

  static PartialShape of(const Shape& shape);
  bool fully_known() const;
  bool fits(const Shape& shape) const;
  /// What both say; nothing when they contradict each other.
  static std::optional<PartialShape> merge(const PartialShape& a, const PartialShape& b);
  /// Of a fully known shape.
  Shape shape() const { return Shape(std::span(dims.data(), static_cast<size_t>(rank))); }
  std::string to_string() const;
};

/// One tensor of a list, or a place for one.
struct ListElement {
  int64_t offset = 0;  // of its bytes from the start of the list; 0: nothing was put there
  int64_t bytes = 0;
  PartialShape shape;  // fully known where something was put
  bool present() const { return offset != 0; }
};

struct ListHeader {
  static constexpr uint32_t kMagic = 0x5453494C;
  uint32_t magic = kMagic;
  DType dtype = DType::kFloat32;
  int64_t count = 0;
  PartialShape element_shape;
};

/// Reads a list. Its bytes may come from a file: check problem() first.
class ListView {
 public:
  explicit ListView(std::span<const std::byte> bytes) : bytes_(bytes) {}
  /// Why the bytes are not a list; empty when they are.
  std::string problem() const;

  ListHeader header() const { return load<ListHeader>(0); }
  int64_t size() const { return header().count; }
  ListElement element(int64_t i) const {
    return load<ListElement>(sizeof(ListHeader) + static_cast<size_t>(i) * sizeof(ListElement));
  }
  const std::byte* data(const ListElement& element) const { return bytes_.data() + element.offset; }

 private:
  template <typename T>
  T load(size_t at) const {
    T result;
    std::memcpy(&result, bytes_.data() + at, sizeof(T));
    return result;
  }
  std::span<const std::byte> bytes_;
};

/// Bytes of a list of `count` places whose elements have `data` bytes in all, each rounded up to 8; nothing when it is
/// too large.
std::optional<int64_t> list_bytes(int64_t count, int64_t data);
inline int64_t rounded_element(int64_t bytes) { return (bytes + 7) / 8 * 8; }

/// Writes a list into memory of list_bytes().
class ListWriter {
 public:
  ListWriter(std::byte* memory, const ListHeader& header);
  /// Puts an element at place `i`; all others are empty. Returns where its bytes belong.
  std::byte* put(int64_t i, const Shape& shape, int64_t bytes);

 private:
  std::byte* memory_;
  int64_t end_;
};

}  // namespace leadline::ops
