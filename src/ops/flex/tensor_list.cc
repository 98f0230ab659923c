// SPDX-License-Identifier: Apache-2.0
#include "ops/flex/tensor_list.h"

#include <fmt/core.h>

#include "core/work.h"

namespace leadline::ops {

PartialShape PartialShape::of(const Shape& shape) {
  PartialShape result;
  result.rank = shape.rank();
  for (int i = 0; i < shape.rank(); ++i) result.dims[static_cast<size_t>(i)] = shape[i];
  return result;
}

bool PartialShape::fully_known() const {
  for (int i = 0; i < rank; ++i) {
    if (dims[static_cast<size_t>(i)] < 0) return false;
  }
  return rank >= 0;
}

bool PartialShape::fits(const Shape& shape) const {
  if (rank < 0) return true;
  if (rank != shape.rank()) return false;
  for (int i = 0; i < rank; ++i) {
    if (dims[static_cast<size_t>(i)] >= 0 && dims[static_cast<size_t>(i)] != shape[i]) return false;
  }
  return true;
}

std::optional<PartialShape> PartialShape::merge(const PartialShape& a, const PartialShape& b) {
  if (a.rank < 0) return b;
  if (b.rank < 0) return a;
  if (a.rank != b.rank) return std::nullopt;
  PartialShape result = a;
  for (int i = 0; i < a.rank; ++i) {
    int64_t& size = result.dims[static_cast<size_t>(i)];
    const int64_t other = b.dims[static_cast<size_t>(i)];
    if (size >= 0 && other >= 0 && size != other) return std::nullopt;
    if (size < 0) size = other;
  }
  return result;
}

std::string PartialShape::to_string() const {
  if (rank < 0) return "[...]";
  std::string text = "[";
  for (int i = 0; i < rank; ++i) {
    const int64_t size = dims[static_cast<size_t>(i)];
    text += fmt::format("{}{}", i == 0 ? "" : ", ", size < 0 ? "?" : std::to_string(size));
  }
  return text + "]";
}

namespace {

bool legal(const PartialShape& shape) {
  if (shape.rank < -1 || shape.rank > kMaxRank) return false;
  for (int i = 0; i < shape.rank; ++i) {
    if (shape.dims[static_cast<size_t>(i)] < -1) return false;
  }
  return true;
}

}  // namespace

std::string ListView::problem() const {
  if (bytes_.size() < sizeof(ListHeader)) return "its variant tensor holds no list";
  const ListHeader head = header();
  const auto type = static_cast<int>(head.dtype);
  const auto rest = static_cast<int64_t>(bytes_.size() - sizeof(ListHeader));
  if (head.magic != ListHeader::kMagic || type < 0 || type >= kDTypeCount || head.count < 0 ||
      head.count > rest / static_cast<int64_t>(sizeof(ListElement)) || !legal(head.element_shape)) {
    return "its variant tensor holds no list";
  }
  std::string found;
  for_items(head.count, 4, [&](int64_t i) {
    const ListElement e = element(i);
    if (!legal(e.shape) || e.offset < 0 || e.bytes < 0 || e.offset > static_cast<int64_t>(bytes_.size()) ||
        e.bytes > static_cast<int64_t>(bytes_.size()) - e.offset) {
      found = fmt::format("element {} of its list is damaged", i);
      return false;
    }
    if (!e.present()) return true;
    const bool sized =
        e.shape.fully_known() && (dtype_bits(head.dtype) == 0 || storage_bytes(head.dtype, e.shape.shape()) == e.bytes);
    if (!sized) found = fmt::format("element {} of its list is damaged", i);
    return sized;
  });
  return found;
}

std::optional<int64_t> list_bytes(int64_t count, int64_t data) {
  int64_t bytes = 0;
  if (count < 0 || data < 0 || __builtin_mul_overflow(count, static_cast<int64_t>(sizeof(ListElement)), &bytes) ||
      __builtin_add_overflow(bytes, data, &bytes) ||
      __builtin_add_overflow(bytes, static_cast<int64_t>(sizeof(ListHeader)), &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

ListWriter::ListWriter(std::byte* memory, const ListHeader& header)
    : memory_(memory), end_(list_bytes(header.count, 0).value_or(0)) {
  fill_bytes(memory, std::byte{0}, end_);
  std::memcpy(memory, &header, sizeof(header));
  const ListElement empty;
  for_items(header.count, 8, [&](int64_t i) {
    std::memcpy(memory_ + sizeof(ListHeader) + static_cast<size_t>(i) * sizeof(empty), &empty, sizeof(empty));
  });
}

std::byte* ListWriter::put(int64_t i, const Shape& shape, int64_t bytes) {
  ListElement element;
  element.offset = end_;
  element.bytes = bytes;
  element.shape = PartialShape::of(shape);
  std::memcpy(memory_ + sizeof(ListHeader) + static_cast<size_t>(i) * sizeof(element), &element, sizeof(element));
  std::byte* place = memory_ + end_;
  // The bytes that round it up are part of the list's value too.
  const int64_t rounded = rounded_element(bytes);
  if (rounded > bytes) std::memset(place + bytes, 0, static_cast<size_t>(rounded - bytes));
  end_ += rounded;
  return place;
}

}  // namespace leadline::ops
