// SPDX-License-Identifier: Apache-2.0
// The 64-bit fingerprint of Google's FarmHash (2014), by which TensorFlow puts texts into buckets. The constants and
// the order of operations are the algorithm: results are part of trained models.
#pragma once

#include <cstdint>
#include <string_view>

namespace leadline::ops {

uint64_t farm_hash_64(std::string_view text) noexcept;

}  // namespace leadline::ops
