// SPDX-License-Identifier: Apache-2.0
// The soft limit of private writable memory (RLIMIT_DATA) of this process, moved while a watch needs it.
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace leadline::guard {

/// Malloc then returns null and mmap ENOMEM for what passes the limit, which numpy, TensorFlow and others report as an
/// error, where touching the memory later would end in the OOM killer. Not RLIMIT_AS: address space that nothing may
/// write to costs nothing. A limit that other code changes meanwhile is left alone. Not thread-safe.
class DataLimit {
 public:
  DataLimit() = default;
  ~DataLimit() { restore(); }
  DataLimit(const DataLimit&) = delete;
  DataLimit& operator=(const DataLimit&) = delete;

  /// Never above what the limit was before.
  void set(int64_t bytes);
  void restore();

 private:
  bool moved_ = false;
  bool given_up_ = false;
  rlimit original_{};
  rlim_t last_ = 0;
};

/// Puts back the limit of before a watch moved it, in a child that is about to run another program. For use between
/// vfork and exec: it calls the kernel and changes no memory.
void undo_data_limit() noexcept;

}  // namespace leadline::guard
