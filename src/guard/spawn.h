// SPDX-License-Identifier: Apache-2.0
// Starts a fresh program with what posix_spawn cannot give it: limits, a control group, a parent whose end is its own.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "io/descriptor.h"
#include "leadline/guard/process_report.h"

namespace leadline::guard {

struct SpawnRequest {
  std::vector<std::string> command;
  std::vector<std::string> environment;
  std::vector<int> inherited;
  GuardLimits limits;
  bool own_session = true;
  int cgroup_procs = -1;  ///< the group to join; -1: none
};

struct Spawned {
  pid_t pid = -1;
  Descriptor output;  ///< reading ends of its standard output and standard error; they do not block
  Descriptor errors;
  bool in_cgroup = false;
};

/// The child is killed when the calling THREAD ends. Throws Error(kIo) when the program cannot be started.
Spawned spawn(const SpawnRequest& request);

/// RLIMIT_DATA for a tree that may have `memory` resident bytes: more, for much that a process maps is never touched
/// (stacks of threads, arenas). It is there to refuse a far too large allocation at once, with a MemoryError that the
/// program can handle; the samples keep the limit itself. RLIMIT_AS would refuse address space that is never used.
int64_t data_limit(int64_t memory);

}  // namespace leadline::guard
