// SPDX-License-Identifier: Apache-2.0
// Formatting to the end of a text.
#pragma once

#include <fmt/core.h>

#include <iterator>
#include <string>
#include <utility>

namespace leadline::report {

template <typename... Args>
void print(std::string& text, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
}

}  // namespace leadline::report
