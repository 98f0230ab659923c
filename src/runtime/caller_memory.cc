// SPDX-License-Identifier: Apache-2.0
#include "runtime/caller_memory.h"

#include <string>

#include "core/error.h"

namespace leadline::runtime {
namespace {

bool overlap(const std::byte* a, int64_t a_bytes, const std::byte* b, int64_t b_bytes) {
  if (a_bytes == 0 || b_bytes == 0) return false;
  const auto first = reinterpret_cast<uintptr_t>(a);
  const auto second = reinterpret_cast<uintptr_t>(b);
  return first < second + static_cast<uintptr_t>(b_bytes) && second < first + static_cast<uintptr_t>(a_bytes);
}

/// Kernels never write to inputs: nothing is computed in place outside the arena.
bool is_written(const plan::Planner& planner, int value) {
  return planner.plan().value(value).storage != Storage::kInput;
}

std::string describe(const plan::Planner& planner, int value) {
  return fmt::format("tensor {} '{}'", value, planner.outline().subgraph().value(value).name);
}

}  // namespace

void require_fit(const plan::Planner& planner, int value, const CallerMemory& memory) {
  const plan::PlannedValue& planned = planner.plan().value(value);
  require(memory.fits(planned), ErrorCode::kInvalidArgument,
          "{} has shape {} and takes {} bytes, the memory bound to it has shape {} and {} bytes: bind other memory, or "
          "unbind it",
          describe(planner, value), planned.shape.to_string(), planned.bytes, memory.shape.to_string(), memory.bytes);
}

void check_caller_memory(const plan::Planner& planner, int value, const CallerMemory& memory) {
  require(!memory.read_only || !is_written(planner, value), ErrorCode::kInvalidArgument,
          "{} is written by a run, the memory bound to it is read-only", describe(planner, value));
  if (planner.known_before_run(value)) require_fit(planner, value, memory);
}

void check_caller_memory(const plan::Planner& planner, const CallerMemories& memories, const MemoryBlocks& blocks) {
  for (const auto& [value, memory] : memories) {
    check_caller_memory(planner, value, memory);
    const auto check = [&, value = value, &memory = memory](const std::byte* other, int64_t bytes, bool written,
                                                            const std::string& whose) {
      const bool harmful = (written || is_written(planner, value)) && overlap(memory.data, memory.bytes, other, bytes);
      require(!harmful, ErrorCode::kInvalidArgument,
              "the memory bound to {} overlaps that of {}, and a run writes to it", describe(planner, value), whose);
    };
    for (const auto& [other, second] : memories) {
      if (other == value) continue;
      check(second.data, second.bytes, is_written(planner, other), describe(planner, other));
    }
    for (const auto& [other, block] : blocks.tensors()) {
      if (other == value) continue;
      check(block.buffer->data(), block.buffer->bytes(), is_written(planner, other), describe(planner, other));
    }
    if (const auto arena = blocks.arena(0)) check(arena->data(), arena->bytes(), true, "intermediate results");
  }
}

}  // namespace leadline::runtime
