// SPDX-License-Identifier: Apache-2.0
// The three heaps of HDF5: local (names of old groups), global (strings of variable length), fractal (links and
// attributes of dense objects).
#pragma once

#include <map>
#include <string>

#include "import/hdf5/format.h"

namespace leadline::hdf5 {

/// Names of the links of one old group.
class LocalHeap {
 public:
  LocalHeap(const FileBytes& file, uint64_t address);
  /// The text that starts at `offset` and ends before a zero byte.
  std::string_view text(uint64_t offset) const;

 private:
  std::span<const std::byte> data_;
};

/// Objects in global heap collections, which are read when first asked for.
class GlobalHeap {
 public:
  explicit GlobalHeap(const FileBytes& file) : file_(file), allowance_(file.bytes.size()) {}
  std::span<const std::byte> object(uint64_t collection, uint32_t index);

 private:
  using Collection = std::map<uint32_t, std::span<const std::byte>>;
  const Collection& read(uint64_t address);

  const FileBytes& file_;
  Allowance allowance_;
  std::map<uint64_t, Collection> collections_;
};

/// Objects addressed by an id of a few bytes.
class FractalHeap {
 public:
  FractalHeap(const FileBytes& file, uint64_t address);
  std::span<const std::byte> object(std::span<const std::byte> id) const;

 private:
  std::span<const std::byte> managed(uint64_t offset, uint64_t size) const;
  std::span<const std::byte> huge(Cursor& id) const;
  uint64_t row_size(int row) const { return row == 0 ? start_size_ : start_size_ << (row - 1); }

  const FileBytes& file_;
  uint64_t address_ = 0;
  uint64_t id_size_ = 0;
  uint64_t huge_tree_ = kUndefined;
  uint64_t width_ = 0;
  uint64_t start_size_ = 0;
  uint64_t max_direct_size_ = 0;
  int offset_size_ = 0;  // of the ids of managed objects
  int length_size_ = 0;
  int direct_rows_ = 0;  // rows of direct blocks in an indirect one
  uint64_t root_ = kUndefined;
  int root_rows_ = 0;  // 0: the root is a direct block
};

}  // namespace leadline::hdf5
