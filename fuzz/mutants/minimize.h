// SPDX-License-Identifier: Apache-2.0
// A smaller model that fails in the same way.
#pragma once

#include <functional>

#include "tree.h"

namespace leadline::fuzz {

/// `fails` says whether a tree still fails; it is asked at most `most_tries` times. `root` does.
TablePtr minimize(const TablePtr& root, const std::function<bool(const TablePtr&)>& fails, int most_tries);

}  // namespace leadline::fuzz
