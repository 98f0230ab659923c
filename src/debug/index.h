// SPDX-License-Identifier: Apache-2.0
// Numbers of nodes and values, which are ints, as places in a vector.
#pragma once

#include <cstddef>

namespace leadline::debug {

inline size_t at(int index) { return static_cast<size_t>(index); }

}  // namespace leadline::debug
