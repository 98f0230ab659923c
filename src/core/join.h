// SPDX-License-Identifier: Apache-2.0
// Lists in messages: "a, b, c". Compiled once, where fmt::join would compile fmt's writers of numbers in every file
// that uses it: half a second each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace leadline {

/// The items in order, with `separator` between two of them.
std::string join(std::span<const std::string> items, std::string_view separator);
std::string join(std::span<const std::string_view> items, std::string_view separator);
std::string join(std::span<const char* const> items, std::string_view separator);
std::string join(std::span<const int32_t> items, std::string_view separator);
std::string join(std::span<const int64_t> items, std::string_view separator);

}  // namespace leadline
