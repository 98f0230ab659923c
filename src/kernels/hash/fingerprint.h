// SPDX-License-Identifier: Apache-2.0
// FarmHash Fingerprint64: a hash of bytes whose values never change, so that models may depend on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace leadline::kernels {

uint64_t fingerprint64(std::span<const std::byte> bytes);

}  // namespace leadline::kernels
