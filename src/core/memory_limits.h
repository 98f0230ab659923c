// SPDX-License-Identifier: Apache-2.0
// The part of read_memory_limits() that tests can feed.
#pragma once

#include <cstdint>
#include <optional>

#include "core/cgroup.h"
#include "leadline/budget.h"

namespace leadline {

/// Soft resource limits in bytes; nothing where there is none.
struct ResourceLimits {
  std::optional<int64_t> address_space = std::nullopt;  // RLIMIT_AS
  std::optional<int64_t> data = std::nullopt;           // RLIMIT_DATA
};

MemoryLimits read_memory_limits(const SystemPaths& paths, const ResourceLimits& limits);

}  // namespace leadline
