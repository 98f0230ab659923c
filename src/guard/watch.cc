// SPDX-License-Identifier: Apache-2.0
#include "leadline/guard/watch.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string_view>

#include "core/boundary.h"
#include "core/error.h"
#include "guard/allocation_gate.h"
#include "guard/cpu_info.h"
#include "guard/crash_handler.h"
#include "guard/flight_recorder.h"
#include "guard/untrusted_file.h"
#include "guard/watchdog.h"
#include "leadline/budget.h"
#include "leadline/version.h"

namespace leadline::guard {
namespace {

std::atomic<pid_t> watcher = 0;  // the process that has a watch: a forked child may have one of its own

FactList own_facts() {
  const SystemPaths paths;
  std::string command = read_start(paths.proc + "/self/cmdline", 2000).value_or("");
  std::replace(command.begin(), command.end(), '\0', ' ');
  while (command.ends_with(' ')) command.pop_back();
  char folder[PATH_MAX];
  std::string features;
  for (const std::string& feature : numeric_features(read_cpu_info(paths))) features += feature + " ";
  FactList facts = {{"command", command},
                    {"folder", getcwd(folder, sizeof folder) != nullptr ? folder : ""},
                    {"leadline", kVersion},
                    {"cpu", read_cpu_info(paths).model},
                    {"cpu_features", features}};
  if (const std::vector<MemoryGroup> groups = memory_groups(paths); !groups.empty()) {
    facts.emplace_back("cgroup", groups.back().directory);
    facts.emplace_back("cgroup_version", groups.back().v2 ? "2" : "1");
  }
  const MemoryLimits limits = read_memory_limits();
  if (limits.rlimit_as >= 0) facts.emplace_back("rlimit_as_left", std::to_string(limits.rlimit_as));
  if (limits.rlimit_data >= 0) facts.emplace_back("rlimit_data_left", std::to_string(limits.rlimit_data));
  return facts;
}

}  // namespace

class Watch::Impl {
 public:
  explicit Impl(WatchOptions options) : options_(std::move(options)) {
    if (options_.recorder && FlightRecorder::instance().open(options_.folder)) {
      recorder_ = &FlightRecorder::instance();
      base_facts_ = own_facts();
      set_facts(options_.facts);
      recorder_->write_event(flight::EventKind::kResume, 0, options_.resident_limit, "");
      recorder_->follow_ops(true);
      if (options_.signals) install_crash_handler(options_.python_stack_signal);
    }
    watchdog_ = std::make_unique<Watchdog>(WatchdogOptions{.fraction = options_.fraction,
                                                           .resident_limit = options_.resident_limit,
                                                           .refuse_large = options_.refuse_large,
                                                           .refuse_native = options_.refuse_native,
                                                           .cells_only = options_.cells_only,
                                                           .on_alarm = options_.on_alarm,
                                                           .on_emergency = options_.on_emergency,
                                                           .pause_signal = options_.pause_signal,
                                                           .may_stop = options_.may_stop,
                                                           .save_in_copy = options_.save_in_copy,
                                                           .recorder = recorder_});
  }

  void stop(flight::EventKind why, const std::string& last_words) {
    if (stopped_.exchange(true)) return;
    watchdog_->stop();
    if (is_copy()) return;
    if (recorder_ != nullptr) {
      recorder_->follow_ops(false);
      // What happens after the last word at an exit (destructors of libraries) can still crash.
      if (options_.signals && why != flight::EventKind::kExit) remove_crash_handler();
      recorder_->write_event(why, 0, 0, last_words);
    }
    watcher = 0;
  }

  void set_facts(const FactList& facts) {
    if (recorder_ == nullptr) return;
    FactList all = base_facts_;
    all.insert(all.end(), facts.begin(), facts.end());
    recorder_->write_facts(all);
  }

  /// Whether this is a forked child's copy, whose threads are in another process.
  bool is_copy() const { return getpid() != owner_; }
  Watchdog& watchdog() { return *watchdog_; }
  FlightRecorder* recorder() { return recorder_; }

 private:
  const WatchOptions options_;
  const pid_t owner_ = getpid();
  FlightRecorder* recorder_ = nullptr;
  FactList base_facts_;
  std::unique_ptr<Watchdog> watchdog_;
  std::atomic<bool> stopped_ = false;
};

Watch::Watch(WatchOptions options) try {
  require(std::isfinite(options.fraction) && options.fraction >= 0 && options.fraction <= 1,
          ErrorCode::kInvalidArgument, "the limit of a watch is a part of memory from 0 to 1, got {}",
          options.fraction);
  require(options.resident_limit >= 0, ErrorCode::kInvalidArgument, "the limit of a watch cannot be negative, got {}",
          options.resident_limit);
  require(watcher.exchange(getpid()) != getpid(), ErrorCode::kInvalidArgument,
          "this process has a watch already; stop that first");
  try {
    impl_ = std::make_unique<Impl>(std::move(options));
  } catch (...) {
    watcher = 0;
    throw;
  }
} catch (...) {
  rethrow_as_error();
}

Watch::~Watch() {
  stop();
  // The condition variables of a copy have waiters that do not exist here: destroying them would wait for ever.
  if (impl_->is_copy()) (void)impl_.release();
}

void Watch::stop() { impl_->stop(flight::EventKind::kStop, ""); }
void Watch::stop_at_exit(const std::string& last_words) { impl_->stop(flight::EventKind::kExit, last_words); }
void Watch::begin_cell(int number, const std::string& first_line) try {
  impl_->watchdog().begin_cell(number, first_line);
} catch (...) {
  rethrow_as_error();
}
CellReport Watch::end_cell() try { return impl_->watchdog().end_cell(); } catch (...) {
  rethrow_as_error();
}
bool Watch::busy() const { return impl_->watchdog().busy(); }
void Watch::note_raised() { impl_->watchdog().note_raised(); }
void Watch::note_heard() {
  gate::begin_cell();  // what is taken from now on is for the report
  impl_->watchdog().rescue().heard();
}
bool Watch::saving() { return impl_->watchdog().rescue().saving(); }
void Watch::saved(const std::string& path) {
  if (FlightRecorder* const recorder = impl_->recorder(); recorder != nullptr && !path.empty()) {
    recorder->write_event(flight::EventKind::kSaved, 0, 0, path);
  }
  impl_->watchdog().rescue().saved();
}
void Watch::take_back_alarm() { impl_->watchdog().take_back_alarm(); }

void Watch::set_facts(const std::vector<std::pair<std::string, std::string>>& facts) try {
  impl_->set_facts(facts);
} catch (...) {
  rethrow_as_error();
}
MemorySample Watch::sample() const try { return impl_->watchdog().sample(); } catch (...) {
  rethrow_as_error();
}
std::vector<MemorySample> Watch::samples() const try { return impl_->watchdog().samples(); } catch (...) {
  rethrow_as_error();
}
std::vector<CellReport> Watch::cells() const try { return impl_->watchdog().cells(); } catch (...) {
  rethrow_as_error();
}
int64_t Watch::alarms() const { return impl_->watchdog().alarms(); }
double Watch::cpu_seconds() const { return impl_->watchdog().cpu_seconds(); }
std::string Watch::recorder_path() const try {
  return impl_->recorder() != nullptr ? impl_->recorder()->path() : "";
} catch (...) {
  rethrow_as_error();
}
int Watch::recorder_descriptor() const { return impl_->recorder() != nullptr ? impl_->recorder()->descriptor() : -1; }

}  // namespace leadline::guard
