// SPDX-License-Identifier: Apache-2.0
// How much memory the machine and its limits leave, and the default budget made from it.
#include "core/memory_limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "core/error.h"

namespace leadline {
namespace {

std::optional<int64_t> soft_limit(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  constexpr rlim_t kLargest = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::min(limit.rlim_cur, kLargest));
}

/// The "kB" (1024 bytes) value of a line of /proc text, in bytes.
std::optional<int64_t> find_kib(const std::optional<std::string>& text, std::string_view key) {
  if (!text) return std::nullopt;
  const std::optional<int64_t> kib = find_number(*text, key);
  if (!kib || *kib < 0 || *kib > std::numeric_limits<int64_t>::max() / 1024) return std::nullopt;
  return *kib * 1024;
}

int64_t left_of(std::optional<int64_t> limit, std::optional<int64_t> used) {
  if (!limit) return -1;
  return std::max<int64_t>(*limit - used.value_or(0), 0);
}

}  // namespace

int64_t MemoryLimits::available() const noexcept {
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (const int64_t bytes : {machine_available, cgroup_available, rlimit_as, rlimit_data}) {
    if (bytes >= 0) smallest = std::min(smallest, bytes);
  }
  return smallest;
}

MemoryLimits read_memory_limits(const SystemPaths& paths, const ResourceLimits& limits) {
  const std::optional<std::string> status = read_text_file(paths.proc + "/self/status");
  MemoryLimits result;
  result.machine_available = find_kib(read_text_file(paths.proc + "/meminfo"), "MemAvailable").value_or(-1);
  result.cgroup_available = cgroup_memory_available(paths).value_or(-1);
  result.rlimit_as = left_of(limits.address_space, find_kib(status, "VmSize"));
  result.rlimit_data = left_of(limits.data, find_kib(status, "VmData"));
  return result;
}

MemoryLimits read_memory_limits() {
  return read_memory_limits(SystemPaths{}, {.address_space = soft_limit(RLIMIT_AS), .data = soft_limit(RLIMIT_DATA)});
}

std::shared_ptr<Budget> Budget::machine_default() {
  const char* const wanted = std::getenv("LEADLINE_MEMORY");
  if (wanted != nullptr && *wanted != '\0') {
    try {
      return with_limit(std::string_view(wanted));
    } catch (const Error& error) {
      fail(error.code(), "environment variable LEADLINE_MEMORY: {}", error.what());
    }
  }
  const int64_t available = read_memory_limits().available();
  return with_limit(available - available / 10);
}

}  // namespace leadline
