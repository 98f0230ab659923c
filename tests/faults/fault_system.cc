// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/fault_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace leadline::faults {

bool refuse_anonymous_mapping() noexcept;
void count_mapping(bool made) noexcept;

namespace {

std::atomic<bool> armed = false;
std::atomic<bool> met = false;
std::atomic<const char*> met_name = "";
std::atomic<int64_t> counted = 0;
std::atomic<int64_t> wanted = 0;
std::atomic<bool> onwards = false;
std::atomic<SystemFault> fault_kind = SystemFault::kRefuse;

bool meets(SystemFault fault, const char* name) noexcept {
  if (!armed.load(std::memory_order_relaxed) || fault_kind.load(std::memory_order_relaxed) != fault) return false;
  const int64_t n = ++counted;
  const int64_t first = wanted.load(std::memory_order_relaxed);
  if (n != first && !(onwards.load(std::memory_order_relaxed) && n > first)) return false;
  if (!met.exchange(true)) met_name = name;
  return true;
}

/// True, with errno set, when the call is to fail.
bool refused(const char* name, int error) noexcept {
  if (!meets(SystemFault::kRefuse, name)) return false;
  errno = error;
  return true;
}

/// An EINTR that never ends is none: every second one lets the call through.
bool interrupted(const char* name) noexcept {
  static std::atomic<int64_t> turns = 0;
  if (!meets(SystemFault::kInterrupt, name) || ++turns % 2 == 0) return false;
  errno = EINTR;
  return true;
}

size_t transferred(const char* name, size_t bytes) noexcept {
  return meets(SystemFault::kShort, name) ? std::min<size_t>(bytes, 1) : bytes;
}

}  // namespace

void arm_system(int64_t n, Extent extent, SystemFault fault) {
  wanted = n;
  onwards = extent == Extent::kOnwards;
  fault_kind = fault;
  counted = 0;
  met = false;
  met_name = "";
  armed = true;
}

void disarm_system() { armed = false; }
bool system_fault_met() { return met; }
int64_t system_calls_counted() { return counted; }
const char* system_call_met() { return met_name; }

}  // namespace leadline::faults

namespace faults = leadline::faults;

// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

int __real_open(const char* path, int flags, mode_t mode);
int __real_fstat(int file, struct stat* info);
ssize_t __real_read(int file, void* to, size_t bytes);
ssize_t __real_pread(int file, void* to, size_t bytes, off_t offset);
ssize_t __real_write(int file, const void* from, size_t bytes);
FILE* __real_fopen(const char* path, const char* mode);
size_t __real_fwrite(const void* from, size_t size, size_t count, FILE* file);
int __real_fflush(FILE* file);
int __real_fclose(FILE* file);
int __real_rename(const char* from, const char* to);
int __real_mkdir(const char* path, mode_t mode);
DIR* __real_opendir(const char* path);
int __real_posix_fallocate(int file, off_t offset, off_t bytes);
void* __real_mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_munmap(void* at, size_t bytes);
int __real_madvise(void* at, size_t bytes, int advice);
int __real_getrlimit(int resource, struct rlimit* limit);
int __real_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t* mask);
int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*entry)(void*), void* argument);

int __wrap_open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = static_cast<mode_t>((flags & O_CREAT) != 0 ? va_arg(rest, int) : 0);
  va_end(rest);
  return faults::refused("open", EMFILE) ? -1 : __real_open(path, flags, mode);
}

int __wrap_fstat(int file, struct stat* info) { return faults::refused("fstat", EIO) ? -1 : __real_fstat(file, info); }

ssize_t __wrap_read(int file, void* to, size_t bytes) {
  if (faults::refused("read", EIO) || faults::interrupted("read")) return -1;
  return __real_read(file, to, faults::transferred("read", bytes));
}

ssize_t __wrap_pread(int file, void* to, size_t bytes, off_t offset) {
  if (faults::refused("pread", EIO) || faults::interrupted("pread")) return -1;
  return __real_pread(file, to, faults::transferred("pread", bytes), offset);
}

ssize_t __wrap_write(int file, const void* from, size_t bytes) {
  if (faults::refused("write", ENOSPC) || faults::interrupted("write")) return -1;
  return __real_write(file, from, faults::transferred("write", bytes));
}

FILE* __wrap_fopen(const char* path, const char* mode) {
  return faults::refused("fopen", EMFILE) ? nullptr : __real_fopen(path, mode);
}

// A full disk takes the first half.
size_t __wrap_fwrite(const void* from, size_t size, size_t count, FILE* file) {
  if (!faults::refused("fwrite", ENOSPC)) return __real_fwrite(from, size, count, file);
  const size_t half = __real_fwrite(from, size, count / 2, file);
  errno = ENOSPC;
  return half;
}

int __wrap_fflush(FILE* file) {
  const int result = __real_fflush(file);
  return faults::refused("fflush", ENOSPC) ? EOF : result;
}

int __wrap_fclose(FILE* file) {
  const int result = __real_fclose(file);
  return faults::refused("fclose", ENOSPC) ? EOF : result;
}

int __wrap_rename(const char* from, const char* to) {
  return faults::refused("rename", EACCES) ? -1 : __real_rename(from, to);
}

int __wrap_mkdir(const char* path, mode_t mode) {
  return faults::refused("mkdir", ENOSPC) ? -1 : __real_mkdir(path, mode);
}

DIR* __wrap_opendir(const char* path) { return faults::refused("opendir", EMFILE) ? nullptr : __real_opendir(path); }

int __wrap_posix_fallocate(int file, off_t offset, off_t bytes) {
  return faults::refused("posix_fallocate", ENOSPC) ? ENOSPC : __real_posix_fallocate(file, offset, bytes);
}

void* __wrap_mmap(void* at, size_t bytes, int protection, int flags, int file, off_t offset) {
  const bool anonymous = (flags & MAP_ANONYMOUS) != 0;
  if ((flags & MAP_FIXED) != 0) return __real_mmap(at, bytes, protection, flags, file, offset);
  if (anonymous ? faults::refuse_anonymous_mapping() : faults::refused("mmap", ENOMEM)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  void* const result = __real_mmap(at, bytes, protection, flags, file, offset);
  if (result != MAP_FAILED) faults::count_mapping(true);
  return result;
}

int __wrap_munmap(void* at, size_t bytes) {
  faults::count_mapping(false);
  return __real_munmap(at, bytes);
}

int __wrap_madvise(void* at, size_t bytes, int advice) {
  return faults::refused("madvise", EAGAIN) ? -1 : __real_madvise(at, bytes, advice);
}

int __wrap_getrlimit(int resource, struct rlimit* limit) {
  return faults::refused("getrlimit", EINVAL) ? -1 : __real_getrlimit(resource, limit);
}

int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t* mask) {
  return faults::refused("sched_getaffinity", EINVAL) ? -1 : __real_sched_getaffinity(pid, bytes, mask);
}

int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*entry)(void*), void* argument) {
  return faults::refused("pthread_create", EAGAIN) ? EAGAIN
                                                   : __real_pthread_create(thread, attributes, entry, argument);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
