// SPDX-License-Identifier: Apache-2.0
#include "guard/spawn.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>

#include "core/error.h"
#include "guard/data_limit.h"

namespace leadline::guard {
namespace {

/// Everything the child needs, made before it exists: between vfork and exec it may call the kernel and nothing else.
struct ChildPlan {
  const char* program;
  char* const* arguments;
  char* const* environment;
  const int* inherited;
  size_t inherited_count;
  int output;
  int errors;
  int cgroup_procs;
  rlim_t data_limit;
  bool own_session;
  pid_t parent;
  int news;  // a pipe to the parent, closed by exec: kJoined when it is in the group, errno when it cannot exec
};

constexpr int kJoined = -1;

void report(int pipe, int word) { [[maybe_unused]] const ssize_t written = write(pipe, &word, sizeof word); }

void set_limit(int resource, rlim_t value) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return;
  if (limit.rlim_max != RLIM_INFINITY) value = std::min(value, limit.rlim_max);
  limit.rlim_cur = value;
  limit.rlim_max = value;
  setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
}

void reset_signals() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < _NSIG; ++signal) sigaction(signal, &action, nullptr);
}

/// Under memory pressure the kernel should take the guarded program, not the one that guards it.
void offer_to_oom_killer() {
  const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, "500", 3);
  close(file);
}

/// Nothing but 0, 1 and 2 outlives exec. Kernels before 5.11 know no such call; what is open far above is not found
/// there.
void close_on_exec() {
  if (syscall(SYS_close_range, 3U, ~0U, 4U /* CLOSE_RANGE_CLOEXEC */) == 0) return;
  constexpr rlim_t kMost = 65536;
  rlimit limit{};
  const rlim_t end = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? std::min(limit.rlim_cur, kMost) : kMost;
  for (int fd = 3; fd < static_cast<int>(end); ++fd) fcntl(fd, F_SETFD, FD_CLOEXEC);
}

[[noreturn]] void run_child(ChildPlan& plan) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != plan.parent) _exit(127);  // it ended before the line above
  // Processes that lose their parent stay in this one's tree. Both settings survive exec.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (plan.own_session) setsid();
  const bool joined = plan.cgroup_procs >= 0 && write(plan.cgroup_procs, "0", 1) == 1;
  if (joined) report(plan.news, kJoined);
  offer_to_oom_killer();
  set_limit(RLIMIT_CORE, 0);
  undo_data_limit();  // of a watch on this process
  if (plan.data_limit > 0 && !joined) set_limit(RLIMIT_DATA, plan.data_limit);
  close_on_exec();
  for (size_t i = 0; i < plan.inherited_count; ++i) fcntl(plan.inherited[i], F_SETFD, 0);
  // The pipes' numbers are above 2: see make_pipe.
  if (dup2(plan.output, 1) < 0 || dup2(plan.errors, 2) < 0) {
    report(plan.news, errno);
    _exit(127);
  }
  reset_signals();
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  execve(plan.program, plan.arguments, plan.environment);
  report(plan.news, errno);
  _exit(127);
}

/// vfork: the child borrows this process's memory instead of copying its page tables, and the thread waits until exec.
/// In a function of its own, so that the child's stack frames end here.
__attribute__((noinline)) pid_t start_child(ChildPlan& plan) {
  const pid_t pid = vfork();
  if (pid == 0) run_child(plan);
  return pid;
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const size_t size = std::min(rest.find(':'), rest.size());
    const std::string path = (size == 0 ? "." : std::string(rest.substr(0, size))) + "/" + name;
    struct stat status{};
    if (access(path.c_str(), X_OK) == 0 && stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) return path;
    rest.remove_prefix(std::min(size + 1, rest.size()));
  }
  fail(ErrorCode::kIo, "cannot run '{}': no such program in PATH", name);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));  // execve's old signature
  result.push_back(nullptr);
  return result;
}

/// For a stream of the child's.
Pipe make_stream() {
  Pipe stream = make_pipe();
  fcntl(stream.reading.get(), F_SETFL, O_NONBLOCK);
  fcntl(stream.reading.get(), F_SETPIPE_SZ, 1 << 20);  // fewer wake-ups; refused is all right
  return stream;
}

/// What the child reports before its program runs: its errors end it.
int read_news(int pipe, bool& joined) {
  int error = 0;
  for (;;) {
    int word = 0;
    const ssize_t size = read(pipe, &word, sizeof word);
    if (size < 0 && errno == EINTR) continue;
    if (size != static_cast<ssize_t>(sizeof word)) return error;
    if (word == kJoined) {
      joined = true;
    } else {
      error = word;
    }
  }
}

}  // namespace

int64_t data_limit(int64_t memory) {
  constexpr int64_t kRoom = int64_t{1} << 30;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const int64_t room = std::max(memory / 2, kRoom);
  return memory > kMost - room ? kMost : memory + room;
}

Spawned spawn(const SpawnRequest& request) {
  require(!request.command.empty(), ErrorCode::kInvalidArgument, "there is no command to run");
  const std::string program = find_program(request.command[0]);
  const std::vector<char*> arguments = pointers(request.command);
  const std::vector<char*> environment = pointers(request.environment);
  Spawned result;
  Pipe output = make_stream();
  Pipe errors = make_stream();

  ChildPlan plan = {};
  plan.program = program.c_str();
  plan.arguments = arguments.data();
  plan.environment = environment.data();
  plan.inherited = request.inherited.data();
  plan.inherited_count = request.inherited.size();
  plan.output = output.writing.get();
  plan.errors = errors.writing.get();
  plan.cgroup_procs = request.cgroup_procs;
  plan.data_limit =
      request.limits.memory_bytes > 0 ? static_cast<rlim_t>(data_limit(request.limits.memory_bytes)) : rlim_t{0};
  plan.own_session = request.own_session;
  plan.parent = getpid();

  Pipe news = make_pipe();
  plan.news = news.writing.get();

  // A handler of this process must not run in the child while the two share memory.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  result.pid = start_child(plan);
  const int vfork_error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);

  require(result.pid > 0, ErrorCode::kIo, "cannot start a process: {}", std::strerror(vfork_error));
  news.writing.close();
  const int error = read_news(news.reading.get(), result.in_cgroup);
  if (error == 0) {
    result.output = std::move(output.reading);
    result.errors = std::move(errors.reading);
    return result;
  }
  while (waitid(P_PID, static_cast<id_t>(result.pid), nullptr, WEXITED) != 0 && errno == EINTR) {
  }
  fail(ErrorCode::kIo, "cannot run '{}': {}", program, std::strerror(error));
}

}  // namespace leadline::guard
