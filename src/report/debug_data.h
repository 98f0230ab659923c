// SPDX-License-Identifier: Apache-2.0
// What the page of a DebugResult is drawn from.
#pragma once

#include <string>
#include <vector>

#include "leadline/debug_result.h"

namespace leadline::report {

/// JSON with the part of the result that the page shows, short: numbers have six digits, and what a layer does not have
/// is left out. Text that is not UTF-8 is repaired.
std::string page_data(const DebugResult& result);

/// Names to call the layers by, none empty: Keras's where it says something, which one that many layers share does not;
/// else the end of the tensor's.
std::vector<std::string> layer_labels(const std::vector<LayerDebug>& layers);

/// A name in which numbers are "#": equal blocks of a network have the same.
std::string without_numbers(const std::string& name);

/// Noise over signal as amplitudes, from the ratio of their powers in dB: 0.1 is 20 dB.
double relative_error(const ErrorStatistics& error);

}  // namespace leadline::report
