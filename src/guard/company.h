// SPDX-License-Identifier: Apache-2.0
// Who else takes memory here: the processes that this one started (workers) and the others of the container
// (neighbours).
#pragma once

#include <cstdint>
#include <string>

#include "core/cgroup.h"

namespace leadline::guard {

struct Company {
  int64_t workers = 0;  // resident bytes, without pages of files
  int worker_count = 0;
  int64_t neighbours = 0;
};

class CompanyProbe {
 public:
  explicit CompanyProbe(const SystemPaths& paths);

  /// Reads a few files of each process: some tenths of a millisecond.
  Company look() const;
  /// Where somebody has to be killed, it shall be a worker and not the process that has the variables: after a fork
  /// both look alike to the OOM killer. Workers whose score was changed by somebody are left as they are.
  static void offer_workers();
  /// Whether there are children at all, which is cheap to find out.
  static bool has_children();

 private:
  std::string members_;  // the list of processes in the group whose limit counts; empty: none
};

}  // namespace leadline::guard
