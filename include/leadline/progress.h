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

/// Called again and again while Leadline works, on the thread that called it, some milliseconds apart at most. What it
/// throws ends the work and is passed on. It must return soon, and must not call the object that works.
using RunCheck = std::function<void()>;

}  // namespace leadline
