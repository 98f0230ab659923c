// SPDX-License-Identifier: Apache-2.0
#include "ir/sparsity.h"

#include <cstring>
#include <vector>

#include "core/cancel.h"
#include "core/error.h"
#include "core/work.h"

namespace leadline::ir {
namespace {

/// Sizes of the blocked dimensions in traversal numbering: n outer sizes (divided by the block) and k block sizes.
std::vector<int64_t> blocked_sizes(const Value& value, const std::string& where) {
  const Sparsity& s = *value.sparsity;
  const auto n = static_cast<size_t>(value.shape.rank());
  const size_t k = s.block_map.size();
  require(s.traversal_order.size() == n + k && s.dimensions.size() == n + k, kBadModel,
          "{}: sparsity has {} traversal entries and {} dimensions, expected {} for rank {} with {} block dimensions",
          where, s.traversal_order.size(), s.dimensions.size(), n + k, n, k);
  std::vector<int64_t> sizes(value.shape.begin(), value.shape.end());
  sizes.resize(n + k);
  std::vector<bool> seen(n + k);
  std::vector<bool> blocked(n);
  for (size_t i = 0; i < n + k; ++i) {
    const int32_t d = s.traversal_order[i];
    require(d >= 0 && d < static_cast<int32_t>(n + k) && !seen[static_cast<size_t>(d)] &&
                (d >= static_cast<int32_t>(n)) == (i >= n),
            kBadModel, "{}: the traversal order of its sparsity is not a permutation of outer, then block dimensions",
            where);
    seen[static_cast<size_t>(d)] = true;
    if (i < n) continue;
    const int32_t axis = s.block_map[static_cast<size_t>(d) - n];
    require(axis >= 0 && axis < static_cast<int32_t>(n) && !blocked[static_cast<size_t>(axis)], kBadModel,
            "{}: block dimension {} maps to axis {}", where, static_cast<size_t>(d) - n, axis);
    blocked[static_cast<size_t>(axis)] = true;
    const int64_t block = s.dimensions[i].dense_size;
    require(s.dimensions[i].dense && block >= 1 && sizes[static_cast<size_t>(axis)] % block == 0, kBadModel,
            "{}: a block of {} does not divide axis {} of size {}", where, block, axis,
            sizes[static_cast<size_t>(axis)]);
    sizes[static_cast<size_t>(axis)] /= block;
    sizes[static_cast<size_t>(d)] = block;
  }
  return sizes;
}

/// Copies stored elements to their places, level by level in traversal order.
struct DenseWriter {
  const Sparsity& sparsity;
  std::vector<int64_t> sizes;    // by level
  std::vector<int64_t> strides;  // by level, in bytes
  size_t element_bytes;
  const std::byte* source;
  std::byte* target;
  PacedCheck check = {};

  void walk(size_t level, int64_t position, int64_t offset) {
    if (level == sizes.size()) {
      check.count(16);
      std::memcpy(target + offset, source + position * static_cast<int64_t>(element_bytes), element_bytes);
      return;
    }
    const SparseDimension& d = sparsity.dimensions[level];
    if (d.dense) {
      for (int64_t i = 0; i < sizes[level]; ++i) {
        walk(level + 1, position * sizes[level] + i, offset + i * strides[level]);
      }
      return;
    }
    const auto segment = static_cast<size_t>(position);
    for (int32_t i = d.segments[segment]; i < d.segments[segment + 1]; ++i) {
      walk(level + 1, i, offset + d.indices[static_cast<size_t>(i)] * strides[level]);
    }
  }
};

}  // namespace

void make_dense(const Value& value, std::byte* target) {
  const Sparsity& s = *value.sparsity;
  const auto n = static_cast<size_t>(value.shape.rank());
  const int64_t element_bytes = dtype_bits(value.dtype) / 8;
  const std::vector<int64_t> sizes = blocked_sizes(value, value.name);
  if (const int64_t total = value.shape.elements() * element_bytes; total > 0) {
    fill_bytes(target, std::byte{0}, total);
  } else {
    return;
  }
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = element_bytes;
  for (size_t axis = n; axis-- > 0; stride *= value.shape[static_cast<int>(axis)]) strides[axis] = stride;
  for (size_t b = n; b < sizes.size(); ++b) {
    const auto axis = static_cast<size_t>(s.block_map[b - n]);
    strides[b] = strides[axis];
    strides[axis] *= sizes[b];
  }
  DenseWriter writer{s, {}, {}, static_cast<size_t>(element_bytes), value.data.data(), target};
  for (int32_t d : s.traversal_order) {
    writer.sizes.push_back(sizes[static_cast<size_t>(d)]);
    writer.strides.push_back(strides[static_cast<size_t>(d)]);
  }
  writer.walk(0, 0, 0);
}

void verify_sparsity(const Value& value, const std::string& where) {
  const Sparsity& s = *value.sparsity;
  const std::vector<int64_t> sizes = blocked_sizes(value, where);
  // Walk level by level: `count` is the number of stored positions so far.
  int64_t count = 1;
  for (size_t level = 0; level < s.dimensions.size(); ++level) {
    const SparseDimension& d = s.dimensions[level];
    const int64_t size = sizes[static_cast<size_t>(s.traversal_order[level])];
    if (d.dense) {
      require(d.dense_size == size, kBadModel, "{}: dense level {} of its sparsity has size {}, expected {}", where,
              level, d.dense_size, size);
      require(!__builtin_mul_overflow(count, size, &count), kBadModel, "{}: sparsity overflows", where);
      continue;
    }
    require(!d.segments.empty() && static_cast<int64_t>(d.segments.size()) - 1 == count && d.segments.front() == 0 &&
                d.segments.back() == static_cast<int64_t>(d.indices.size()),
            kBadModel, "{}: sparse level {} has {} segments for {} positions and {} indices", where, level,
            d.segments.size(), count, d.indices.size());
    for (size_t i = 1; i < d.segments.size(); ++i) {
      require(d.segments[i] >= d.segments[i - 1], kBadModel, "{}: segments of sparse level {} decrease", where, level);
    }
    for (int32_t index : d.indices) {
      require(index >= 0 && index < size, kBadModel, "{}: index {} of sparse level {} is outside {}", where, index,
              level, size);
    }
    count = static_cast<int64_t>(d.indices.size());
  }
  const int64_t bits = dtype_bits(value.dtype);
  const auto stored = static_cast<int64_t>(value.data.size());
  require(bits >= 8 && stored % (bits / 8) == 0 && stored / (bits / 8) == count, kBadModel,
          "{}: sparsity stores {} values of type {}, but the buffer has {} bytes", where, count,
          dtype_name(value.dtype), value.data.size());
}

}  // namespace leadline::ir
