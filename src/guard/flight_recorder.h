// SPDX-License-Identifier: Apache-2.0
// Writes this process's flight: a mapped file, which the kernel keeps when the process is killed. There is one for the
// life of the process; it stays mapped, so that a node that runs or a handler that was called can always write.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "guard/flight_folder.h"
#include "guard/flight_format.h"
#include "io/mapping_watch.h"
#include "leadline/guard/watch_report.h"

namespace leadline::guard {

using FactList = std::vector<std::pair<std::string, std::string>>;

class FlightRecorder {
 public:
  /// The one of this process.
  static FlightRecorder& instance();

  /// Makes the file, or continues the existing one. False when none can be made. An empty folder: the usual.
  bool open(const std::string& folder);
  /// Nodes are noted from now on, or no longer.
  void follow_ops(bool follow);

  void write_facts(const FactList& facts);
  void write_sample(const MemorySample& sample);
  void write_event(flight::EventKind kind, int number, int64_t value, std::string_view text);

  /// For the crash handler: null without a recorder and in forked children. Async-signal-safe, as is finish_crash().
  flight::Crash* crash();
  static void finish_crash(flight::Crash& crash);
  /// Moves the file's position to where Python's stack belongs. Async-signal-safe.
  void seek_python_stack() const;

  bool active() const { return mapping_.load(std::memory_order_acquire) != nullptr; }
  std::string path() const { return active() ? file_.path : ""; }
  int descriptor() const { return active() ? file_.descriptor.get() : -1; }

 private:
  FlightRecorder() = default;
  bool make_file(const std::string& folder);
  void write_header(std::byte* mapping);
  template <typename Record>
  Record* record(size_t offset, size_t index) const;
  static void leave_in_child();

  std::atomic<std::byte*> mapping_ = nullptr;    // null: none, or of the parent
  const MappingWatch* mapping_watch_ = nullptr;  // never destroyed, like the mapping
  std::mutex mutex_;
  FlightFile file_;
  uint64_t facts_ = 0;
  uint64_t samples_ = 0;
  uint64_t events_ = 0;
  flight::FlightSample last_kept_;
};

/// CLOCK_BOOTTIME, which runs on while the machine sleeps. Async-signal-safe.
int64_t flight_clock_ns();

/// Field 22 of /proc/PID/stat: with the pid it names one process until the machine restarts. 0: unknown or a zombie.
uint64_t process_start_ticks(const std::string& proc, int pid);

/// /proc/sys/kernel/random/boot_id.
std::string read_boot_id(const std::string& proc);
/// The inode of /proc/self/ns/pid; 0: unknown.
uint64_t pid_namespace(const std::string& proc);
/// OOM kills on the whole machine since it started; -1: unknown.
int64_t machine_oom_kills(const std::string& proc);

}  // namespace leadline::guard
