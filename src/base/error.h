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

/// Throws when `ok` is false; formats only then.
template <typename... Args>
void require(bool ok, ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) [[unlikely]]
    fail(code, format, std::forward<Args>(args)...);
}

}  // namespace leadline
