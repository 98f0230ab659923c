// SPDX-License-Identifier: Apache-2.0
#include "plan/lifetimes.h"

#include <algorithm>
#include <utility>

namespace leadline::plan {
namespace {

/// Later segments are planned during every run: a quick layout is worth more than the last byte.
constexpr int64_t kRunTimeEffort = 50'000;
/// Steps with parts that are tried one by one; where there are more, it is all of them or none.
constexpr std::ptrdiff_t kMostTrials = 64;

}  // namespace

Lifetimes::Lifetimes(SubgraphPlan& plan)
    : plan_(plan),
      segment_(plan.segments_.back()),
      segment_index_(static_cast<int>(plan.segments_.size()) - 1),
      end_position_(std::max(0, static_cast<int>(segment_.steps.size()) - 1)),
      piece_of_(plan.values_.size(), -1),
      use_parts_(segment_.steps.size(), false),
      slots_(plan),
      early_(plan.values_.size(), -1) {}

const ir::Node& Lifetimes::node_at(int position) const {
  return plan_.node(segment_.steps[static_cast<size_t>(position)].node);
}

void Lifetimes::assign() {
  const bool parts =
      std::any_of(segment_.steps.begin(), segment_.steps.end(), [](const Step& step) { return !step.parts.empty(); });
  if (parts && plan_.options_.views && !plan_.options_.preserve_all) {
    share_parts();
  } else {
    add_all();
    find_layout();
  }
  use_layout();
}

void Lifetimes::share_parts() {
  const std::vector<PlannedValue> before = plan_.values_;
  const auto add = [&] {
    plan_.values_ = before;
    slots_.assign(use_parts_);
    return add_all();
  };
  int64_t most = add();
  find_layout();
  const int64_t plain_bytes = layout_.bytes;
  const std::vector<bool> none = use_parts_;
  for (size_t i = 0; i < use_parts_.size(); ++i) use_parts_[i] = !segment_.steps[i].parts.empty();
  if (const auto steps = std::count(use_parts_.begin(), use_parts_.end(), true); add() > most) {
    const std::vector<bool> candidates = std::exchange(use_parts_, none);
    for (size_t i = 0; steps <= kMostTrials && i < candidates.size(); ++i) {
      if (!candidates[i]) continue;
      use_parts_[i] = true;
      const int64_t live = add();
      use_parts_[i] = live <= most;
      most = std::min(most, live);
    }
    add();
  }
  find_layout();
  if (layout_.bytes <= plain_bytes) return;
  use_parts_ = none;
  add();
  find_layout();
}

int64_t Lifetimes::add_all() {
  pieces_.clear();
  std::fill(piece_of_.begin(), piece_of_.end(), -1);
  std::fill(early_.begin(), early_.end(), -1);
  if (segment_index_ == 0) add_inputs();
  const int steps = static_cast<int>(segment_.steps.size());
  for (int position = 0; position < steps; ++position) add_step_outputs(position);
  std::vector<int64_t> live(segment_.steps.size() + 2, 0);
  for (const Piece& p : pieces_) {
    live[static_cast<size_t>(p.first)] += align_up(p.bytes);
    live[static_cast<size_t>(p.last) + 1] -= align_up(p.bytes);
  }
  int64_t most = 0;
  int64_t now = 0;
  for (int i = 0; i < steps; ++i) {
    now += live[static_cast<size_t>(i)];
    most = std::max(most, now + align_up(segment_.steps[static_cast<size_t>(i)].scratch_bytes));
  }
  return most;
}

bool Lifetimes::is_kept(int value) const {
  return plan_.options_.preserve_all || plan_.last_use_[static_cast<size_t>(value)] >= plan_.next_node_;
}

/// The position in this segment at which `value` is read last; the end where later nodes or the caller read it.
int Lifetimes::last_position(int value, int first) const {
  const int last_node = plan_.last_use_[static_cast<size_t>(value)];
  if (is_kept(value)) return end_position_;
  const auto after = std::upper_bound(segment_.steps.begin(), segment_.steps.end(), last_node,
                                      [](int node, const Step& step) { return node < step.node; });
  return std::max(first, static_cast<int>(after - segment_.steps.begin()) - 1);
}

void Lifetimes::new_piece(int value, int first) {
  PlannedValue& v = plan_.values_[static_cast<size_t>(value)];
  v.storage = Storage::kArena;
  v.segment = segment_index_;
  v.root = value;
  piece_of_[static_cast<size_t>(value)] = static_cast<int>(pieces_.size());
  pieces_.push_back({v.bytes, first, last_position(value, first), is_kept(value)});
}

/// `value` lives in the piece of `root` from `position` on.
void Lifetimes::extend_piece(int root, int value, int position) {
  Piece& p = piece(root);
  p.last = std::max(p.last, last_position(value, position));
  p.kept = p.kept || is_kept(value);
}

void Lifetimes::add_inputs() {
  const int node_count = static_cast<int>(plan_.subgraph_.nodes.size());
  for (int v : plan_.subgraph_.inputs) {
    PlannedValue& value = plan_.values_[static_cast<size_t>(v)];
    value.last_step = plan_.last_use_[static_cast<size_t>(v)] >= node_count ? node_count : value.last_step;
    if (value.storage != Storage::kArena || piece_of_[static_cast<size_t>(v)] >= 0) continue;
    new_piece(v, 0);
    piece(v).last = end_position_;  // a callee's inputs never overlap its outputs
    piece(v).kept = true;
  }
}

void Lifetimes::add_step_outputs(int position) {
  const ir::Node& node = node_at(position);
  const int step = segment_.first_step + position;
  for (int v : node.inputs) {
    if (v == ir::kAbsent) continue;
    PlannedValue& value = plan_.values_[static_cast<size_t>(v)];
    value.last_step = std::max(value.last_step, step);
    // What is larger is alive as long as its parts are.
    PlannedValue& root = plan_.values_[static_cast<size_t>(value.root)];
    if (root.bytes != value.bytes) root.last_step = std::max(root.last_step, step);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const auto v = static_cast<size_t>(node.outputs[i]);
    plan_.values_[v].first_step = early_[v] >= 0 ? early_[v] : step;
    plan_.values_[v].last_step = step;
    add_output(position, node.outputs[i], i == 0);
  }
}

void Lifetimes::add_output(int position, int value, bool may_share) {
  PlannedValue& v = plan_.values_[static_cast<size_t>(value)];
  if (v.storage == Storage::kVariable) return;
  const bool is_result = plan_.is_output(value);
  if (is_result && !plan_.options_.self_contained) {
    v.storage = Storage::kOutput;
    v.root = value;
    return;
  }
  if (share_slot(position, value)) return;
  if (!is_result && share_cut(position, value)) return;
  if (is_result || !may_share || !(share_view(position, value) || share_in_place(position, value))) {
    new_piece(value, position);
    if (is_result) piece(value).last = end_position_;
  }
}

/// `value` begins `shift` bytes after `source`, in the same memory.
void Lifetimes::live_in(int value, int source, int64_t shift) {
  const PlannedValue& from = plan_.values_[static_cast<size_t>(source)];
  PlannedValue& v = plan_.values_[static_cast<size_t>(value)];
  v.storage = from.storage;
  v.segment = from.segment;
  v.root = from.root;
  v.shift = from.shift + shift;
  v.offset = from.offset;
}

/// An input of a later step that is computed in its place there, or a value that has such inputs itself.
bool Lifetimes::share_slot(int position, int value) {
  const Slot slot = slots_.resolve(value);
  if (slot.outer < 0) {
    if (piece_of_[static_cast<size_t>(value)] < 0) return false;  // no input of its own came before it
    extend_piece(value, value, position);
    return true;
  }
  PlannedValue& outer = plan_.values_[static_cast<size_t>(slot.outer)];
  int& early = early_[static_cast<size_t>(slot.outer)];
  if (early < 0) {
    early = segment_.first_step + position;
    const bool is_result = plan_.is_output(slot.outer);
    if (is_result && !plan_.options_.self_contained) {
      outer.storage = Storage::kOutput;
      outer.root = slot.outer;
    } else {
      new_piece(slot.outer, position);
      if (is_result) piece(slot.outer).last = end_position_;
    }
  }
  live_in(value, slot.outer, slot.offset);
  if (outer.storage == Storage::kArena) extend_piece(slot.outer, value, position);
  return true;
}

/// A part of an input that is nobody's result: memory of this segment, or of an input or output of the subgraph.
bool Lifetimes::share_cut(int position, int value) {
  if (!use_parts_[static_cast<size_t>(position)]) return false;
  const ir::Node& node = node_at(position);
  for (const ops::TensorPart& part : segment_.steps[static_cast<size_t>(position)].parts) {
    if (part.joins || node.outputs[static_cast<size_t>(part.inner)] != value) continue;
    const int source = node.inputs[static_cast<size_t>(part.outer)];
    const PlannedValue& from = plan_.values_[static_cast<size_t>(source)];
    const bool here = from.storage == Storage::kArena && from.segment == segment_index_;
    if (!here && from.storage != Storage::kInput && from.storage != Storage::kOutput) return false;
    live_in(value, source, part.offset);
    if (here) extend_piece(from.root, value, position);
    return true;
  }
  return false;
}

bool Lifetimes::share_view(int position, int value) {
  const ir::Node& node = node_at(position);
  if (plan_.host_.find(node)->sharing != ops::Sharing::kView) return false;
  const PlannedValue& source = plan_.values_[static_cast<size_t>(node.inputs[0])];
  PlannedValue& v = plan_.values_[static_cast<size_t>(value)];
  if (source.storage == Storage::kVariable || source.bytes != v.bytes) return false;  // a variable may change meanwhile
  live_in(value, node.inputs[0], 0);
  if (piece_of_[static_cast<size_t>(v.root)] >= 0) extend_piece(v.root, value, position);
  return true;
}

/// Other operands in the memory of `source` are read at the same places, or none of their places is in it.
bool Lifetimes::reads_safely(const ir::Node& node, int source) const {
  const PlannedValue& from = plan_.values_[static_cast<size_t>(source)];
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](int other) {
    if (other == ir::kAbsent) return true;
    const PlannedValue& read = plan_.values_[static_cast<size_t>(other)];
    if (read.root != from.root) return true;
    if (read.shape == from.shape && read.shift == from.shift) return true;
    return read.shift + read.bytes <= from.shift || from.shift + from.bytes <= read.shift;
  });
}

bool Lifetimes::share_in_place(int position, int value) {
  const ir::Node& node = node_at(position);
  if (plan_.options_.preserve_all) return false;
  if (plan_.host_.find(node)->sharing != ops::Sharing::kInPlace) return false;
  PlannedValue& v = plan_.values_[static_cast<size_t>(value)];
  const DType type = plan_.subgraph_.values[static_cast<size_t>(value)].dtype;
  for (int input : node.inputs) {
    if (input == ir::kAbsent) continue;
    const PlannedValue& source = plan_.values_[static_cast<size_t>(input)];
    if (source.storage != Storage::kArena || source.segment != segment_index_ || source.bytes != v.bytes) continue;
    if (dtype_bits(type) != dtype_bits(plan_.subgraph_.values[static_cast<size_t>(input)].dtype)) continue;
    if (source.shape.elements() != v.shape.elements()) continue;
    if (piece(source.root).last != position || piece(source.root).kept) continue;
    if (!reads_safely(node, input)) continue;
    live_in(value, input, 0);
    extend_piece(v.root, value, position);
    return true;
  }
  return false;
}

/// Outputs of a callee that are its own inputs or constants, or listed twice, get a copy at the end.
void Lifetimes::add_output_copies(std::vector<Interval>& intervals, std::vector<size_t>& slots) {
  plan_.output_copies_.clear();
  if (!plan_.options_.self_contained || !plan_.complete()) return;
  const auto& outputs = plan_.subgraph_.outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const PlannedValue& value = plan_.values_[static_cast<size_t>(outputs[i])];
    const bool repeated = std::find(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(i), outputs[i]) !=
                          outputs.begin() + static_cast<std::ptrdiff_t>(i);
    const auto& inputs = plan_.subgraph_.inputs;
    const bool is_input = std::find(inputs.begin(), inputs.end(), outputs[i]) != inputs.end();
    const bool computed_here = value.storage == Storage::kArena && !is_input;
    if (computed_here && !repeated) continue;
    plan_.output_copies_.push_back({static_cast<int>(i), 0, value.bytes});
    slots.push_back(intervals.size());
    intervals.push_back({value.bytes, 0, end_position_});
  }
}

void Lifetimes::find_layout() {
  intervals_.clear();
  copy_slots_.clear();
  for (const Piece& p : pieces_) intervals_.push_back({p.bytes, p.first, p.last});
  add_output_copies(intervals_, copy_slots_);
  tensor_count_ = intervals_.size();
  for (int i = 0; i < static_cast<int>(segment_.steps.size()); ++i) {
    intervals_.push_back({segment_.steps[static_cast<size_t>(i)].scratch_bytes, i, i});
  }
  PlaceOptions options;
  options.alignment = kAlignment;
  if (segment_index_ > 0) options.effort = kRunTimeEffort;
  layout_ = place(intervals_, options);
}

void Lifetimes::use_layout() {
  segment_.arena_bytes = layout_.bytes;
  segment_.lower_bound = layout_.lower_bound;
  segment_.last_use_node = plan_.options_.preserve_all ? static_cast<int>(plan_.subgraph_.nodes.size()) : -1;
  for (size_t i = 0; i < tensor_count_; ++i) {
    segment_.tensor_bytes = std::max(segment_.tensor_bytes, layout_.offsets[i] + align_up(intervals_[i].bytes));
  }
  for (size_t v = 0; v < plan_.values_.size(); ++v) {
    PlannedValue& value = plan_.values_[v];
    if (value.storage != Storage::kArena || value.segment != segment_index_) continue;
    value.offset = layout_.offsets[static_cast<size_t>(piece_of_[static_cast<size_t>(value.root)])] + value.shift;
    segment_.last_use_node = std::max(segment_.last_use_node, plan_.last_use_[v]);
  }
  for (size_t i = 0; i < copy_slots_.size(); ++i) {
    plan_.output_copies_[i].offset = layout_.offsets[copy_slots_[i]];
    segment_.last_use_node = static_cast<int>(plan_.subgraph_.nodes.size());
  }
  std::vector<int64_t> change(segment_.steps.size() + 1, 0);
  for (const Interval& interval : intervals_) {
    if (segment_.steps.empty()) break;
    change[static_cast<size_t>(interval.first)] += align_up(interval.bytes);
    change[static_cast<size_t>(interval.last) + 1] -= align_up(interval.bytes);
  }
  int64_t live = 0;
  for (size_t i = 0; i < segment_.steps.size(); ++i) {
    live += change[i];
    segment_.steps[i].live_bytes = live;
    segment_.steps[i].scratch_offset = layout_.offsets[tensor_count_ + i];
  }
}

}  // namespace leadline::plan
