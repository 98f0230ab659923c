// SPDX-License-Identifier: Apache-2.0
// The names of io/json.h, without the library behind them.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace leadline {

/// Makes the types below our own, so that their specializations touch nobody else's JSON.
template <typename T>
struct JsonAllocator;

using ParsedJson =
    nlohmann::basic_json<std::map, std::vector, std::string, bool, int64_t, uint64_t, double, JsonAllocator>;
using OrderedJson = nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool, int64_t, uint64_t,
                                         double, JsonAllocator>;

}  // namespace leadline
