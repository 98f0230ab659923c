// SPDX-License-Identifier: Apache-2.0
// Saving while Python's lock is held: its holder, in the handler of a signal, makes a copy of the process. In the copy
// it is the only thread, and has the lock: there Python can run, and save.
#pragma once

#include "module.h"

namespace leadline::python {

/// The function that saves, called in copies; None: none. It returns whether it did.
void set_save_in_copy(const nb::object& function);

/// In a thread that holds Python's lock, also in a signal's handler. Makes the copy, waits until it has saved, for some
/// seconds at most, and says whether it has. A copy that fails hurts nobody: locks that other threads held are held in
/// it for ever, so it may stick, and is killed.
bool save_in_copy();

}  // namespace leadline::python
