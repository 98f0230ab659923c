// SPDX-License-Identifier: Apache-2.0
// Everything below on_crash() is async-signal-safe: system calls, memory of our own, and an unwinder that was used
// before. A fault in here leads back to on_crash(), which continues with the next step.
#include "guard/crash_handler.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <mutex>

#include "guard/flight_recorder.h"
#include "guard/postmortem.h"
#include "io/mapping_watch.h"

namespace leadline::guard {
namespace {

constexpr std::array kFaults = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
/// Requests to end: noted where nothing else handles them.
constexpr std::array kRequests = {SIGTERM, SIGHUP, SIGXCPU};
constexpr size_t kStackBytes = 256 * 1024;
constexpr size_t kMostFrames = 64;

struct sigaction old_actions[NSIG];
bool handled_signals[NSIG];
std::mutex install_mutex;
std::atomic<bool> enabled = false;
std::atomic<int> python_signal = 0;
std::atomic<pid_t> crash_owner = 0;  // the thread that writes the crash; the first one only

// Of the owner alone.
sigjmp_buf escape;
volatile sig_atomic_t can_escape = 0;
struct UnwoundFrame {
  uintptr_t address;
  bool interrupted;
};
UnwoundFrame unwound[kMostFrames];
size_t unwound_count = 0;
char text_buffer[16384];

struct AbortMessage {  // glibc's struct abort_msg_s
  unsigned int size;
  char text[1];
};
AbortMessage** abort_message = nullptr;
std::terminate_handler old_terminate = nullptr;
char terminate_text[sizeof(flight::Crash::message)];

pid_t thread_id() { return static_cast<pid_t>(syscall(SYS_gettid)); }

void send_to_self(int signal) {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  syscall(SYS_tgkill, getpid(), thread_id(), signal);
}

/// Runs `step`; a fault in it ends it.
template <typename Step>
void attempt(Step step) {
  if (sigsetjmp(escape, 1) == 0) {
    can_escape = 1;
    step();
  }
  can_escape = 0;
}

struct Registers {
  uintptr_t pc = 0;
  uintptr_t sp = 0;
  uintptr_t caller = 0;  // return address, if a function has just been entered
};

/// Through the kernel, which does not fault where nothing is mapped.
ssize_t read_memory(uintptr_t from, void* to, size_t bytes) {
  const iovec local = {to, bytes};
  const iovec remote = {reinterpret_cast<void*>(from), bytes};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
}

Registers registers_of(const void* context) {
  const auto* const machine = &static_cast<const ucontext_t*>(context)->uc_mcontext;
  Registers registers;
#if defined(__x86_64__)
  registers.pc = static_cast<uintptr_t>(machine->gregs[REG_RIP]);
  registers.sp = static_cast<uintptr_t>(machine->gregs[REG_RSP]);
  read_memory(registers.sp, &registers.caller, sizeof registers.caller);
#elif defined(__aarch64__)
  registers.pc = static_cast<uintptr_t>(machine->pc);
  registers.sp = static_cast<uintptr_t>(machine->sp);
  registers.caller = static_cast<uintptr_t>(machine->regs[30]);
#else
  (void)machine;
#endif
  return registers;
}

_Unwind_Reason_Code take_frame(_Unwind_Context* context, void*) {
  if (unwound_count == kMostFrames) return _URC_END_OF_STACK;
  int before_instruction = 0;
  const uintptr_t address = _Unwind_GetIPInfo(context, &before_instruction);
  if (address != 0) unwound[unwound_count++] = {address, before_instruction != 0};
  return _URC_NO_REASON;
}

void add_frames(flight::Crash& crash, const Registers& registers) {
  unwound_count = 0;
  attempt([] { _Unwind_Backtrace(&take_frame, nullptr); });
  // Whatever came after the last signal is handlers, ours and those that called us.
  size_t first = unwound_count;
  for (size_t i = 0; i < unwound_count; ++i) {
    if (unwound[i].interrupted) first = i;
  }
  size_t count = 0;
  if (first == unwound_count) {  // a jump into nowhere: there is no unwinding from there, but the caller is known
    crash.frames[count++].address = registers.pc;
    crash.frames[count++].address = registers.caller;
  }
  for (size_t i = first; i < unwound_count && count < flight::kFrames; ++i) {
    crash.frames[count].interrupted = unwound[i].interrupted ? 1 : 0;
    crash.frames[count++].address = unwound[i].address;
  }
  crash.frame_count = static_cast<uint32_t>(count);
}

/// Hexadecimal digits from `at` on, which is moved behind them.
uintptr_t parse_hex(const char*& at, const char* end) {
  uintptr_t value = 0;
  for (; at < end; ++at) {
    const char digit = *at;
    const int number = digit >= '0' && digit <= '9'   ? digit - '0'
                       : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                                      : -1;
    if (number < 0) break;
    value = value * 16 + static_cast<uintptr_t>(number);
  }
  return value;
}

/// One line of /proc/self/maps: "start-end perms offset device inode   path".
void use_map_line(const char* at, const char* end, flight::Crash& crash, const Registers& registers) {
  const uintptr_t start = parse_hex(at, end);
  if (at < end) ++at;
  const uintptr_t stop = parse_hex(at, end);
  const bool writable = at + 2 < end && at[2] == 'w';
  at = std::min(at + 6, end);
  const uintptr_t offset = parse_hex(at, end);
  for (int field = 0; field < 3 && at < end; ++field) {  // device, inode, path
    while (at < end && *at == ' ') ++at;
    if (field == 2) break;
    while (at < end && *at != ' ') ++at;
  }
  constexpr uintptr_t kNear = 128 * 1024;
  const uintptr_t fault = crash.fault_address;
  const bool near_fault = fault + 2 * kNear > registers.sp && fault < registers.sp + kNear;
  if (crash.signal == SIGSEGV && crash.code > 0 && near_fault) {
    // The stack pointer is at the end of its stack, or beyond it in the guard below.
    if (writable && registers.sp + kNear > start && registers.sp < start + kNear && fault < start + kNear) {
      crash.stack_overflow = 1;
    }
  }
  for (size_t i = 0; i < crash.frame_count; ++i) {
    flight::Frame& frame = crash.frames[i];
    if (frame.address < start || frame.address >= stop) continue;
    frame.offset = frame.address - start + offset;
    const size_t size = static_cast<size_t>(end - at);
    const size_t kept = std::min(size, sizeof frame.module - 1);
    std::memcpy(frame.module, end - kept, kept);
  }
}

void add_modules(flight::Crash& crash, const Registers& registers) {
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  size_t have = 0;
  for (;;) {
    const ssize_t got = read(file, text_buffer + have, sizeof text_buffer - have);
    if (got <= 0) break;
    have += static_cast<size_t>(got);
    const char* line = text_buffer;
    const char* const stop = text_buffer + have;
    while (const void* found = memchr(line, '\n', static_cast<size_t>(stop - line))) {
      const auto* const end = static_cast<const char*>(found);
      use_map_line(line, end, crash, registers);
      line = end + 1;
    }
    have = static_cast<size_t>(stop - line);
    if (have == sizeof text_buffer) have = 0;  // no line is as long
    std::memmove(text_buffer, line, have);
  }
  close(file);
}

void set_message(flight::Crash& crash, const char* text, size_t size) {
  const size_t kept = std::min(size, sizeof crash.message);
  std::memcpy(crash.message, text + (size - kept), kept);
  crash.message_size = static_cast<uint32_t>(kept);
}

/// What was written to standard error last, where it is a file, or a pipe that has not been read yet.
void add_last_errors(flight::Crash& crash) {
  const int file = open("/proc/self/fd/2", O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (file < 0) return;
  struct stat status{};
  ssize_t got = -1;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    const off_t from = std::max<off_t>(0, status.st_size - static_cast<off_t>(sizeof crash.message));
    got = pread(file, text_buffer, sizeof crash.message, from);
  } else if (S_ISFIFO(status.st_mode)) {
    int copy[2] = {-1, -1};
    if (pipe2(copy, O_NONBLOCK | O_CLOEXEC) == 0) {
      // tee() copies: the reader of the pipe still gets everything.
      if (tee(file, copy[1], sizeof text_buffer, SPLICE_F_NONBLOCK) > 0) {
        got = read(copy[0], text_buffer, sizeof text_buffer);
      }
      close(copy[0]);
      close(copy[1]);
    }
  }
  close(file);
  if (got > 0) set_message(crash, text_buffer, static_cast<size_t>(got));
}

/// "RLIMIT_DATA 1500000000": async-signal-safe, as nothing of printf is.
size_t put_limit(char* to, size_t room, int resource, const char* name) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
  char digits[24];
  size_t count = 0;
  for (rlim_t rest = limit.rlim_cur; count == 0 || rest > 0; rest /= 10)
    digits[count++] = '0' + static_cast<char>(rest % 10);
  const size_t size = strlen(name);
  if (size + count + 1 > room) return 0;
  std::memcpy(to, name, size);
  for (size_t i = 0; i < count; ++i) to[size + i] = digits[count - 1 - i];
  to[size + count] = ' ';
  return size + count + 1;
}

/// A library that crashes may have been refused memory: the limits of this process are worth a word.
void add_limits(flight::Crash& crash) {
  size_t size = kLimitWords.size();
  std::memcpy(crash.message, kLimitWords.data(), size);
  const size_t start = size;
  size += put_limit(crash.message + size, sizeof crash.message - size, RLIMIT_DATA, "RLIMIT_DATA ");
  size += put_limit(crash.message + size, sizeof crash.message - size, RLIMIT_AS, "RLIMIT_AS ");
  crash.message_size = size == start ? 0 : static_cast<uint32_t>(size - 1);
}

void add_message(flight::Crash& crash) {
  if (crash.signal == SIGSEGV || crash.signal == SIGBUS) add_limits(crash);
  if (crash.signal != SIGABRT) return;
  if (terminate_text[0] != '\0') {
    set_message(crash, terminate_text, strnlen(terminate_text, sizeof terminate_text));
    return;
  }
  attempt([&] {
    const AbortMessage* const message = abort_message == nullptr ? nullptr : *abort_message;
    if (message == nullptr) return;
    set_message(crash, message->text, strnlen(message->text, std::min<size_t>(message->size, sizeof crash.message)));
  });
  if (crash.message_size == 0) add_last_errors(crash);
}

void add_instruction(flight::Crash& crash, const Registers& registers) {
  if (crash.signal != SIGILL || crash.code <= 0) return;
  for (size_t size = sizeof crash.instruction; size > 0 && crash.instruction_size == 0; size /= 2) {
    const ssize_t got = read_memory(registers.pc, crash.instruction, size);  // fewer at the end of a mapping
    if (got > 0) crash.instruction_size = static_cast<uint32_t>(got);
    if (got >= 0 || (errno != EPERM && errno != ENOSYS)) continue;
    attempt([&] {  // some containers forbid the call
      std::memcpy(crash.instruction, reinterpret_cast<const void*>(registers.pc), size);
      crash.instruction_size = static_cast<uint32_t>(size);
    });
  }
}

void add_python_stack() {
  const int signal = python_signal.load();
  struct sigaction action{};
  if (signal == 0 || sigaction(signal, nullptr, &action) != 0) return;
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) return;
  FlightRecorder::instance().seek_python_stack();
  attempt([signal] { send_to_self(signal); });
}

void record(int signal, const siginfo_t* info, const void* context) {
  flight::Crash* const crash = FlightRecorder::instance().crash();
  if (crash == nullptr) return;
  const Registers registers = registers_of(context);
  crash->clock_ns = flight_clock_ns();
  crash->signal = signal;
  crash->code = info->si_code;
  if (info->si_code > 0) {
    crash->fault_address = reinterpret_cast<uintptr_t>(info->si_addr);
  } else {
    crash->sender = info->si_pid;
  }
  crash->thread = thread_id();
  prctl(PR_GET_NAME, crash->thread_name);
  FlightRecorder::finish_crash(*crash);  // whatever happens from here on, this much is known
  add_message(*crash);
  add_instruction(*crash, registers);
  FlightRecorder::finish_crash(*crash);
  if (std::find(kRequests.begin(), kRequests.end(), signal) == kRequests.end()) {
    add_frames(*crash, registers);
    add_modules(*crash, registers);
    FlightRecorder::finish_crash(*crash);
  }
  add_python_stack();
}

void chain(int signal, const siginfo_t* info) {
  sigaction(signal, &old_actions[signal], nullptr);
  if (info->si_code > 0) return;  // the instruction faults again, now without us
  send_to_self(signal);
}

extern "C" void on_crash(int signal, siginfo_t* info, void* context) {
  const int saved = errno;
  if (signal == SIGBUS && repair_mapping(info)) {  // a model's file was cut off: an Error will say so, not a crash
    errno = saved;
    return;
  }
  if (enabled.load()) {
    const pid_t self = thread_id();
    pid_t before = 0;
    if (crash_owner.compare_exchange_strong(before, self)) {
      record(signal, info, context);
    } else if (before == self) {
      if (can_escape != 0) siglongjmp(escape, 1);
    } else {
      // Another thread is writing, and dies when it is done.
      const timespec moment = {0, 10'000'000};
      for (int i = 0; i < 300; ++i) nanosleep(&moment, nullptr);
    }
  }
  chain(signal, info);
  errno = saved;
}

/// An uncaught exception: its message is gone by the time abort() raises its signal.
[[noreturn]] void on_terminate() {
  if (const std::type_info* const type = abi::__cxa_current_exception_type(); type != nullptr && enabled.load()) {
    int status = 0;
    char* const name = abi::__cxa_demangle(type->name(), nullptr, nullptr, &status);
    const auto add = [](const char* text) {
      const size_t used = strnlen(terminate_text, sizeof terminate_text - 1);
      std::strncpy(terminate_text + used, text, sizeof terminate_text - 1 - used);
    };
    add("uncaught C++ exception ");
    add(name != nullptr ? name : type->name());
    std::free(name);
    try {
      throw;
    } catch (const std::exception& error) {
      add(": ");
      add(error.what());
    } catch (...) {
    }
  }
  if (old_terminate != nullptr) old_terminate();
  std::abort();
}

void* alternate_stack() {
  static void* const memory = [] {
    void* const pages = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? nullptr : pages;
  }();
  return memory;
}

stack_t old_stack{};

void use_alternate_stack() {
  void* const memory = alternate_stack();
  if (memory == nullptr) return;
  stack_t current{};
  if (sigaltstack(nullptr, &current) == 0 && current.ss_sp == memory) return;
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = kStackBytes;
  sigaltstack(&stack, &old_stack);
}

void leave_alternate_stack() {
  stack_t current{};
  if (alternate_stack() == nullptr || sigaltstack(nullptr, &current) != 0) return;
  if (current.ss_sp == alternate_stack()) sigaltstack(&old_stack, nullptr);  // else it is another thread's: it stays
}

void install(int signal) {
  struct sigaction action{};
  action.sa_sigaction = &on_crash;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  if (!handled_signals[signal]) handled_signals[signal] = sigaction(signal, &action, &old_actions[signal]) == 0;
}

}  // namespace

void install_crash_handler(int python_stack_signal) {
  const std::lock_guard lock(install_mutex);
  if (abort_message == nullptr) {
    abort_message = static_cast<AbortMessage**>(dlvsym(RTLD_DEFAULT, "__abort_msg", "GLIBC_PRIVATE"));
  }
  unwound_count = 0;
  _Unwind_Backtrace(&take_frame, nullptr);  // the first use loads libraries and allocates
  use_alternate_stack();
  python_signal = python_stack_signal;
  if (old_terminate == nullptr) old_terminate = std::set_terminate(&on_terminate);
  enabled = true;
  for (const int signal : kFaults) install(signal);
  for (const int signal : kRequests) {
    struct sigaction current{};
    if (sigaction(signal, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) install(signal);
  }
}

void remove_crash_handler() {
  const std::lock_guard lock(install_mutex);
  if (!enabled.exchange(false)) return;
  python_signal = 0;
  for (int signal = 1; signal < NSIG; ++signal) {
    if (!handled_signals[signal]) continue;
    struct sigaction current{};
    sigaction(signal, nullptr, &current);
    if (current.sa_sigaction != &on_crash) continue;  // it is below another one, which will call it
    sigaction(signal, &old_actions[signal], nullptr);
    handled_signals[signal] = false;
  }
  if (std::get_terminate() == &on_terminate) {
    std::set_terminate(old_terminate);
    old_terminate = nullptr;
  }
  leave_alternate_stack();
}

}  // namespace leadline::guard
