// SPDX-License-Identifier: Apache-2.0
// The thread that cares for a guarded process: it starts it, samples its tree, keeps its limits, reaps it and says how
// it ended. It lives as long as the child does, for the child dies with the thread that started it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "guard/advice.h"
#include "guard/cgroup_scope.h"
#include "guard/process_tree.h"
#include "guard/spawn.h"
#include "io/descriptor.h"
#include "leadline/guard/process_report.h"

namespace leadline::guard {

struct SupervisorOptions {
  SpawnRequest request;
  bool adopt_orphans = false;
  int stack_signal = 0;
};

class Supervisor {
 public:
  /// Returns when the program runs. Throws Error(kIo) when it cannot be started.
  explicit Supervisor(SupervisorOptions options);
  /// Kills the tree.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  pid_t pid() const { return pid_; }
  int output() const { return child_.output.get(); }
  int errors() const { return child_.errors.get(); }
  void close_output() { child_.output.close(); }
  void close_errors() { child_.errors.close(); }
  /// Readable once the process is gone.
  int end_event() const { return end_event_.get(); }

  void start_call(double timeout_seconds);
  bool end_call();
  void send_signal(int signal, bool group);
  void kill(GuardCause cause);
  int64_t resident_bytes() const;
  int processes() const;
  /// Without last lines, summary and advice; these are for explain().
  GuardReport report() const;
  Circumstances circumstances() const;

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  bool start();
  void watch();
  int milliseconds_to_next_sample() const;
  bool has_ended() const;
  void sample();
  std::optional<GuardCause> check_limits();
  void kill_tree(GuardCause cause);
  void finish();
  void note_usage(int64_t most_resident);
  void wake() const;

  const SupervisorOptions options_;
  const pid_t owner_ = getpid();  // a copy of this object in a forked process is dead weight
  std::string marker_;
  std::unique_ptr<CgroupScope> cgroup_;  // null: there is none
  Spawned child_;
  pid_t pid_ = -1;
  Descriptor process_;  // pidfd; none where the kernel has none
  Descriptor wake_event_;
  Descriptor end_event_;
  int64_t machine_oom_kills_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool started_ = false;
  std::exception_ptr start_error_;
  bool ended_ = false;
  bool in_call_ = true;
  Clock::time_point call_start_ = Clock::now();
  double timeout_ = 0.0;
  std::optional<GuardCause> wanted_;  // why it is to be killed: the caller's wish or a limit
  bool killed_ = false;               // the guard did kill it
  std::vector<Process> known_;        // the tree as it was last seen; of the thread alone
  int64_t resident_ = 0;
  int64_t processes_ = 0;
  int64_t peak_ = 0;
  int samples_ = 0;               // in this call
  bool high_water_fresh_ = true;  // the kernel's own peak is of this call
  /// Most that the child had before this call, or this process before the child: what its resource usage may be of.
  int64_t earlier_peak_ = 0;
  GuardReport result_;
  Circumstances circumstances_;

  std::thread thread_;
};

}  // namespace leadline::guard
