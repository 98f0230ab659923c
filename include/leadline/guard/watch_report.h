// SPDX-License-Identifier: Apache-2.0
// What a watch sees: plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leadline::guard {

/// Memory at one moment, in bytes.
struct MemorySample {
  double seconds = 0.0;     ///< since the watch began
  int64_t resident = 0;     ///< of this process
  int64_t data = 0;         ///< private writable memory that it has mapped, touched or not
  int64_t capacity = 0;     ///< what the container, else the machine, can give in all, swap included; 0: unknown
  int64_t available = 0;    ///< what of that is left; file pages that the kernel can take back count as left
  int64_t swap_free = 0;    ///< of the machine, that this process may use
  bool container = false;   ///< capacity is the limit of a control group
  int64_t accounted = 0;    ///< charged to Leadline's budgets
  int64_t limit_left = -1;  ///< address space or data that RLIMIT_AS and RLIMIT_DATA leave; -1: no such limit
  int64_t promised = 0;     ///< given to Python and numpy, but not touched yet: it will be taken from what is available
  int64_t workers = 0;      ///< resident bytes of the processes that this one started
  int worker_count = 0;
  int64_t neighbours = 0;  ///< resident bytes of the other processes of the container
  double pressure = 0.0;   ///< part of the time since the sample before in which all waited for memory (PSI)

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

/// An allocation of Python or numpy that was refused because it would have ended in the OOM killer.
struct Refusal {
  int64_t count = 0;  ///< of refusals so far; 0: none, and nothing else is known
  double seconds_ago = 0.0;
  int64_t requested = 0;  ///< bytes
  int64_t left = 0;       ///< that could still be given: available, less what is promised and the reserve
  int64_t available = 0;
  int64_t promised = 0;
  int64_t reserve = 0;  ///< kept for tracebacks, reports and the front end
  int64_t resident = 0;
  int64_t capacity = 0;
  bool own_limit = false;      ///< the limit is the one of this process's memory that was given to the watch
  bool process_limit = false;  ///< RLIMIT_AS or RLIMIT_DATA
  bool container = false;
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
  bool warning = false;       ///< others made memory grow, not this process: nothing is to be stopped here
  bool by_pressure = false;   ///< the fill level is not reached, but the machine hardly does anything else than reclaim
  int thread = 0;             ///< the kernel's number of the thread that grew most lately; 0: unknown
  int64_t worker_growth = 0;  ///< of the processes that this one started
};

}  // namespace leadline::guard
