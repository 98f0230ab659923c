// SPDX-License-Identifier: Apache-2.0
// Helpers to throw leadline::Error with a formatted message.
#pragma once

#include <fmt/core.h>

#include "leadline/error.h"

namespace leadline {

// What most checks refuse.
inline constexpr ErrorCode kBadModel = ErrorCode::kInvalidModel;
inline constexpr ErrorCode kBadArgument = ErrorCode::kInvalidArgument;

/// The rest of fail(), compiled once for all arguments.
[[noreturn]] void fail_with(ErrorCode code, fmt::string_view format, fmt::format_args args);

template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  fail_with(code, format, fmt::make_format_args(args...));
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
    fail_with(code, format, fmt::make_format_args(args...));
}

}  // namespace leadline
