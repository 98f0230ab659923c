// SPDX-License-Identifier: Apache-2.0
// How far a long piece of work is, and the way to stop it.
#pragma once

#include <cstdint>
#include <functional>

namespace leadline {

/// Called from time to time with what is done and what there is to do, in one unit (bytes, samples); the last call has
/// done == total. False stops the work, which then throws Error(kCancelled); so does an exception, which is passed on.
/// It is called on the thread that does the work, and must not call the object that works.
using Progress = std::function<bool(int64_t done, int64_t total)>;

/// Called again and again while a model runs, on the thread that runs it: before each node, and within large products.
/// What it throws ends the run and is passed on. It must return soon, and must not call the interpreter.
using RunCheck = std::function<void()>;

}  // namespace leadline
