// SPDX-License-Identifier: Apache-2.0
// What faulthandler wrote about the threads of a process, put in the order in which a reader wants it.
#pragma once

#include <string>
#include <vector>

#include "leadline/guard/postmortem.h"

namespace leadline::guard {

struct PythonThread {
  std::string title;  // "Current thread 0x00007f3b (most recent call first):"
  bool current = false;
  bool own_code = false;  // a line of the user's is on its stack
  std::vector<PythonFrame> frames;
  std::vector<std::string> lines;  // as they were written, the title aside
};

/// The thread that crashed first, then those that run code of the user, then the others.
std::vector<PythonThread> parse_python_stack(const std::string& text);

/// Whether a file is a cell of a notebook, or one of the user's own and no library's.
bool is_cell(const std::string& file);
bool is_own_code(const std::string& file);

/// The innermost line of the user's code in the thread that crashed; line 0 without one. `cell_source` is the text of
/// the cell that ran.
GuiltyLine find_guilty_line(const std::vector<PythonThread>& threads, const std::string& cell_source);

/// The threads with their frames; those that run nothing of the user's are only counted.
std::string python_stack_text(const std::vector<PythonThread>& threads);

}  // namespace leadline::guard
