// SPDX-License-Identifier: Apache-2.0
#include "plan/part_slots.h"

#include <algorithm>

namespace leadline::plan {

PartSlots::PartSlots(const Outline& outline, const SubgraphPlan& plan, const Segment& segment,
                     const SegmentValues& rows)
    : outline_(outline), plan_(plan), segment_(segment), rows_(rows), maker_(rows.size(), -1), slots_(rows.size()) {
  for (int position = 0; position < static_cast<int>(segment_.steps.size()); ++position) {
    for (int v : outline_.node(node_at(position)).outputs) maker_[rows_.row(v)] = position;
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
  Slot found = slot(value);
  while (found.outer >= 0 && slot(found.outer).outer >= 0) {
    const Slot& next = slot(found.outer);
    found = {next.outer, found.offset + next.offset};
  }
  return found;
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
  if (value == ir::kAbsent || maker_[rows_.row(value)] < 0 || slot(value).outer >= 0) return false;
  if (overwritten && outline_.read_count(value) != 1) return false;
  const PlannedValue& planned = this->value(value);
  return planned.bytes > 0 && planned.storage != Storage::kVariable && !outline_.is_output(value);
}

bool PartSlots::give(int value, Slot slot, bool overwritten) {
  if (!may_move(value, overwritten)) return false;
  const int position = maker_[rows_.row(value)];
  const ir::Node& node = outline_.node(node_at(position));
  const PlannedValue& planned = this->value(value);
  if (is_cut(position, value)) return false;  // it is in its input already; one copy either way
  const ops::Sharing sharing =
      value == node.outputs[0] ? outline_.row(node_at(position))->sharing : ops::Sharing::kNone;
  if (sharing == ops::Sharing::kView) {
    const bool same = this->value(node.inputs[0]).bytes == planned.bytes;
    if (!same || !give(node.inputs[0], slot, overwritten)) return false;
  } else if (sharing == ops::Sharing::kInPlace) {
    const int bits = dtype_bits(outline_.subgraph().value(value).dtype);
    for (int input : node.inputs) {
      if (input == ir::kAbsent) continue;
      const PlannedValue& source = this->value(input);
      if (source.bytes != planned.bytes || source.shape.elements() != planned.shape.elements()) continue;
      if (dtype_bits(outline_.subgraph().value(input).dtype) != bits) continue;
      if (give(input, slot, true)) break;
    }
  }
  this->slot(value) = slot;
  return true;
}

}  // namespace leadline::plan
