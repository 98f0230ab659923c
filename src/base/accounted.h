// SPDX-License-Identifier: Apache-2.0
// Leadline's own share of the process's memory.
#pragma once

#include <cstdint>

namespace leadline {

/// used() of all budgets of this process together, each byte once: those without a parent are summed. Never blocks.
int64_t accounted_bytes() noexcept;

}  // namespace leadline
