// SPDX-License-Identifier: Apache-2.0
#include "import/hdf5/btree_v2.h"

#include <limits>
#include <vector>

namespace leadline::hdf5 {
namespace {

constexpr const char* kTree = "B-tree (version 2)";
constexpr uint64_t kNodeOverhead = 10;  // signature, version, type, checksum
constexpr int kMaxDepth = 16;

/// What a node of some depth can hold, from which the sizes of the numbers in its parent follow.
struct Level {
  uint64_t max_records = 0;
  int total_size = 0;  // bytes of "records in this subtree" in the parent; none for leaves
};

class Tree {
 public:
  Tree(const FileBytes& file, const std::function<void(std::span<const std::byte>)>& visit)
      : file_(file), visit_(visit), allowance_(file.bytes.size()) {}

  void walk(uint64_t address, int type) {
    const std::span<const std::byte> start = file_.from(address, kTree);
    Cursor cursor(file_, start, kTree);
    cursor.expect("BTHD");
    cursor.expect_version(0, 0);
    type_ = cursor.u8();
    if (type_ != type) damaged(kTree);
    node_size_ = cursor.u32();
    record_size_ = cursor.u16();
    const int depth = cursor.u16();
    cursor.skip(2);
    const uint64_t root = cursor.address();
    const uint64_t records = cursor.u16();
    cursor.length();
    verify_checksum(file_, start, cursor.position(), kTree);
    if (root == kUndefined) return;
    if (depth > kMaxDepth || record_size_ == 0 || node_size_ < kNodeOverhead + record_size_) damaged(kTree);
    make_levels(depth);
    walk_node(root, records, depth);
  }

 private:
  void make_levels(int depth) {
    const uint64_t leaf = (node_size_ - kNodeOverhead) / record_size_;
    count_size_ = encoded_size(leaf);
    levels_.push_back({leaf, 0});
    uint64_t total = leaf;
    for (int i = 1; i <= depth; ++i) {
      const uint64_t pointer = pointer_size(i);
      if (node_size_ < kNodeOverhead + pointer) damaged(kTree);
      const uint64_t records = (node_size_ - kNodeOverhead - pointer) / (record_size_ + pointer);
      // Totals beyond 64 bits saturate; such a tree does not fit into a file and is refused when it is read.
      if (__builtin_mul_overflow(records + 1, total, &total) || __builtin_add_overflow(total, records, &total)) {
        total = std::numeric_limits<uint64_t>::max();
      }
      levels_.push_back({records, encoded_size(total)});
    }
  }
  uint64_t pointer_size(int depth) const {
    return static_cast<uint64_t>(file_.offset_size + count_size_ + levels_[static_cast<size_t>(depth - 1)].total_size);
  }

  void walk_node(uint64_t address, uint64_t records, int depth) {
    seen_.enter(address, kTree);
    if (records > levels_[static_cast<size_t>(depth)].max_records) damaged(kTree);
    uint64_t used = kNodeOverhead + records * record_size_;
    if (depth > 0) used += (records + 1) * pointer_size(depth);
    allowance_.take(used, kTree);
    const std::span<const std::byte> node = file_.at(address, used, kTree);
    verify_checksum(file_, node, node.size() - 4, kTree);
    Cursor cursor(file_, node, kTree);
    cursor.expect(depth > 0 ? "BTIN" : "BTLF");
    cursor.expect_version(0, 0);
    if (cursor.u8() != type_) damaged(kTree);
    const std::span<const std::byte> own = cursor.take(records * record_size_);
    for (uint64_t i = 0; i <= records; ++i) {
      if (depth > 0) {
        const uint64_t child = cursor.address();
        const uint64_t child_records = cursor.number(count_size_);
        cursor.skip(static_cast<uint64_t>(levels_[static_cast<size_t>(depth - 1)].total_size));
        walk_node(child, child_records, depth - 1);
      }
      if (i < records) visit_(own.subspan(static_cast<size_t>(i * record_size_), static_cast<size_t>(record_size_)));
    }
  }

  const FileBytes& file_;
  const std::function<void(std::span<const std::byte>)>& visit_;
  Allowance allowance_;
  Visited seen_;
  int type_ = 0;
  uint64_t node_size_ = 0;
  uint64_t record_size_ = 0;
  int count_size_ = 1;
  std::vector<Level> levels_;
};

}  // namespace

void for_each_record(const FileBytes& file, uint64_t address, int type,
                     const std::function<void(std::span<const std::byte>)>& visit) {
  Tree(file, visit).walk(address, type);
}

}  // namespace leadline::hdf5
