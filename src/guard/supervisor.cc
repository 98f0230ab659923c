// SPDX-License-Identifier: Apache-2.0
#include "guard/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <iterator>
#include <system_error>
#include <utility>

#include "core/cgroup.h"
#include "core/error.h"
#include "guard/process_tree.h"

namespace leadline::guard {
namespace {

constexpr int kIdleMilliseconds = 500;
constexpr int kBusyMilliseconds = 50;
constexpr int kHurriedMilliseconds = 5;
constexpr int kWithoutPidfdMilliseconds = 20;
/// How fast a process can fill memory; it must not get from the last sample to far beyond its limit.
constexpr int64_t kBytesPerMillisecond = 4'000'000;
/// Time for the child's signal handler to write its stack.
constexpr int kStackMilliseconds = 150;

Descriptor make_event() {
  Descriptor event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  require(static_cast<bool>(event), ErrorCode::kIo, "cannot make an event descriptor: no descriptors left");
  return event;
}

int64_t machine_oom_kills() {
  const std::optional<std::string> text = read_text_file("/proc/vmstat");
  return text ? find_number(*text, "oom_kill").value_or(0) : 0;
}

/// Makes the kernel's peak of the process what it has now.
bool reset_high_water(pid_t pid) {
  const Descriptor file(open(fmt::format("/proc/{}/clear_refs", pid).c_str(), O_WRONLY | O_CLOEXEC));
  return file && write(file.get(), "5", 1) == 1;
}

/// A variable of the child's environment, which its descendants inherit: by it they are known when they have left the
/// tree. Each guard has a name of its own, for guards can be nested.
std::string make_marker() {
  static std::atomic<int> count = 0;
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return fmt::format("LEADLINE_GUARD_{}_{}_{}=1", getpid(), now, ++count);
}

/// Runs `work`, which allocates; where there is no memory for it, the caller's process must not end by that.
template <typename Work>
bool survives(Work work) {
  try {
    work();
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

Supervisor::Supervisor(SupervisorOptions options)
    : options_(std::move(options)), marker_(make_marker()), wake_event_(make_event()), end_event_(make_event()) {
  timeout_ = options_.request.limits.timeout_seconds;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    fail(ErrorCode::kIo, "cannot start a thread to guard a process: {}", error.what());
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return started_ || start_error_; });
  if (!start_error_) return;
  lock.unlock();
  thread_.join();
  std::rethrow_exception(start_error_);
}

Supervisor::~Supervisor() {
  if (getpid() != owner_) {  // the thread is in the process that this one was forked from, and so is the child
    thread_.detach();
    return;
  }
  kill(GuardCause::kInterrupt);
  thread_.join();
}

void Supervisor::wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_event_.get(), &one, sizeof one);
}

void Supervisor::start_call(double timeout_seconds) {
  {
    const std::lock_guard lock(mutex_);
    in_call_ = true;
    call_start_ = Clock::now();
    timeout_ = timeout_seconds;
    const ProcessMemory now = ended_ ? ProcessMemory{} : process_memory(pid_).value_or(ProcessMemory{});
    earlier_peak_ = std::max({earlier_peak_, peak_, now.high_water});
    resident_ = now.resident;
    peak_ = now.resident + now.file;
    samples_ = 0;
    high_water_fresh_ = !ended_ && reset_high_water(pid_);
  }
  wake();
}

bool Supervisor::end_call() {
  const std::lock_guard lock(mutex_);
  in_call_ = false;
  if (!ended_ && high_water_fresh_) {
    survives([&] { peak_ = std::max(peak_, process_memory(pid_).value_or(ProcessMemory{}).high_water); });
  }
  return !wanted_;
}

void Supervisor::send_signal(int signal, bool group) {
  const std::lock_guard lock(mutex_);  // the id is the child's as long as it is not reaped
  if (ended_) return;
  if (!group || ::kill(-pid_, signal) != 0) ::kill(pid_, signal);
}

void Supervisor::kill(GuardCause cause) {
  std::unique_lock lock(mutex_);
  if (!wanted_) wanted_ = cause;
  wake();
  changed_.wait(lock, [this] { return ended_; });
}

int64_t Supervisor::resident_bytes() const {
  return has_ended() ? 0 : tree_memory(process_tree(pid_), options_.request.limits.memory_bytes);
}

int Supervisor::processes() const { return has_ended() ? 0 : static_cast<int>(process_tree(pid_).size()); }

bool Supervisor::has_ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

GuardReport Supervisor::report() const {
  const std::lock_guard lock(mutex_);
  GuardReport report = result_;
  report.limits = options_.request.limits;
  report.limits.timeout_seconds = timeout_;
  report.peak_bytes = peak_;
  report.cgroup = child_.in_cgroup;
  if (!ended_) report.seconds = std::chrono::duration<double>(Clock::now() - call_start_).count();
  return report;
}

Circumstances Supervisor::circumstances() const {
  const std::lock_guard lock(mutex_);
  return circumstances_;
}

bool Supervisor::start() {
  try {
    SpawnRequest request = options_.request;
    request.environment.push_back(marker_);
    if (options_.adopt_orphans) prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (std::optional<CgroupScope> group = CgroupScope::make(request.limits, SystemPaths{})) {
      cgroup_ = std::make_unique<CgroupScope>(std::move(*group));
      request.cgroup_procs = cgroup_->procs();
    }
    machine_oom_kills_ = machine_oom_kills();
    // A child begins in this process's memory (vfork), and the kernel counts that as its own.
    earlier_peak_ = process_memory(getpid()).value_or(ProcessMemory{}).high_water;
    child_ = spawn(request);
    if (!child_.in_cgroup) cgroup_.reset();
    process_ = Descriptor(open_pidfd(child_.pid));
  } catch (...) {
    const std::lock_guard lock(mutex_);
    start_error_ = std::current_exception();
    changed_.notify_all();
    return false;
  }
  const std::lock_guard lock(mutex_);
  pid_ = child_.pid;
  started_ = true;
  changed_.notify_all();
  return true;
}

void Supervisor::run() {
  // Signals are for the threads of the program, not for this one.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  if (!start()) return;
  watch();
  finish();
}

int Supervisor::milliseconds_to_next_sample() const {
  const std::lock_guard lock(mutex_);
  int wait = in_call_ ? kBusyMilliseconds : kIdleMilliseconds;
  if (in_call_) wait = std::min(wait, 2 << std::min(samples_, 8));  // short calls have a peak too
  if (const int64_t limit = options_.request.limits.memory_bytes; in_call_ && limit > 0 && !cgroup_) {
    const int64_t reachable = std::max<int64_t>(limit - resident_, 0) / kBytesPerMillisecond;
    wait = static_cast<int>(std::clamp<int64_t>(reachable, kHurriedMilliseconds, wait));
  }
  if (in_call_ && timeout_ > 0) {
    const double left = timeout_ - std::chrono::duration<double>(Clock::now() - call_start_).count();
    wait = static_cast<int>(std::clamp(left * 1000 + 1, 0.0, static_cast<double>(wait)));
  }
  return process_ ? wait : std::min(wait, kWithoutPidfdMilliseconds);
}

/// Until the child is dead, but not reaped: its number stays its own.
void Supervisor::watch() {
  survives([&] { sample(); });  // of a program that is gone at once, this is all
  for (;;) {
    pollfd events[2] = {{wake_event_.get(), POLLIN, 0}, {process_.get(), POLLIN, 0}};
    poll(events, process_ ? 2 : 1, milliseconds_to_next_sample());
    uint64_t ignored = 0;
    [[maybe_unused]] const ssize_t size = read(wake_event_.get(), &ignored, sizeof ignored);

    siginfo_t info{};
    const int found = waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    if ((found == 0 && info.si_pid == pid_) || (found != 0 && errno == ECHILD)) return;
    survives([&] { sample(); });
    if (const std::optional<GuardCause> cause = check_limits()) {
      kill_tree(*cause);
      return;
    }
  }
}

/// One sample.
void Supervisor::sample() {
  const GuardLimits& limits = options_.request.limits;
  std::vector<Process> tree = process_tree(pid_);
  const int64_t resident = cgroup_ ? cgroup_->current_bytes() : tree_memory(tree, limits.memory_bytes);
  std::unique_lock lock(mutex_);
  const int64_t known = peak_;
  const bool fresh = high_water_fresh_;
  lock.unlock();
  int64_t peak = tree_peak(tree, known);
  if (!fresh && tree.size() < 2) peak = 0;  // of an earlier call, perhaps
  lock.lock();
  resident_ = resident;
  processes_ = std::ssize(tree);
  if (!tree.empty()) known_ = std::move(tree);
  ++samples_;
  // Below the limit, pages that processes share may be in `resident` several times.
  peak_ = std::max({peak_, peak, limits.memory_bytes > 0 && resident > limits.memory_bytes ? resident : 0});
}

/// What the kernel says of a child that is gone: the most that it, or one that it waited for, ever had. Before exec it
/// was a copy of this process: what is not more than that is a bound, for one that was gone before anybody looked.
void Supervisor::note_usage(int64_t most_resident) {
  if (most_resident > earlier_peak_ || peak_ == 0) peak_ = std::max(peak_, most_resident);
}

/// The cause to kill the tree for, if there is one.
std::optional<GuardCause> Supervisor::check_limits() {
  const GuardLimits& limits = options_.request.limits;
  const std::lock_guard lock(mutex_);
  if (wanted_) return wanted_;
  if (!cgroup_ && limits.memory_bytes > 0 && resident_ > limits.memory_bytes) return wanted_ = GuardCause::kMemory;
  if (limits.processes > 0 && processes_ > limits.processes) return wanted_ = GuardCause::kProcesses;
  const double seconds = std::chrono::duration<double>(Clock::now() - call_start_).count();
  if (in_call_ && timeout_ > 0 && seconds >= timeout_) return wanted_ = GuardCause::kTimeout;
  return std::nullopt;
}

void Supervisor::kill_tree(GuardCause cause) {
  {
    const std::lock_guard lock(mutex_);
    result_.cause = cause;
    killed_ = true;
  }
  const bool speaks = cause == GuardCause::kMemory || cause == GuardCause::kTimeout || cause == GuardCause::kProcesses;
  if (speaks && options_.stack_signal != 0) {
    ::kill(pid_, options_.stack_signal);
    pollfd event = {process_.get(), POLLIN, 0};
    poll(&event, 1, kStackMilliseconds);
  }
  if (!survives([&] { guard::kill_tree(pid_); })) ::kill(pid_, SIGKILL);
  if (cgroup_) survives([&] { cgroup_->kill_all(); });
}

/// The child is dead or about to be; what it left behind is removed too.
void Supervisor::finish() {
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  int64_t group_peak = 0;
  bool group_oom = false;
  bool group_full = false;
  bool machine_oom = false;
  survives([&] {
    kill_leftovers(options_.request.own_session ? pid_ : 0, marker_, known_);
    machine_oom = machine_oom_kills() > machine_oom_kills_;
    if (!cgroup_) return;
    group_oom = cgroup_->oom_kills() > 0;
    group_full = cgroup_->hit_process_limit();
    if (group_oom) group_peak = cgroup_->peak_bytes();
  });
  cgroup_.reset();

  const std::lock_guard lock(mutex_);
  siginfo_t status{};
  rusage usage{};
  const bool reaped = syscall(SYS_waitid, P_PID, pid_, &status, WEXITED, &usage) == 0;  // glibc's has no usage
  if (reaped) note_usage(int64_t{usage.ru_maxrss} * 1024);
  if (options_.adopt_orphans) survives([] { kill_children(); });
  result_.ended = true;
  result_.seconds = std::chrono::duration<double>(Clock::now() - call_start_).count();
  peak_ = std::max(peak_, group_peak);
  const bool exited = reaped && status.si_code == CLD_EXITED;
  if (exited) result_.exit_code = status.si_status;
  if (reaped && !exited) result_.signal = status.si_status;
  if (!killed_) {
    result_.cause = exited || !reaped ? GuardCause::kExit : GuardCause::kSignal;
    if (group_oom) {
      result_.cause = GuardCause::kMemory;
    } else if (result_.signal == SIGKILL && machine_oom) {
      result_.cause = GuardCause::kMemory;
      circumstances_.machine_oom = true;
    } else if (group_full && !(exited && result_.exit_code == 0)) {
      result_.cause = GuardCause::kProcesses;
    }
  }
  ended_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(end_event_.get(), &one, sizeof one);
  changed_.notify_all();
}

}  // namespace leadline::guard
