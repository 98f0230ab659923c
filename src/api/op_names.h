// SPDX-License-Identifier: Apache-2.0
// Names of ops that users write by hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leadline {

/// The ops of the format whose names are so close to `name` that it is probably one of them, closest first; upper and
/// lower case, and underscores, make no difference.
std::vector<std::string> similar_ops(std::string_view name);

/// Whether `name` looks as if an op of the format was meant: written as they are (upper case), or close to one.
bool looks_like_builtin(std::string_view name);

/// "did you mean 'ADD'?", or where the names of all ops are.
std::string suggest_ops(std::string_view name);

}  // namespace leadline
