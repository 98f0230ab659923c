// SPDX-License-Identifier: Apache-2.0
// Cooperative cancellation: work asks the WorkLimits of its thread between pieces whether to continue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "leadline/work_limit.h"

namespace leadline {

/// The innermost limit of the calling thread; null: none.
inline constinit thread_local const WorkLimit* current_limit = nullptr;

/// Call it between pieces of work of a few milliseconds at most; loops over tensors get it from core/work.h. Throws.
/// Code that catches Errors to try something else calls it again first.
inline void check_cancelled() {
  if (current_limit != nullptr) [[unlikely]] {
    current_limit->ask();
  }
}

/// The same for a loop whose rounds are too short to ask in each: asks once per `kEvery` units of work.
class PacedCheck {
 public:
  static constexpr int64_t kEvery = int64_t{1} << 18;

  /// `work` is about the number of simple operations that were done since the last call.
  void count(int64_t work) {
    left_ -= work;
    if (left_ <= 0) [[unlikely]] {
      left_ = kEvery;
      check_cancelled();
    }
  }

 private:
  int64_t left_ = kEvery;
};

/// What the thread is at while this lives, in words that are made only if they are needed.
class WorkPlace {
 public:
  using Describe = std::string (*)(const void* what, int index);
  WorkPlace(Describe describe, const void* what, int index)
      : describe_(describe), what_(what), index_(index), outer_(innermost_) {
    innermost_ = this;
  }
  ~WorkPlace() { innermost_ = outer_; }
  WorkPlace(const WorkPlace&) = delete;
  WorkPlace& operator=(const WorkPlace&) = delete;

  /// "CONV_2D #17 'block3/conv'"; empty: nowhere in particular.
  static std::string text() {
    return innermost_ == nullptr ? std::string() : innermost_->describe_(innermost_->what_, innermost_->index_);
  }

 private:
  static inline constinit thread_local const WorkPlace* innermost_ = nullptr;

  Describe describe_;
  const void* what_;
  int index_;
  const WorkPlace* outer_;
};

}  // namespace leadline
