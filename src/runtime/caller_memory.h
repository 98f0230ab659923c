// SPDX-License-Identifier: Apache-2.0
// Memory of the caller that stands for inputs, outputs and variables: neither charged nor entered in the ledger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "leadline/types.h"
#include "plan/planner.h"
#include "runtime/memory_blocks.h"

namespace leadline::runtime {

struct CallerMemory {
  std::shared_ptr<const void> owner;  // null: the caller keeps the memory
  std::byte* data = nullptr;
  int64_t bytes = 0;
  Shape shape;
  bool read_only = false;

  /// It has the size and shape that the plan has for the tensor.
  bool fits(const plan::PlannedValue& planned) const { return shape == planned.shape && bytes == planned.bytes; }
};

/// By value of the main subgraph.
using CallerMemories = std::map<int, CallerMemory>;

/// Throws when `memory` cannot stand for `value`: another size or shape, or read-only where it would be written. Sizes
/// that a run will know are not checked.
void check_caller_memory(const plan::Planner& planner, int value, const CallerMemory& memory);
/// Throws when `memory` has another size or shape than `value` has now.
void require_fit(const plan::Planner& planner, int value, const CallerMemory& memory);
/// check_caller_memory() for all of them, and that nothing that a run writes overlaps another tensor.
void check_caller_memory(const plan::Planner& planner, const CallerMemories& memories, const MemoryBlocks& blocks);

}  // namespace leadline::runtime
