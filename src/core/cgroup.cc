// SPDX-License-Identifier: Apache-2.0
// Reads limits of control groups. A file that is missing or malformed is a limit that does not exist.
#include "core/cgroup.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <vector>

namespace leadline {
namespace {

struct Group {
  std::string directory;
  bool v2;
};

std::string_view next_field(std::string_view& text, char separator) {
  const size_t size = std::min(text.find(separator), text.size());
  const std::string_view field = text.substr(0, size);
  text.remove_prefix(std::min(size + 1, text.size()));
  return field;
}

bool names_controller(std::string_view list, std::string_view controller) {
  while (!list.empty()) {
    if (next_field(list, ',') == controller) return true;
  }
  return false;
}

/// Adds the groups from `path` up to the root of a hierarchy mounted at `mount`. In a container the mount often
/// shows only the container's own part: directories that do not exist are skipped by their readers, and the
/// mount point itself is then the container's group.
void add_ancestry(const std::string& mount, std::string_view path, bool v2, std::vector<Group>& groups) {
  std::vector<std::string> directories = {mount};
  while (!path.empty()) {
    const std::string_view name = next_field(path, '/');
    // "/../x" is how a group outside the process's cgroup namespace is shown; it cannot be reached from here.
    if (name.empty() || name == "." || name == "..") continue;
    directories.push_back(directories.back() + "/" + std::string(name));
  }
  for (std::string& directory : directories) groups.push_back({std::move(directory), v2});
}

std::vector<Group> groups_with(const SystemPaths& paths, std::string_view controller) {
  std::vector<Group> groups;
  const std::optional<std::string> memberships = read_text_file(paths.proc + "/" + paths.process + "/cgroup");
  if (!memberships) return groups;
  std::string_view rest = *memberships;
  while (!rest.empty()) {
    std::string_view line = next_field(rest, '\n');  // "hierarchy:controllers:path"; v2 has no controllers
    const std::string_view hierarchy = next_field(line, ':');
    const std::string_view controllers = next_field(line, ':');
    if (hierarchy == "0" && controllers.empty()) {
      add_ancestry(paths.cgroup, line, true, groups);
      add_ancestry(paths.cgroup + "/unified", line, true, groups);
    } else if (names_controller(controllers, controller)) {
      add_ancestry(paths.cgroup + "/" + std::string(controller), line, false, groups);
      if (controllers != controller) add_ancestry(paths.cgroup + "/" + std::string(controllers), line, false, groups);
    }
  }
  return groups;
}

std::optional<int64_t> parse_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

/// Nothing for a missing file, for "max" and for the huge number by which v1 says "no limit".
std::optional<int64_t> read_limit(const std::string& path) {
  constexpr int64_t kUnlimitedFrom = int64_t{1} << 62;
  const std::optional<std::string> text = read_text_file(path);
  if (!text) return std::nullopt;
  const std::optional<int64_t> value = parse_number(*text);
  return value && *value >= 0 && *value < kUnlimitedFrom ? value : std::nullopt;
}

template <typename T>
void keep_smallest(std::optional<T>& smallest, std::optional<T> value) {
  if (value && (!smallest || *value < *smallest)) smallest = value;
}

std::optional<int64_t> memory_limit(const Group& group) {
  std::optional<int64_t> limit = read_limit(group.directory + (group.v2 ? "/memory.max" : "/memory.limit_in_bytes"));
  // Beyond memory.high nothing is killed, but the kernel slows the group down to a near standstill.
  if (group.v2) keep_smallest(limit, read_limit(group.directory + "/memory.high"));
  return limit;
}

std::optional<int64_t> memory_left(const Group& group) {
  const std::optional<int64_t> limit = memory_limit(group);
  if (!limit) return std::nullopt;
  const std::string usage_file = group.directory + (group.v2 ? "/memory.current" : "/memory.usage_in_bytes");
  int64_t used = read_limit(usage_file).value_or(0);
  if (const std::optional<std::string> stat = read_text_file(group.directory + "/memory.stat")) {
    const std::optional<int64_t> reclaimable = find_number(*stat, group.v2 ? "inactive_file" : "total_inactive_file");
    used -= std::clamp<int64_t>(reclaimable.value_or(0), 0, used);
  }
  return std::max<int64_t>(*limit - used, 0);
}

std::optional<double> cpus_allowed(const Group& group) {
  std::optional<int64_t> quota;
  std::optional<int64_t> period;
  if (group.v2) {
    const std::optional<std::string> text = read_text_file(group.directory + "/cpu.max");  // "quota period"
    if (!text) return std::nullopt;
    std::string_view rest = *text;
    quota = parse_number(next_field(rest, ' '));
    period = parse_number(rest);
  } else {
    quota = read_limit(group.directory + "/cpu.cfs_quota_us");
    period = read_limit(group.directory + "/cpu.cfs_period_us");
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace

std::optional<std::string> read_text_file(const std::string& path) {
  // Not a stream: iterators of one throw when a read fails, as it does for a process that ends meanwhile.
  constexpr size_t kMost = size_t{16} << 20;  // what the kernel writes is small
  struct Closing {
    ~Closing() { close(descriptor); }
    const int descriptor;
  };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  const Closing closing{file};
  std::string text;
  std::array<char, 4096> piece;
  ssize_t size = 0;
  do {
    size = read(file, piece.data(), piece.size());
    if (size > 0) text.append(piece.data(), static_cast<size_t>(size));
  } while ((size > 0 && text.size() < kMost) || (size < 0 && errno == EINTR));
  if (size < 0) return std::nullopt;
  return text;
}

std::optional<int64_t> find_number(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = next_field(text, '\n');
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    if (line.starts_with(':') || line.starts_with(' ')) return parse_number(line.substr(1));
  }
  return std::nullopt;
}

std::vector<MemoryGroup> memory_groups(const SystemPaths& paths) {
  std::vector<MemoryGroup> result;
  for (const Group& group : groups_with(paths, "memory")) {
    if (!read_text_file(group.directory + "/memory.stat")) continue;  // not there, or without the controller
    result.push_back({group.directory, group.v2, memory_limit(group)});
  }
  return result;
}

std::optional<int64_t> oom_kills(const MemoryGroup& group) {
  const std::optional<std::string> text =
      read_text_file(group.directory + (group.v2 ? "/memory.events" : "/memory.oom_control"));
  return text ? find_number(*text, "oom_kill") : std::nullopt;
}

std::optional<int64_t> cgroup_memory_available(const SystemPaths& paths) {
  std::optional<int64_t> smallest;
  for (const Group& group : groups_with(paths, "memory")) keep_smallest(smallest, memory_left(group));
  return smallest;
}

std::optional<double> cgroup_cpu_quota(const SystemPaths& paths) {
  std::optional<double> smallest;
  for (const Group& group : groups_with(paths, "cpu")) keep_smallest(smallest, cpus_allowed(group));
  return smallest;
}

}  // namespace leadline
