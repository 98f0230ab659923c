// SPDX-License-Identifier: Apache-2.0
// A process seen from outside: what a parent can tell of its child's memory before it is gone.
#include <string>
#include <vector>

#include "core/cgroup.h"
#include "guard/flight_recorder.h"
#include "guard/memory_probe.h"
#include "leadline/guard/postmortem.h"

namespace leadline::guard {

ProcessLook look_at_process(int pid) {
  SystemPaths paths;
  paths.process = std::to_string(pid);
  ProcessLook look;
  const MemoryProbe probe(paths);
  const MemorySample sample = probe.sample();
  look.resident = sample.resident;
  look.peak_resident = probe.high_water();
  look.used = sample.used();
  look.capacity = sample.capacity;
  look.container = sample.container;
  look.machine_oom_kills = machine_oom_kills(paths.proc);
  const std::vector<MemoryGroup> groups = memory_groups(paths);
  if (groups.empty()) return look;
  look.cgroup = groups.back().directory;
  look.cgroup_v2 = groups.back().v2;
  look.group_oom_kills = oom_kills(groups.back()).value_or(-1);
  return look;
}

}  // namespace leadline::guard
