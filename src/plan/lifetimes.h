// SPDX-License-Identifier: Apache-2.0
// Decides for the newest segment which tensors share memory, how long each piece lives, and where it lies.
#pragma once

#include <vector>

#include "plan/arena.h"
#include "plan/subgraph_plan.h"

namespace leadline::plan {

/// Steps:
///  1. every output of every step gets a storage; a view takes its input's memory, an in-place op may take the memory
///     of an input that nobody reads afterwards;
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

  void add_inputs();
  void add_step_outputs(int position);
  void add_output(int position, int value, bool may_share);
  bool share_view(int position, int value);
  bool share_in_place(int position, int value);
  void add_output_copies(std::vector<Interval>& intervals, std::vector<size_t>& slots);
  void place_all();
  bool is_kept(int value) const;
  int last_position(int value, int first) const;
  void extend_piece(int root, int value, int position);
  Piece& piece(int value) { return pieces_[static_cast<size_t>(piece_of_[static_cast<size_t>(value)])]; }
  void new_piece(int value, int first);

  SubgraphPlan& plan_;
  Segment& segment_;
  const int segment_index_;
  const int end_position_;     // last position of the segment, at least 0
  std::vector<int> piece_of_;  // by root value; -1: none in this segment
  std::vector<Piece> pieces_;
};

}  // namespace leadline::plan
