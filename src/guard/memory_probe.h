// SPDX-License-Identifier: Apache-2.0
// How much memory there is and who has it, read often and cheaply: files stay open, nothing is allocated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cgroup.h"
#include "io/descriptor.h"
#include "leadline/guard/watch_report.h"

namespace leadline::guard {

class MemoryProbe {
 public:
  explicit MemoryProbe(const SystemPaths& paths);

  /// `seconds` and `accounted` are left to the caller.
  MemorySample sample() const;
  /// The most resident bytes that the process ever had; 0: unknown.
  int64_t high_water() const;
  /// Microseconds in which every process of the container, else of the machine, waited for memory (PSI); -1: unknown.
  int64_t stalled_us() const;

 private:
  struct Group {
    bool v2 = false;
    int64_t limit = 0;
    Descriptor usage;
    Descriptor stat;
    Descriptor swap_usage;  // v2: of swap alone; v1: of memory and swap together
    int64_t swap_limit = 0;
    Descriptor pressure;  // v2
  };

  struct Left {
    int64_t bytes = 0;  // with the swap that is in it
    int64_t swap = 0;
  };

  std::optional<Left> left_in(const Group& group, int64_t swap_free) const;

  Descriptor statm_;
  Descriptor status_;
  Descriptor meminfo_;
  Descriptor pressure_;
  std::vector<Group> groups_;  // those with limits
  int64_t page_bytes_ = 4096;
};

}  // namespace leadline::guard
