// SPDX-License-Identifier: Apache-2.0
// Which tensors of a segment share memory, and how long each piece of it lives.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plan/outline.h"
#include "plan/part_slots.h"
#include "plan/segment_values.h"
#include "plan/subgraph_plan.h"

namespace leadline::plan {

/// A piece of a segment's arena: one value, or several that share.
struct Piece {
  int64_t bytes = 0;
  int first = 0;  // positions of steps in the segment
  int last = 0;
  bool kept = false;  // read after the segment, or by the caller: nothing may overwrite it
};

/// A trial: assign() may be called again with another choice. Refers to what it is made from.
class Lifetimes {
 public:
  /// For `segment`, which comes after those of `plan`.
  Lifetimes(const Outline& outline, const PlanOptions& options, const SubgraphPlan& plan, const Segment& segment);

  /// Finds a storage for every output of the segment, and the lifetime of every piece of arena memory. Tensors lie
  /// inside others where use_parts[position] holds. Returns the most bytes alive at one step, scratch included.
  int64_t assign(const std::vector<bool>& use_parts);

  /// The values that a choice may change; the rows of take_values().
  const SegmentValues& rows() const { return rows_; }
  /// The result for any value of the subgraph, without offsets of this segment.
  const PlannedValue& value(int value) const { return rows_.contains(value) ? planned(value) : plan_.value(value); }
  std::vector<PlannedValue> take_values() { return std::move(values_); }
  const std::vector<Piece>& pieces() const { return pieces_; }
  /// The piece that a root value of this segment has.
  int piece_of(int root) const { return piece_of_[rows_.row(root)]; }
  /// The last position of the segment, at least 0.
  int end_position() const { return end_position_; }

 private:
  void add_inputs();
  void add_step_outputs(int position);
  void add_output(int position, int value, bool may_share);
  bool share_slot(int position, int value);
  bool share_cut(int position, int value);
  bool share_view(int position, int value);
  bool share_in_place(int position, int value);
  void live_in(int value, int source, int64_t shift);
  bool reads_safely(const ir::Node& node, int source) const;
  bool is_kept(int value) const;
  int last_position(int value, int first) const;
  void new_piece(int value, int first);
  void extend_piece(int root, int value, int position);
  int64_t most_alive() const;
  Piece& piece(int value) { return pieces_[static_cast<size_t>(piece_of(value))]; }
  PlannedValue& planned(int value) { return values_[rows_.row(value)]; }
  const PlannedValue& planned(int value) const { return values_[rows_.row(value)]; }
  const Step& step_at(int position) const { return segment_.steps[static_cast<size_t>(position)]; }
  const ir::Node& node_at(int position) const { return outline_.node(step_at(position).node); }
  ops::Sharing sharing_at(int position) const { return outline_.row(step_at(position).node)->sharing; }

  const Outline& outline_;
  const PlanOptions& options_;
  const SubgraphPlan& plan_;
  const Segment& segment_;
  const int segment_index_;
  const int end_position_;
  const SegmentValues rows_;
  PartSlots slots_;
  std::vector<PlannedValue> values_;  // by row, as are piece_of_ and early_
  std::vector<Piece> pieces_;
  std::vector<int> piece_of_;    // of root values; -1: none in this segment
  std::vector<bool> use_parts_;  // by position
  std::vector<int> early_;       // the step that first writes into a value's memory, before its own; -1: none
};

}  // namespace leadline::plan
