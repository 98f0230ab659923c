// SPDX-License-Identifier: Apache-2.0
// Helpers to throw leadline::Error with a formatted message.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "leadline/error.h"

namespace leadline {

template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws Error(kOutOfMemory), which takes no memory.
[[noreturn]] void throw_out_of_memory();

/// Whether it says nothing about what was asked for, only that there was no memory to do it.
inline bool is_about_memory(const Error& error) {
  return error.code() == ErrorCode::kBudget || error.code() == ErrorCode::kOutOfMemory;
}

/// Throws when `ok` is false; formats only then.
template <typename... Args>
void require(bool ok, ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) [[unlikely]]
    fail(code, format, std::forward<Args>(args)...);
}

}  // namespace leadline
