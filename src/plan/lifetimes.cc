// SPDX-License-Identifier: Apache-2.0
#include "plan/lifetimes.h"

#include <algorithm>

namespace leadline::plan {
namespace {

/// Later segments are planned during every run: a quick layout is worth more than the last byte.
constexpr int64_t kRunTimeEffort = 50'000;

}  // namespace

Lifetimes::Lifetimes(SubgraphPlan& plan)
    : plan_(plan),
      segment_(plan.segments_.back()),
      segment_index_(static_cast<int>(plan.segments_.size()) - 1),
      end_position_(std::max(0, static_cast<int>(segment_.steps.size()) - 1)),
      piece_of_(plan.values_.size(), -1) {}

void Lifetimes::assign() {
  if (segment_index_ == 0) add_inputs();
  for (int position = 0; position < static_cast<int>(segment_.steps.size()); ++position) add_step_outputs(position);
  place_all();
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
  const ir::Node& node = plan_.subgraph_.nodes[static_cast<size_t>(segment_.steps[static_cast<size_t>(position)].node)];
  const int step = segment_.first_step + position;
  for (int v : node.inputs) {
    if (v == ir::kAbsent) continue;
    PlannedValue& value = plan_.values_[static_cast<size_t>(v)];
    value.last_step = std::max(value.last_step, step);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    plan_.values_[static_cast<size_t>(node.outputs[i])].first_step = step;
    plan_.values_[static_cast<size_t>(node.outputs[i])].last_step = step;
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
  if (is_result || !may_share || !(share_view(position, value) || share_in_place(position, value))) {
    new_piece(value, position);
    if (is_result) piece(value).last = end_position_;
  }
}

bool Lifetimes::share_view(int position, int value) {
  const ir::Node& node = plan_.subgraph_.nodes[static_cast<size_t>(segment_.steps[static_cast<size_t>(position)].node)];
  if (plan_.host_.find(node)->sharing != ops::Sharing::kView) return false;
  const PlannedValue& source = plan_.values_[static_cast<size_t>(node.inputs[0])];
  PlannedValue& v = plan_.values_[static_cast<size_t>(value)];
  if (source.storage == Storage::kVariable || source.bytes != v.bytes) return false;  // a variable may change meanwhile
  v.storage = source.storage;
  v.segment = source.segment;
  v.root = source.root;
  v.offset = source.offset;
  if (piece_of_[static_cast<size_t>(v.root)] >= 0) extend_piece(v.root, value, position);
  return true;
}

bool Lifetimes::share_in_place(int position, int value) {
  const ir::Node& node = plan_.subgraph_.nodes[static_cast<size_t>(segment_.steps[static_cast<size_t>(position)].node)];
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
    // Another operand in the same memory must be read at the same places.
    const bool safe = std::all_of(node.inputs.begin(), node.inputs.end(), [&](int other) {
      if (other == ir::kAbsent || plan_.values_[static_cast<size_t>(other)].root != source.root) return true;
      return plan_.values_[static_cast<size_t>(other)].shape == source.shape;
    });
    if (!safe) continue;
    v.storage = Storage::kArena;
    v.segment = segment_index_;
    v.root = source.root;
    extend_piece(v.root, value, position);
    return true;
  }
  return false;
}

/// Outputs of a callee that are its own inputs or constants, or listed twice, get a copy at the end.
void Lifetimes::add_output_copies(std::vector<Interval>& intervals, std::vector<size_t>& slots) {
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

void Lifetimes::place_all() {
  std::vector<Interval> intervals;
  for (const Piece& p : pieces_) intervals.push_back({p.bytes, p.first, p.last});
  std::vector<size_t> copy_slots;
  add_output_copies(intervals, copy_slots);
  const size_t tensor_count = intervals.size();
  for (int i = 0; i < static_cast<int>(segment_.steps.size()); ++i) {
    intervals.push_back({segment_.steps[static_cast<size_t>(i)].scratch_bytes, i, i});
  }
  PlaceOptions options;
  options.alignment = kAlignment;
  if (segment_index_ > 0) options.effort = kRunTimeEffort;
  const Layout layout = place(intervals, options);

  segment_.arena_bytes = layout.bytes;
  segment_.lower_bound = layout.lower_bound;
  segment_.last_use_node = plan_.options_.preserve_all ? static_cast<int>(plan_.subgraph_.nodes.size()) : -1;
  for (size_t i = 0; i < tensor_count; ++i) {
    segment_.tensor_bytes = std::max(segment_.tensor_bytes, layout.offsets[i] + align_up(intervals[i].bytes));
  }
  for (size_t v = 0; v < plan_.values_.size(); ++v) {
    PlannedValue& value = plan_.values_[v];
    if (value.storage != Storage::kArena || value.segment != segment_index_) continue;
    value.offset = layout.offsets[static_cast<size_t>(piece_of_[static_cast<size_t>(value.root)])];
    segment_.last_use_node = std::max(segment_.last_use_node, plan_.last_use_[v]);
  }
  for (size_t i = 0; i < copy_slots.size(); ++i) {
    plan_.output_copies_[i].offset = layout.offsets[copy_slots[i]];
    segment_.last_use_node = static_cast<int>(plan_.subgraph_.nodes.size());
  }
  std::vector<int64_t> change(segment_.steps.size() + 1, 0);
  for (const Interval& interval : intervals) {
    if (segment_.steps.empty()) break;
    change[static_cast<size_t>(interval.first)] += align_up(interval.bytes);
    change[static_cast<size_t>(interval.last) + 1] -= align_up(interval.bytes);
  }
  int64_t live = 0;
  for (size_t i = 0; i < segment_.steps.size(); ++i) {
    live += change[i];
    segment_.steps[i].live_bytes = live;
    segment_.steps[i].scratch_offset = layout.offsets[tensor_count + i];
  }
}

}  // namespace leadline::plan
