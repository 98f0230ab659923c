// SPDX-License-Identifier: Apache-2.0
// The question whether a run shall go on, asked on the thread that called invoke() and answered by its caller.
#pragma once

#include "leadline/progress.h"

namespace leadline {

/// The check of the run that the calling thread does; null: none.
inline thread_local const RunCheck* current_run_check = nullptr;

/// Between pieces of work of less than a second. Throws what the check throws. Not inside of a parallel loop.
inline void ask_run_check() {
  if (current_run_check != nullptr && *current_run_check) [[unlikely]] {
    (*current_run_check)();
  }
}

class RunCheckScope {
 public:
  explicit RunCheckScope(const RunCheck& check) : before_(current_run_check) { current_run_check = &check; }
  ~RunCheckScope() { current_run_check = before_; }
  RunCheckScope(const RunCheckScope&) = delete;
  RunCheckScope& operator=(const RunCheckScope&) = delete;

 private:
  const RunCheck* before_;
};

}  // namespace leadline
