// SPDX-License-Identifier: Apache-2.0
#include "save_in_copy.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "leadline/guard/allocation_gate.h"

namespace leadline::python {
namespace {

constexpr unsigned kMostSeconds = 20;  // that a copy lives
constexpr int kWaits = 800;            // of 10 ms, for a copy; it goes on without being waited for
PyObject* function = nullptr;          // never freed: a copy may be made at any moment

/// glibc's since 2.34, found when this library is loaded: older ones have none.
pid_t (*const quiet_fork)() = reinterpret_cast<pid_t (*)()>(dlsym(RTLD_DEFAULT, "_Fork"));

/// Without the handlers of fork(): they wait for locks, of malloc among others, which this very thread may hold.
pid_t make_copy() {
  if (quiet_fork != nullptr) return quiet_fork();
  return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

/// A crash of the copy is not one of the process, and a copy that sticks ends.
void reset_signals() {
  for (const int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTERM, SIGHUP, SIGXCPU, SIGALRM}) {
    signal(number, SIG_DFL);
  }
  sigset_t deadline;
  sigemptyset(&deadline);
  sigaddset(&deadline, SIGALRM);
  sigprocmask(SIG_UNBLOCK, &deadline, nullptr);
  alarm(kMostSeconds);
}

/// Should memory end meanwhile, the copy is the one that goes.
void be_killed_first() {
  const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  (void)!::write(file, "1000", 4);
  ::close(file);
}

[[noreturn]] void save_and_end() {
  reset_signals();
  be_killed_first();
  guard::gate::open_in_child();
  PyOS_AfterFork_Child();  // there are no other threads any more that could want the lock
  PyErr_Clear();
  PyObject* const saved = PyObject_CallNoArgs(function);
  _exit(saved != nullptr && PyObject_IsTrue(saved) == 1 ? 0 : 1);
}

}  // namespace

void set_save_in_copy(const nb::object& chosen) {
  if (chosen.is_none()) return;
  chosen.inc_ref();
  function = chosen.ptr();
}

bool save_in_copy() {
  if (function == nullptr) return false;
  const pid_t copy = make_copy();
  if (copy < 0) return false;
  if (copy == 0) save_and_end();
  const timespec moment = {0, 10'000'000};
  int status = 0;
  for (int i = 0; i < kWaits; ++i) {
    const pid_t ended = waitpid(copy, &status, WNOHANG);
    if (ended != 0) return ended == copy && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    nanosleep(&moment, nullptr);
  }
  return true;  // what is large takes longer; what is small has been written
}

}  // namespace leadline::python
