// SPDX-License-Identifier: Apache-2.0
// Where the tensors of a plan are while it runs: their addresses, which of them are computed, and what each step reads
// and writes.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/tensor.h"
#include "plan/planner.h"
#include "runtime/caller_memory.h"
#include "runtime/memory_blocks.h"

namespace leadline::runtime {

/// A step with everything it needs at hand.
struct BoundStep {
  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;
  std::byte* scratch = nullptr;
  const std::byte* packed = nullptr;
  std::byte* persistent = nullptr;
};

struct BoundValue {
  std::byte* address = nullptr;  // null: no memory (yet), or no bytes
  bool computed = false;         // contents are valid now
};

/// Refers to the planner, whose plan it follows, and to the memory; both belong to the same runner.
class Bindings final : public plan::ComputedValues {
 public:
  /// `caller` is memory of the caller by value; null: the caller has none to give.
  Bindings(const plan::Planner& planner, MemoryBlocks& blocks, const CallerMemories* caller)
      : planner_(planner), blocks_(blocks), caller_(caller) {}

  bool is_computed(int value) const override { return values_[static_cast<size_t>(value)].computed; }
  const std::byte* data(int value) const override { return address(value); }
  std::byte* address(int value) const { return values_[static_cast<size_t>(value)].address; }
  TensorView view(int value) const;
  void mark_computed(int value) { values_[static_cast<size_t>(value)].computed = true; }

  /// The plan was made again: nothing has an address.
  void reset();
  /// The memory was released. Allocates nothing.
  void clear();
  /// A run begins: what is there before it counts as computed. `rewound`: the plan was extended in the last one, and
  /// what that made is gone.
  void begin_run(bool rewound);

  /// An input, output or variable of known shape has neither memory of the caller nor its own.
  bool lacks_memory(int value) const;
  bool lacks_memory() const;
  /// Sets the memory and address of such a value: the caller's, if that fits, or its own. A variable's own memory
  /// begins with the state that stands for zero; the caller's has the state already. Does nothing for other values.
  /// Throws BudgetError.
  void provide(int value);
  /// The address of `value` is that of its own memory, null where it has none.
  void use_own_memory(int value);
  void clear_variable(int value);
  /// What the caller gave for `value`, or null.
  const CallerMemory* caller_memory(int value) const;

  /// Sets the addresses of the segment's values and the views of its steps.
  void bind(size_t segment, std::byte* arena);
  /// provide() for all values, and new addresses for the steps of the first segment, which is bound already.
  void rebind();
  /// The arena that the first segment is bound to (null when it has no bytes); nothing: it is not bound.
  std::optional<std::byte*> base() const { return base_; }
  void forget_base() { base_.reset(); }
  void set_packed(size_t segment, size_t position, const std::byte* packed);
  const std::vector<BoundStep>& steps(size_t segment) const { return segments_[segment]; }
  void forget_segments(size_t first);

 private:
  std::vector<BoundStep>& segment_steps(size_t segment);
  std::byte* fixed_address(int value) const;
  void follow_root(size_t v);
  void follow_roots();

  const plan::Planner& planner_;
  MemoryBlocks& blocks_;
  const CallerMemories* const caller_;
  std::vector<BoundValue> values_;
  std::vector<std::vector<BoundStep>> segments_;
  std::optional<std::byte*> base_;
};

}  // namespace leadline::runtime
