// SPDX-License-Identifier: Apache-2.0
#include "guard/memory_probe.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include "guard/units.h"

namespace leadline::guard {
namespace {

constexpr int64_t kMostBytes = std::numeric_limits<int64_t>::max() / 4;  // sums of a few stay in range

Descriptor open_file(const std::string& path) { return Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC)); }

/// The file's text in `buffer`.
template <size_t N>
std::string_view read_again(const Descriptor& file, std::array<char, N>& buffer) {
  if (!file) return {};
  const ssize_t size = pread(file.get(), buffer.data(), buffer.size(), 0);
  return {buffer.data(), size > 0 ? static_cast<size_t>(size) : 0};
}

std::optional<int64_t> parse_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0 || value > kMostBytes) return std::nullopt;
  return value;
}

/// What resource limits leave of address space and data; -1: there are none.
int64_t limit_left(int64_t mapped, int64_t data) {
  int64_t left = -1;
  for (const auto& [resource, used] : {std::pair{RLIMIT_AS, mapped}, std::pair{RLIMIT_DATA, data}}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(kMostBytes)) continue;
    const int64_t rest = std::max<int64_t>(static_cast<int64_t>(limit.rlim_cur) - used, 0);
    if (left < 0 || rest < left) left = rest;
  }
  return left;
}

int64_t kib(std::string_view text, std::string_view key) {
  const int64_t value = find_number(text, key).value_or(0);
  return value > 0 && value < kMostBytes / kKiB ? value * kKiB : 0;
}

}  // namespace

MemoryProbe::MemoryProbe(const SystemPaths& paths)
    : statm_(open_file(paths.proc + "/" + paths.process + "/statm")),
      status_(open_file(paths.proc + "/" + paths.process + "/status")),
      meminfo_(open_file(paths.proc + "/meminfo")),
      pressure_(open_file(paths.proc + "/pressure/memory")),
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
      kept.swap_limit = limit.starts_with("max") ? kMostBytes : parse_number(limit).value_or(0);
      kept.pressure = open_file(group.directory + "/memory.pressure");
    } else {
      kept.swap_usage = open_file(group.directory + "/memory.memsw.usage_in_bytes");
      const std::string limit = read_text_file(group.directory + "/memory.memsw.limit_in_bytes").value_or("");
      kept.swap_limit = parse_number(limit).value_or(kMostBytes);
    }
    if (kept.usage) groups_.push_back(std::move(kept));
  }
}

std::optional<MemoryProbe::Left> MemoryProbe::left_in(const Group& group, int64_t swap_free) const {
  std::array<char, 64> short_text;
  const std::optional<int64_t> usage = parse_number(read_again(group.usage, short_text));
  if (!usage) return std::nullopt;
  std::array<char, 8192> text;
  const std::string_view stat = read_again(group.stat, text);
  // Pages of files, even those in use, go before anybody is killed. But without the code that runs everything crawls:
  // what is mapped stays, up to a sixteenth, for a large file that is mapped can go.
  const auto bytes = [&](const char* key) {
    return std::clamp<int64_t>(find_number(stat, key).value_or(0), 0, kMostBytes);
  };
  int64_t reclaimable = group.v2 ? bytes("inactive_file") + bytes("active_file")
                                 : bytes("total_inactive_file") + bytes("total_active_file");
  const int64_t mapped = group.v2 ? bytes("file_mapped") : bytes("total_mapped_file");
  reclaimable = std::max<int64_t>(reclaimable - std::min(mapped, group.limit / 16), 0);
  int64_t left = group.limit - std::max<int64_t>(*usage - reclaimable, 0);
  int64_t swap = 0;
  if (swap_free > 0) {
    const int64_t swapped = parse_number(read_again(group.swap_usage, short_text)).value_or(0);
    if (group.v2) {
      swap = std::clamp<int64_t>(group.swap_limit - swapped, 0, swap_free);
      left += swap;
    } else {
      const int64_t both = group.swap_limit - std::max<int64_t>(swapped - reclaimable, 0);
      swap = std::clamp<int64_t>(both - left, 0, swap_free);
      left = std::min(left + swap_free, both);
    }
  }
  return Left{std::max<int64_t>(left, 0), swap};
}

MemorySample MemoryProbe::sample() const {
  MemorySample sample;
  int64_t mapped = 0;
  std::array<char, 256> statm;
  std::string_view fields = read_again(statm_, statm);  // size resident shared text lib data dirty, in pages
  for (int field = 0; field < 6 && !fields.empty(); ++field) {
    const int64_t bytes = std::min(parse_number(fields).value_or(0), kMostBytes / page_bytes_) * page_bytes_;
    if (field == 0) mapped = bytes;
    if (field == 1) sample.resident = bytes;
    if (field == 5) sample.data = bytes;
    fields.remove_prefix(std::min(fields.find(' '), fields.size()));
    fields.remove_prefix(std::min<size_t>(1, fields.size()));
  }
  sample.limit_left = limit_left(mapped, sample.data);
  std::array<char, 4096> meminfo;
  const std::string_view machine = read_again(meminfo_, meminfo);
  sample.swap_free = kib(machine, "SwapFree");
  sample.capacity = kib(machine, "MemTotal") + kib(machine, "SwapTotal");
  sample.available = std::min(kib(machine, "MemAvailable") + sample.swap_free, sample.capacity);
  const int64_t machine_swap = sample.swap_free;
  for (const Group& group : groups_) {
    const std::optional<Left> left = left_in(group, machine_swap);
    if (!left) continue;
    sample.swap_free = std::min(sample.swap_free, left->swap);
    if (sample.capacity > 0 && left->bytes >= sample.available) continue;
    sample.available = left->bytes;
    sample.capacity = std::max(group.limit, left->bytes);
    sample.container = true;
  }
  return sample;
}

int64_t MemoryProbe::stalled_us() const {
  const Descriptor* file = groups_.empty() ? &pressure_ : nullptr;  // the machine's says nothing about a container
  for (const Group& group : groups_) {
    if (group.pressure) file = &group.pressure;
  }
  if (file == nullptr) return -1;
  std::array<char, 512> buffer;
  const std::string_view text = read_again(*file, buffer);  // "full avg10=0.00 avg60=0.00 avg300=0.00 total=0"
  const size_t full = text.find("full ");
  const size_t total = full == std::string_view::npos ? full : text.find("total=", full);
  return total == std::string_view::npos ? -1 : parse_number(text.substr(total + 6)).value_or(-1);
}

int64_t MemoryProbe::high_water() const {
  std::array<char, 4096> text;
  return kib(read_again(status_, text), "VmHWM");
}

}  // namespace leadline::guard
