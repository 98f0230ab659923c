// SPDX-License-Identifier: Apache-2.0
// What a watch sees: plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leadline::guard {

/// Memory at one moment, in bytes.
struct MemorySample {
  double seconds = 0.0;    ///< since the watch began
  int64_t resident = 0;    ///< of this process
  int64_t data = 0;        ///< private writable memory that it has mapped, touched or not
  int64_t capacity = 0;    ///< what the container, else the machine, can give in all, swap included; 0: unknown
  int64_t available = 0;   ///< what of that is left; file pages that the kernel can take back count as left
  int64_t swap_free = 0;   ///< of the machine
  bool container = false;  ///< capacity is the limit of a control group
  int64_t accounted = 0;   ///< charged to Leadline's budgets

  int64_t used() const noexcept { return capacity - available; }
};

/// One cell, or one stretch that the caller began and ended.
struct CellReport {
  int number = 0;
  std::string first_line;
  double start_seconds = 0.0;  ///< since the watch began
  double seconds = 0.0;
  int64_t before = 0;  ///< resident bytes at its begin
  int64_t after = 0;
  int64_t peak = 0;  ///< the most that was seen in between
  bool running = false;
};

/// Memory came near a limit while a cell grew.
struct WatchAlarm {
  MemorySample sample;
  int64_t limit = 0;              ///< that was passed, in bytes
  bool own_limit = false;         ///< the limit is one of this process's resident memory; else of container or machine
  int64_t growth = 0;             ///< of this process since `since`, in bytes
  double since = 0.0;             ///< seconds ago: the begin of the cell, or of what is remembered
  double bytes_per_second = 0.0;  ///< lately
  CellReport cell;
};

}  // namespace leadline::guard
