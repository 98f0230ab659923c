// SPDX-License-Identifier: Apache-2.0
// Commands that repeat a debugging job or act on what it found, quoted so that any file name and any layer name is safe
// to paste.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "leadline/debug_result.h"

namespace leadline::report {

struct Command {
  std::string title;
  std::string text;  ///< may have several lines
};
std::vector<Command> page_commands(const DebugResult& result, const DebugRun& run);

/// As one word of a POSIX shell.
std::string shell_word(std::string_view text);
/// As a string literal of Python.
std::string python_literal(std::string_view text);
}  // namespace leadline::report
