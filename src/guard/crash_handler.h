// SPDX-License-Identifier: Apache-2.0
// Handlers of the signals that end a process: they add what is known to the flight recorder, then let the process die
// as it would have without them.
#pragma once

namespace leadline::guard {

/// Installs them, with an alternate stack for the calling thread. `python_stack_signal` (0: none) is raised after the
/// rest is written, with the recorder's file at the place for Python's stack; its handler writes there.
void install_crash_handler(int python_stack_signal);

/// Puts back what was there. A handler that was installed on top stays, and ours below it does nothing.
void remove_crash_handler();

}  // namespace leadline::guard
