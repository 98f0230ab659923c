// SPDX-License-Identifier: Apache-2.0
#include "guard/device_probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "io/json.h"

namespace leadline::guard {
namespace {

constexpr size_t kLongestAnswer = size_t{1} << 20;
constexpr size_t kMostProbed = 256;
constexpr char kStarted = '!';                 // the child's first byte: no lock holds it
constexpr std::chrono::seconds kStartTime{2};  // a child that has not come that far is stuck
constexpr int kMostStarts = 4;

/// glibc's since 2.34, found when this library is loaded: older ones have none.
pid_t (*const quiet_fork)() = reinterpret_cast<pid_t (*)()>(dlsym(RTLD_DEFAULT, "_Fork"));

pid_t fork_without_handlers() { return quiet_fork != nullptr ? quiet_fork() : fork(); }

void close_others(int keep) {
#ifdef SYS_close_range
  if (keep > 3) syscall(SYS_close_range, 3U, static_cast<unsigned>(keep - 1), 0U);
  syscall(SYS_close_range, static_cast<unsigned>(keep + 1), ~0U, 0U);
#else
  (void)keep;
#endif
}

/// In the child. Crash handlers of the parent must not run here, nor may drivers write on the user's terminal.
[[noreturn]] void answer_in_child(int pipe, const ChildProbe::Probe& probe) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTERM, SIGINT, SIGPIPE, SIGALRM})
    signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) {
    for (const int standard : {0, 1, 2}) {
      if (standard != pipe) dup2(null, standard);
    }
  }
  close_others(pipe);
  for (size_t size = 16; size <= 65536; size *= 8) std::string(size, 'x');
  dlsym(RTLD_DEFAULT, "dlopen");
  std::string text(1, kStarted);
  if (write(pipe, text.data(), 1) != 1) _exit(1);
  try {
    text = encode(probe());
  } catch (...) {
    text = encode({{}, "failed"});
  }
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(pipe, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += static_cast<size_t>(written);
  }
  _exit(0);  // destructors of the driver's libraries are none of our business
}

}  // namespace

ChildProbe::ChildProbe(std::string what, Probe probe) : what_(std::move(what)), probe_(std::move(probe)) { start(); }

void ChildProbe::start() {
  status_.reset();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  pid_ = fork_without_handlers();
  if (pid_ == 0) answer_in_child(ends[1], probe_);
  close(ends[1]);
  pipe_ = ends[0];
  if (pid_ < 0) {
    close(pipe_);
    pipe_ = -1;
  }
}

ChildProbe::~ChildProbe() { finish(true); }

void ChildProbe::finish(bool kill_it) {
  if (pipe_ >= 0) close(pipe_);
  pipe_ = -1;
  if (pid_ < 0) return;
  if (kill_it) kill(pid_, SIGKILL);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (true) {
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) status_ = status;
    if (ended == pid_ || (ended < 0 && errno != EINTR)) break;
    if (std::chrono::steady_clock::now() > end) {
      if (kill_it) break;
      kill_it = true;
      kill(pid_, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  pid_ = -1;
}

/// Reads until `answer` has `bytes`, the child closes the pipe, or it is `end`.
ChildProbe::Wait ChildProbe::read_until(std::chrono::steady_clock::time_point end, size_t bytes, std::string& answer) {
  while (answer.size() < bytes) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return Wait::kLate;
    pollfd waiting{pipe_, POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left, 1000)));
    if (ready < 0 && errno != EINTR) return Wait::kEnd;
    if (ready <= 0) continue;
    char piece[4096];
    const ssize_t got = read(pipe_, piece, std::min(sizeof piece, bytes - answer.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Wait::kEnd;
    answer.append(piece, static_cast<size_t>(got));
  }
  return Wait::kAnswer;
}

ProbeResult ChildProbe::result(std::chrono::steady_clock::time_point end) {
  std::string answer;
  for (int starts = 1; pid_ >= 0; ++starts) {
    const auto soon = std::min(end, std::chrono::steady_clock::now() + kStartTime);
    if (read_until(soon, 1, answer) != Wait::kLate || soon == end || starts == kMostStarts) break;
    finish(true);
    start();
  }
  if (pid_ < 0) return {{}, fmt::format("{} was not asked: no process could be made for it", what_)};
  const bool started = answer.size() == 1;
  answer.clear();
  const bool late = !started || read_until(end, kLongestAnswer, answer) == Wait::kLate;
  finish(late);
  if (!started && !(status_ && WIFSIGNALED(*status_) && WTERMSIG(*status_) != SIGKILL)) {
    return {{}, fmt::format("{} was not asked: the process made for it did not start", what_)};
  }
  if (late && started) return {{}, fmt::format("{} did not answer in time: its driver hangs", what_)};
  if (status_ && WIFSIGNALED(*status_)) {
    return {
        {},
        fmt::format("{} crashed when it was asked ({}): its driver is broken", what_, strsignal(WTERMSIG(*status_)))};
  }
  return decode(answer, what_);
}

std::string encode(const ProbeResult& result) {
  Json list = Json::array();
  for (const Device& device : result.devices) {
    list.push_back({{"kind", device.kind},
                    {"api", device.api},
                    {"model", device.model},
                    {"driver", device.driver},
                    {"cores", device.cores},
                    {"memory", device.memory_bytes},
                    {"available", device.memory_available},
                    {"features", device.features}});
  }
  return Json{{"devices", list}, {"note", result.note}}.dump();
}

ProbeResult decode(const std::string& text, const std::string& what) {
  try {
    const Json json = parse_json(text);
    ProbeResult result;
    result.note = json.at("note").text();
    for (const Json& entry : json.at("devices").items()) {
      if (result.devices.size() >= kMostProbed) break;
      Device device;
      device.kind = entry.at("kind").text();
      device.api = entry.at("api").text();
      device.model = entry.at("model").text();
      device.driver = entry.at("driver").text();
      device.cores = static_cast<int>(entry.at("cores").integer());
      device.memory_bytes = entry.at("memory").integer();
      device.memory_available = entry.at("available").integer();
      device.features = entry.at("features").texts();
      result.devices.push_back(std::move(device));
    }
    return result;
  } catch (const JsonError&) {
    return {{}, fmt::format("{} gave no answer that can be read", what)};
  }
}

}  // namespace leadline::guard
