// SPDX-License-Identifier: Apache-2.0
// Says what is wrong with bytes that failed verification.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace leadline::model {

/// "the file is truncated: ..." when a constant or table lies past the end, "the file is damaged ..." otherwise.
std::string describe_damage(std::span<const std::byte> file);

}  // namespace leadline::model
