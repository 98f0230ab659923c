// SPDX-License-Identifier: Apache-2.0
// The variables of a SavedModel: variables.index says which tensors there are, variables.data-NNNNN-of-NNNNN hold
// their bytes. Data files are mapped, and read only when a source is.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "import/saved_model/protos.h"
#include "import/saved_model/table.h"
#include "ir/constant_source.h"

namespace leadline::saved_model {

class Bundle {
 public:
  /// Part of one dimension; length -1 is all of it.
  struct Extent {
    int64_t start = 0;
    int64_t length = -1;
    friend bool operator==(const Extent&, const Extent&) = default;
  };
  using Slice = std::vector<Extent>;

  struct Entry {
    std::string key;
    TfType dtype = TfType::kInvalid;
    TensorShape shape;
    int32_t shard = 0;
    int64_t offset = 0;
    int64_t size = 0;
    uint32_t crc = 0;           // masked
    std::vector<Slice> slices;  // not empty: the tensor is stored in these parts
  };

  /// Reads `prefix`.index. `budget` may be null. Throws Error(kIo, kInvalidModel, kUnsupported).
  static std::shared_ptr<Bundle> open(const std::string& prefix, const std::shared_ptr<Budget>& budget);

  /// Whole tensors in the order of their keys.
  const std::vector<Entry>& entries() const noexcept { return entries_; }
  const Entry* find(std::string_view key) const;

  /// Reads a whole tensor; strings in the layout of core/string_tensor.h. Parts are put together. The source keeps
  /// its data file mapped, checks the checksum on every read and lets go of the mapped pages after it.
  std::shared_ptr<const ir::ConstantSource> source(const Entry& entry);
  /// Reads one stored part of a tensor. Throws Error(kUnsupported) when it was not stored so.
  std::shared_ptr<const ir::ConstantSource> source(const Entry& entry, const Slice& slice);

  /// "'key' in file": how messages call an entry.
  std::string describe(const Entry& entry) const;

 private:
  Bundle() = default;
  Entry read_entry(const TableEntry& row) const;
  void read_header(const TableEntry& row);
  std::shared_ptr<WireFile> shard(int32_t number);

  std::string prefix_;
  std::shared_ptr<WireFile> index_;  // holds what the index is charged for
  int32_t shard_count_ = 0;
  std::vector<Entry> entries_;                     // sorted by key
  std::vector<Entry> parts_;                       // keys that encode a name and a slice
  std::vector<std::shared_ptr<WireFile>> shards_;  // null until needed
  std::shared_ptr<Budget> budget_;
};

/// "2,3" of a part's size, as the shape of its values.
TensorShape slice_shape(const TensorShape& whole, const Bundle::Slice& slice, const std::string& what);

}  // namespace leadline::saved_model
