// SPDX-License-Identifier: Apache-2.0
#include "model/truncation.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

namespace leadline::model {
namespace {

/// Follows offsets by hand and remembers the farthest byte they reach; stops at the first that leaves the file.
class Walker {
 public:
  explicit Walker(std::span<const std::byte> file) : file_(file) {}

  std::optional<uint64_t> field(uint64_t table, int slot) {
    const auto back = read<int32_t>(table);
    if (!back) return {};
    const auto vtable = static_cast<int64_t>(table) - *back;
    if (vtable < 0) return {};
    const auto vtable_size = read<uint16_t>(static_cast<uint64_t>(vtable));
    const uint64_t entry = 4 + 2 * static_cast<uint64_t>(slot);
    if (!vtable_size || entry + 2 > *vtable_size) return {};
    const auto offset = read<uint16_t>(static_cast<uint64_t>(vtable) + entry);
    if (!offset || *offset == 0) return {};
    return follow(table + *offset);
  }
  std::optional<uint64_t> follow(uint64_t position) {
    const auto offset = read<uint32_t>(position);
    if (!offset) return {};
    reach(position + *offset + 4);
    return position + *offset;
  }
  template <typename T>
  std::optional<T> read(uint64_t position) {
    reach(position + sizeof(T));
    if (position > file_.size() || sizeof(T) > file_.size() - position) return {};
    T value;
    std::memcpy(&value, file_.data() + position, sizeof(T));
    return value;
  }
  void reach(uint64_t end) { farthest_ = std::max(farthest_, end); }
  uint64_t farthest() const { return farthest_; }

 private:
  std::span<const std::byte> file_;
  uint64_t farthest_ = 0;
};

}  // namespace

std::string describe_damage(std::span<const std::byte> file) {
  constexpr int kBuffersSlot = 4;
  constexpr int kDataSlot = 0;
  Walker walker(file);
  if (const auto root = walker.follow(0)) {
    for (int slot = 0; slot <= kBuffersSlot; ++slot) {
      const auto vector = slot == 0 ? std::nullopt : walker.field(*root, slot);
      const auto count = vector ? walker.read<uint32_t>(*vector) : std::nullopt;
      if (slot != kBuffersSlot || !count) continue;
      for (uint64_t i = 0; i < *count; ++i) {
        const auto buffer = walker.follow(*vector + 4 + 4 * i);
        if (!buffer) break;
        const auto data = walker.field(*buffer, kDataSlot);
        const auto bytes = data ? walker.read<uint32_t>(*data) : std::nullopt;
        if (bytes) walker.reach(*data + 4 + *bytes);
      }
    }
  }
  if (walker.farthest() > file.size()) {
    return fmt::format("the file is truncated or damaged: it refers to byte {}, but has only {} bytes",
                       walker.farthest(), file.size());
  }
  return fmt::format("the file is damaged: its {} bytes do not form the tables of a .tflite model", file.size());
}

}  // namespace leadline::model
