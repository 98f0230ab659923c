// SPDX-License-Identifier: Apache-2.0
#include "guard/memory_probe.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string_view>

namespace leadline::guard {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 4;  // sums of a few stay in range

Descriptor open_file(const std::string& path) { return Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC)); }

/// The file's text in `buffer`.
template <size_t N>
std::string_view read_again(const Descriptor& file, std::array<char, N>& buffer) {
  if (!file) return {};
  const ssize_t size = pread(file.get(), buffer.data(), buffer.size(), 0);
  return {buffer.data(), size > 0 ? static_cast<size_t>(size) : 0};
}

std::optional<int64_t> number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0 || value > kMost) return std::nullopt;
  return value;
}

int64_t kib(std::string_view text, std::string_view key) {
  const int64_t value = find_number(text, key).value_or(0);
  return value > 0 && value < kMost / kKiB ? value * kKiB : 0;
}

}  // namespace

MemoryProbe::MemoryProbe(const SystemPaths& paths)
    : statm_(open_file(paths.proc + "/self/statm")),
      status_(open_file(paths.proc + "/self/status")),
      meminfo_(open_file(paths.proc + "/meminfo")),
      page_bytes_(sysconf(_SC_PAGESIZE)) {
  for (const MemoryGroup& group : memory_groups(paths)) {
    if (!group.limit) continue;
    Group kept;
    kept.v2 = group.v2;
    kept.limit = *group.limit;
    kept.usage = open_file(group.directory + (group.v2 ? "/memory.current" : "/memory.usage_in_bytes"));
    kept.stat = open_file(group.directory + "/memory.stat");
    if (group.v2) {
      kept.swap_usage = open_file(group.directory + "/memory.swap.current");
      const std::string limit = read_text_file(group.directory + "/memory.swap.max").value_or("0");
      kept.swap_limit = limit.starts_with("max") ? kMost : number(limit).value_or(0);
    }
    if (kept.usage) groups_.push_back(std::move(kept));
  }
}

std::optional<int64_t> MemoryProbe::left_in(const Group& group, int64_t swap_free) const {
  std::array<char, 64> short_text;
  const std::optional<int64_t> usage = number(read_again(group.usage, short_text));
  if (!usage) return std::nullopt;
  std::array<char, 8192> text;
  const std::string_view stat = read_again(group.stat, text);
  // Pages of files, even those in use, go before anybody is killed.
  const std::string_view prefix = group.v2 ? "" : "total_";
  int64_t reclaimable = 0;
  for (const std::string_view key : {"inactive_file", "active_file"}) {
    reclaimable += std::clamp<int64_t>(find_number(stat, std::string(prefix) + std::string(key)).value_or(0), 0, kMost);
  }
  int64_t left = group.limit - std::max<int64_t>(*usage - reclaimable, 0);
  if (group.v2 && swap_free > 0) {
    const int64_t swapped = number(read_again(group.swap_usage, short_text)).value_or(0);
    left += std::clamp<int64_t>(group.swap_limit - swapped, 0, swap_free);
  }
  return std::max<int64_t>(left, 0);
}

MemorySample MemoryProbe::sample() const {
  MemorySample sample;
  std::array<char, 256> statm;
  std::string_view fields = read_again(statm_, statm);  // size resident shared text lib data dirty, in pages
  for (int field = 0; field < 6 && !fields.empty(); ++field) {
    const int64_t bytes = std::min(number(fields).value_or(0), kMost / page_bytes_) * page_bytes_;
    if (field == 1) sample.resident = bytes;
    if (field == 5) sample.data = bytes;
    fields.remove_prefix(std::min(fields.find(' '), fields.size()));
    fields.remove_prefix(std::min<size_t>(1, fields.size()));
  }
  std::array<char, 4096> meminfo;
  const std::string_view machine = read_again(meminfo_, meminfo);
  sample.swap_free = kib(machine, "SwapFree");
  sample.capacity = kib(machine, "MemTotal") + kib(machine, "SwapTotal");
  sample.available = std::min(kib(machine, "MemAvailable") + sample.swap_free, sample.capacity);
  for (const Group& group : groups_) {
    const std::optional<int64_t> left = left_in(group, sample.swap_free);
    if (!left || (sample.capacity > 0 && *left >= sample.available)) continue;
    sample.available = *left;
    sample.capacity = std::max(group.limit, *left);
    sample.container = true;
  }
  return sample;
}

int64_t MemoryProbe::high_water() const {
  std::array<char, 4096> text;
  return kib(read_again(status_, text), "VmHWM");
}

}  // namespace leadline::guard
