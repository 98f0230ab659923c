// SPDX-License-Identifier: Apache-2.0
// The question whether work shall go on, asked by whoever works and answered by the WorkLimits of the calling thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "leadline/work_limit.h"

namespace leadline {

/// The innermost limit of the calling thread; null: none.
inline constinit thread_local const WorkLimit* current_limit = nullptr;

/// To be asked between pieces of work of some milliseconds at most, in kernels and parallel loops too. Throws. Whoever
/// catches Errors to try something else asks again first.
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

/// Calls body(begin, end) for pieces of [0, count) and asks between them. For loops that one thread does.
template <typename Body>
void in_pieces(int64_t count, int64_t piece, const Body& body) {
  for (int64_t begin = 0; begin < count; begin += piece) {
    if (begin > 0) check_cancelled();
    body(begin, count - begin < piece ? count : begin + piece);
  }
}

/// Bytes that are copied between two questions: a millisecond where the pages have to be made first.
inline constexpr int64_t kCopyPiece = int64_t{4} << 20;

inline void copy_bytes(std::byte* to, const std::byte* from, int64_t bytes) {
  in_pieces(bytes, kCopyPiece, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
  });
}

inline void fill_bytes(std::byte* to, std::byte value, int64_t bytes) {
  in_pieces(bytes, kCopyPiece, [&](int64_t begin, int64_t end) {
    std::memset(to + begin, static_cast<int>(value), static_cast<size_t>(end - begin));
  });
}

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
