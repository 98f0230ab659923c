// SPDX-License-Identifier: Apache-2.0
// What the control groups (v1 and v2) of this process leave to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leadline {

/// Where the kernel's files are; tests point it at trees of their own.
struct SystemPaths {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
  std::string process = "self";  ///< whose files in `proc`: a number, or "self"
};

/// The file's text, or nothing when it cannot be read.
std::optional<std::string> read_text_file(const std::string& path);

/// The integer behind `key` in text of lines "key value" or "key:  value ...".
std::optional<int64_t> find_number(std::string_view text, std::string_view key);

/// A control group of this process that has a memory controller.
struct MemoryGroup {
  std::string directory;
  bool v2 = false;
  std::optional<int64_t> limit = std::nullopt;  ///< nothing: no limit of its own
};

/// From the root of each hierarchy to the process's own group, which comes last.
std::vector<MemoryGroup> memory_groups(const SystemPaths& paths);

/// Processes of the group that OOM killers have killed so far.
std::optional<int64_t> oom_kills(const MemoryGroup& group);

/// Bytes that can still be taken before a memory limit is met: the smallest limit - usage from the process's
/// group up to the root, where inactive file pages, which the kernel takes back first, count as free.
/// Nothing without a limit.
std::optional<int64_t> cgroup_memory_available(const SystemPaths& paths);

/// CPUs' worth of time that the quotas allow, the smallest along the hierarchy. Nothing without a quota.
std::optional<double> cgroup_cpu_quota(const SystemPaths& paths);

}  // namespace leadline
