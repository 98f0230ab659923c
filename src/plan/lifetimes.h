// SPDX-License-Identifier: Apache-2.0
// Decides for the newest segment which tensors share memory, how long each piece lives, and where it lies.
#pragma once

#include <vector>

#include "plan/arena.h"
#include "plan/part_slots.h"
#include "plan/subgraph_plan.h"

namespace leadline::plan {

/// Steps:
///  1. every output of every step gets a storage; a view takes its input's memory, an in-place op may take the memory
///     of an input that nobody reads afterwards, a part of a tensor may lie in it (see share_parts());
///  2. each piece of arena memory gets an interval from the step that first writes to the last that reads;
///  3. scratch is a piece that lives for one step;
///  4. place() finds offsets.
class Lifetimes {
 public:
  explicit Lifetimes(SubgraphPlan& plan);
  void assign();

 private:
  /// A piece of arena memory of this segment: one value or several that share.
  struct Piece {
    int64_t bytes = 0;
    int first = 0;
    int last = 0;
    bool kept = false;  // read after the segment, or by the caller: nothing may overwrite it
  };

  /// Chooses the steps whose inputs or outputs lie inside each other: as many as leave the arena no larger.
  void share_parts();
  /// Steps 1 and 2 with the parts of the steps in `use_parts_`; gives the most bytes alive at one step.
  int64_t add_all();
  void add_inputs();
  void add_step_outputs(int position);
  void add_output(int position, int value, bool may_share);
  bool share_slot(int position, int value);
  bool share_cut(int position, int value);
  bool share_view(int position, int value);
  bool share_in_place(int position, int value);
  void live_in(int value, int source, int64_t shift);
  bool reads_safely(const ir::Node& node, int source) const;
  void add_output_copies(std::vector<Interval>& intervals, std::vector<size_t>& slots);
  void find_layout();
  void use_layout();
  bool is_kept(int value) const;
  int last_position(int value, int first) const;
  void extend_piece(int root, int value, int position);
  Piece& piece(int value) { return pieces_[static_cast<size_t>(piece_of_[static_cast<size_t>(value)])]; }
  void new_piece(int value, int first);
  const ir::Node& node_at(int position) const;

  SubgraphPlan& plan_;
  Segment& segment_;
  const int segment_index_;
  const int end_position_;     // last position of the segment, at least 0
  std::vector<int> piece_of_;  // by root value; -1: none in this segment
  std::vector<Piece> pieces_;
  std::vector<bool> use_parts_;  // by position
  PartSlots slots_;
  std::vector<int> early_;  // by value: the step that first writes into its memory, before its own; -1: none
  std::vector<Interval> intervals_;
  std::vector<size_t> copy_slots_;
  size_t tensor_count_ = 0;  // intervals of tensors; those of scratch follow
  Layout layout_;
};

}  // namespace leadline::plan
