// SPDX-License-Identifier: Apache-2.0
#include "leadline/guard/process.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <thread>
#include <utility>

#include "core/boundary.h"
#include "core/error.h"
#include "guard/advice.h"
#include "guard/last_lines.h"
#include "guard/process_tree.h"
#include "guard/supervisor.h"

namespace leadline::guard {
namespace {

SupervisorOptions supervisor_options(const GuardOptions& options) {
  require(!options.command.empty(), ErrorCode::kInvalidArgument, "there is no command to run");
  require(options.limits.memory_bytes >= 0 && options.limits.processes >= 0 && options.limits.timeout_seconds >= 0,
          ErrorCode::kInvalidArgument, "limits of memory ({}), processes ({}) and time ({}) must not be negative",
          options.limits.memory_bytes, options.limits.processes, options.limits.timeout_seconds);
  SupervisorOptions result;
  result.request.command = options.command;
  result.request.environment = options.environment;
  if (options.environment.empty()) {
    for (char** entry = environ; *entry != nullptr; ++entry) result.request.environment.emplace_back(*entry);
  }
  result.request.inherited = options.inherited;
  result.request.limits = options.limits;
  result.request.own_session = options.own_session;
  result.adopt_orphans = options.adopt_orphans;
  result.stack_signal = options.stack_signal;
  return result;
}

}  // namespace

class GuardedProcess::Impl {
 public:
  explicit Impl(const GuardOptions& options) : supervisor(supervisor_options(options)), options_(options) {}

  GuardEvent wait(double seconds, int watched);
  GuardReport report() const;
  bool own_session() const { return options_.own_session; }
  void clear_lines() {
    const std::lock_guard lock(lines_mutex_);
    lines_.clear();
  }

  Supervisor supervisor;

 private:
  bool read_stream(int stream, GuardEvent& event);

  const GuardOptions options_;
  mutable std::mutex lines_mutex_;
  LastLines lines_;
  int next_stream_ = 1;  // the streams take turns
};

bool GuardedProcess::Impl::read_stream(int stream, GuardEvent& event) {
  const int fd = stream == 1 ? supervisor.output() : supervisor.errors();
  if (fd < 0) return false;
  event.bytes.resize(size_t{1} << 17);
  const ssize_t size = read(fd, event.bytes.data(), event.bytes.size());
  const int error = errno;
  event.bytes.resize(size > 0 ? static_cast<size_t>(size) : 0);
  if (size > 0) {
    event.stream = stream;
    const std::lock_guard lock(lines_mutex_);
    lines_.add(stream, event.bytes);
    return true;
  }
  if (size == 0 || (error != EAGAIN && error != EINTR))
    stream == 1 ? supervisor.close_output() : supervisor.close_errors();
  return false;
}

GuardEvent GuardedProcess::Impl::wait(double seconds, int watched) {
  GuardEvent event;
  // A closed stream's -1 is one that poll skips.
  std::array<pollfd, 4> events = {{{supervisor.output(), POLLIN, 0},
                                   {supervisor.errors(), POLLIN, 0},
                                   {supervisor.end_event(), POLLIN, 0},
                                   {watched, POLLIN, 0}}};
  const int milliseconds = seconds > 0 ? static_cast<int>(std::min(seconds, 3600.0) * 1000) : 0;  // NaN: 0
  if (poll(events.data(), events.size(), milliseconds) <= 0) return event;
  for (int turn = 0; turn < 2 && event.stream == 0; ++turn) {
    const int stream = next_stream_;
    next_stream_ = 3 - next_stream_;
    if (events[static_cast<size_t>(stream) - 1].revents != 0) read_stream(stream, event);
  }
  event.readable = events[3].revents != 0;
  if (event.stream != 0) return event;
  // The end was seen before the streams were found empty, and the whole tree is gone: nothing more can come.
  event.ended = events[2].revents != 0;
  return event;
}

GuardReport GuardedProcess::Impl::report() const {
  GuardReport report = supervisor.report();
  {
    const std::lock_guard lock(lines_mutex_);
    report.last_lines = lines_.lines();
  }
  if (report.ended) explain(report, supervisor.circumstances());
  return report;
}

GuardedProcess::GuardedProcess(const GuardOptions& options) try : impl_(std::make_unique<Impl>(options)) {
} catch (...) {
  rethrow_as_error();
}
GuardedProcess::~GuardedProcess() = default;

int GuardedProcess::pid() const { return impl_->supervisor.pid(); }
GuardEvent GuardedProcess::wait(double seconds, int watched) try { return impl_->wait(seconds, watched); } catch (...) {
  rethrow_as_error();
}
void GuardedProcess::start_call(double timeout_seconds) try {
  impl_->clear_lines();
  impl_->supervisor.start_call(timeout_seconds);
} catch (...) {
  rethrow_as_error();
}
bool GuardedProcess::end_call() { return impl_->supervisor.end_call(); }
void GuardedProcess::interrupt() { impl_->supervisor.send_signal(SIGINT, impl_->own_session()); }
void GuardedProcess::send_signal(int signal) { impl_->supervisor.send_signal(signal, false); }
void GuardedProcess::kill(GuardCause cause) { impl_->supervisor.kill(cause); }
int64_t GuardedProcess::resident_bytes() const { return impl_->supervisor.resident_bytes(); }
int GuardedProcess::processes() const { return impl_->supervisor.processes(); }
GuardReport GuardedProcess::report() const try { return impl_->report(); } catch (...) {
  rethrow_as_error();
}

void die_with_parent(int parent) try {
  constexpr int kParentMilliseconds = 500;
  constexpr useconds_t kPauseMicroseconds = 20'000;
  Descriptor descriptor(open_pidfd(parent));
  // The signal of PR_SET_PDEATHSIG, a setting of this thread, would come first and leave the children behind.
  prctl(PR_SET_PDEATHSIG, 0);
  std::thread([parent, process = std::move(descriptor)] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    while (getppid() == parent) {
      pollfd event = {process.get(), POLLIN, 0};
      // Code that closes all descriptors closes this one too: then the next look must wait, not spin.
      if (poll(&event, 1, process ? -1 : kParentMilliseconds) > 0) usleep(kPauseMicroseconds);
    }
    kill_tree(getpid());
  }).detach();
} catch (...) {
  rethrow_as_error();
}

}  // namespace leadline::guard
