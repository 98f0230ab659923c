// SPDX-License-Identifier: Apache-2.0
// What one core of this machine can do at most, measured when it is first asked for, with the best instructions that
// Leadline's kernels may use here (LEADLINE_ISA limits both).
#pragma once

#include <cstdint>

namespace leadline::bench {

/// Multiply-adds in registers, in GMAC/s: of floats; and of 8-bit numbers by what the exact int8 gemm uses (VNNI, or
/// products of 16 bits).
double f32_limit();
double i8_limit();

/// GB/s read plus written by a loop that copies, over `bytes` bytes in all: a small number is a matter of caches.
double copy_limit(int64_t bytes);

/// CPU seconds of this thread.
double cpu_seconds();

}  // namespace leadline::bench
