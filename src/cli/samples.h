// SPDX-License-Identifier: Apache-2.0
// The loop over samples as the terminal shows it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "leadline/interpreter.h"
#include "leadline/sample_reader.h"

namespace leadline::cli {

/// Calls `use` for each sample when it is in the inputs of `interpreter`, with a progress bar; Ctrl-C stops between
/// samples. Returns their number.
int64_t run_samples(SampleReader& reader, Interpreter& interpreter, const std::string& title,
                    const std::function<void()>& use);

}  // namespace leadline::cli
