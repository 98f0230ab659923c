// SPDX-License-Identifier: Apache-2.0
#include "plan/part_slots.h"

#include <algorithm>

namespace leadline::plan {

PartSlots::PartSlots(const Outline& outline, const Segment& segment, const std::vector<PlannedValue>& values)
    : outline_(outline),
      segment_(segment),
      values_(values),
      maker_(values.size(), -1),
      readers_(values.size(), 0),
      slots_(values.size()) {
  // Without parts nothing is asked of it, and a model that is planned in many segments makes many of these.
  if (std::none_of(segment_.steps.begin(), segment_.steps.end(),
                   [](const Step& step) { return !step.parts.empty(); })) {
    return;
  }
  for (const ir::Node& node : outline_.subgraph().nodes) {
    for (int v : node.inputs) {
      if (v != ir::kAbsent) ++readers_[static_cast<size_t>(v)];
    }
  }
  for (int position = 0; position < static_cast<int>(segment_.steps.size()); ++position) {
    for (int v : outline_.node(node_at(position)).outputs) maker_[static_cast<size_t>(v)] = position;
  }
}

void PartSlots::assign(const std::vector<bool>& use) {
  std::fill(slots_.begin(), slots_.end(), Slot{});
  for (size_t position = 0; position < segment_.steps.size(); ++position) {
    if (!use[position]) continue;
    const ir::Node& node = outline_.node(segment_.steps[position].node);
    for (const ops::TensorPart& part : segment_.steps[position].parts) {
      if (!part.joins || value(node.outputs[0]).storage == Storage::kVariable) continue;
      give(node.inputs[static_cast<size_t>(part.inner)], {node.outputs[0], part.offset}, false);
    }
  }
}

Slot PartSlots::resolve(int value) const {
  Slot slot = slots_[static_cast<size_t>(value)];
  while (slot.outer >= 0 && slots_[static_cast<size_t>(slot.outer)].outer >= 0) {
    const Slot& next = slots_[static_cast<size_t>(slot.outer)];
    slot = {next.outer, slot.offset + next.offset};
  }
  return slot;
}

bool PartSlots::is_cut(int position, int value) const {
  const ir::Node& node = outline_.node(node_at(position));
  const auto& parts = segment_.steps[static_cast<size_t>(position)].parts;
  return std::any_of(parts.begin(), parts.end(), [&](const ops::TensorPart& part) {
    return !part.joins && node.outputs[static_cast<size_t>(part.inner)] == value;
  });
}

/// `overwritten`: something else is computed over it, so nothing else may read it.
bool PartSlots::may_move(int value, bool overwritten) const {
  const auto v = static_cast<size_t>(value);
  if (value == ir::kAbsent || maker_[v] < 0 || slots_[v].outer >= 0) return false;
  if (overwritten && readers_[v] != 1) return false;
  const PlannedValue& planned = values_[v];
  return planned.bytes > 0 && planned.storage != Storage::kVariable && !outline_.is_output(value);
}

bool PartSlots::give(int value, Slot slot, bool overwritten) {
  if (!may_move(value, overwritten)) return false;
  const auto v = static_cast<size_t>(value);
  const int position = maker_[v];
  const ir::Node& node = outline_.node(node_at(position));
  const PlannedValue& planned = values_[v];
  if (is_cut(position, value)) return false;  // it is in its input already; one copy either way
  const ops::Sharing sharing =
      value == node.outputs[0] ? outline_.row(node_at(position))->sharing : ops::Sharing::kNone;
  if (sharing == ops::Sharing::kView) {
    const bool same = this->value(node.inputs[0]).bytes == planned.bytes;
    if (!same || !give(node.inputs[0], slot, overwritten)) return false;
  } else if (sharing == ops::Sharing::kInPlace) {
    const int bits = dtype_bits(outline_.subgraph().values[v].dtype);
    for (int input : node.inputs) {
      if (input == ir::kAbsent) continue;
      const PlannedValue& source = this->value(input);
      if (source.bytes != planned.bytes || source.shape.elements() != planned.shape.elements()) continue;
      if (dtype_bits(outline_.subgraph().values[static_cast<size_t>(input)].dtype) != bits) continue;
      if (give(input, slot, true)) break;
    }
  }
  slots_[v] = slot;
  return true;
}

}  // namespace leadline::plan
