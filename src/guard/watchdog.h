// SPDX-License-Identifier: Apache-2.0
// The thread that samples memory, reports when it comes near a limit, and feeds the flight recorder.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "guard/company.h"
#include "guard/data_limit.h"
#include "guard/flight_recorder.h"
#include "guard/memory_probe.h"
#include "guard/rescue.h"
#include "guard/thread_faults.h"
#include "guard/watch_rule.h"

namespace leadline::guard {

struct WatchdogOptions {
  double fraction = 0.92;
  int64_t resident_limit = 0;
  bool refuse_large = true;
  bool refuse_native = false;
  bool cells_only = false;
  std::function<bool(const WatchAlarm&)> on_alarm = {};
  std::function<void()> on_emergency = {};
  int pause_signal = 0;
  bool (*may_stop)() = nullptr;
  bool (*save_in_copy)() = nullptr;
  FlightRecorder* recorder = nullptr;  // null: none
  SystemPaths paths = {};
};

/// Members may be called from any thread. In a forked child, where there is no thread, they do nothing.
class Watchdog {
 public:
  explicit Watchdog(WatchdogOptions options);
  ~Watchdog() { stop(); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void stop();
  void begin_cell(int number, const std::string& first_line);
  CellReport end_cell();
  bool busy() const;
  /// An alarm has reached whom it was for: whatever grows from now on does not listen.
  void note_raised();
  /// An alarm reached nobody who could stop: it comes again.
  void take_back_alarm();

  Rescue& rescue() { return rescue_; }

  MemorySample sample() const;
  std::vector<MemorySample> samples() const;
  std::vector<CellReport> cells() const;
  int64_t alarms() const { return alarms_; }
  double cpu_seconds() const;

 private:
  using Clock = std::chrono::steady_clock;

  bool is_copy() const { return getpid() != owner_; }
  bool busy_locked() const { return !options_.cells_only || cell_.running; }
  bool near_limit() const;
  void run();
  void look();
  void give(WatchAlarm alarm);
  /// Memory that was freed, and that malloc keeps, is no reason for an alarm: it goes back to the system first.
  bool gave_back(const WatchAlarm& alarm);
  void look_at_rescue(const MemorySample& now);
  void add_company(MemorySample& sample, bool now);
  void add_pressure(MemorySample& sample);
  void keep(const MemorySample& sample);
  void move_data_limit(const MemorySample& sample);
  std::chrono::duration<double> pause();

  const WatchdogOptions options_;
  const pid_t owner_ = getpid();
  const Clock::time_point begin_ = Clock::now();
  const MemoryProbe probe_;
  const CompanyProbe company_probe_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool look_now_ = false;
  std::condition_variable looked_;
  int64_t asked_ = 0;     // looks that cells asked for
  int64_t answered_ = 0;  // and that were taken since
  WatchRule rule_;
  CellReport cell_;
  int64_t high_water_before_ = 0;  // of the cell
  Company company_;
  double company_at_ = -1.0;
  std::deque<MemorySample> samples_;
  std::deque<CellReport> cells_;
  std::atomic<int64_t> alarms_ = 0;
  std::atomic<double> cpu_seconds_ = 0.0;

  // Of the thread alone.
  Rescue rescue_;
  ThreadFaultProbe faults_;
  std::vector<ThreadFaults> growing_;  // threads, the fastest first
  double faults_at_ = -1.0;
  double offered_at_ = -1.0;
  int64_t stalled_us_ = -1;
  double stalled_at_ = 0.0;
  double pressure_ = 0.0;
  double trimmed_at_ = -1.0;
  DataLimit data_limit_;
  int64_t episode_limit_ = -1;  // the data limit of an episode; -1: none
  double cost_ = 0.0;           // CPU seconds of a look, lately

  std::unique_ptr<std::thread> thread_;  // leaked in a forked child: it cannot be joined there
};

}  // namespace leadline::guard
