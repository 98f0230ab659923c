// SPDX-License-Identifier: Apache-2.0
#include "plan/lifetimes.h"

#include <algorithm>

#include "core/buffer.h"

namespace leadline::plan {

Lifetimes::Lifetimes(const Outline& outline, const PlanOptions& options, const SubgraphPlan& plan,
                     const Segment& segment)
    : outline_(outline),
      options_(options),
      plan_(plan),
      segment_(segment),
      segment_index_(static_cast<int>(plan.segments.size())),
      end_position_(std::max(0, static_cast<int>(segment.steps.size()) - 1)),
      rows_(outline, plan, segment),
      slots_(outline, plan, segment, rows_) {}

int64_t Lifetimes::assign(const std::vector<bool>& use_parts) {
  values_.resize(rows_.size());
  for (size_t i = 0; i < rows_.size(); ++i) values_[i] = plan_.value(rows_.value(i));
  use_parts_ = use_parts;
  slots_.assign(use_parts);
  pieces_.clear();
  piece_of_.assign(values_.size(), -1);
  early_.assign(values_.size(), -1);
  if (segment_index_ == 0) add_inputs();
  for (int position = 0; position < static_cast<int>(segment_.steps.size()); ++position) add_step_outputs(position);
  return most_alive();
}

int64_t Lifetimes::most_alive() const {
  std::vector<int64_t> change(segment_.steps.size() + 2, 0);
  for (const Piece& p : pieces_) {
    change[static_cast<size_t>(p.first)] += align_up(p.bytes);
    change[static_cast<size_t>(p.last) + 1] -= align_up(p.bytes);
  }
  int64_t most = 0;
  int64_t now = 0;
  for (size_t i = 0; i < segment_.steps.size(); ++i) {
    now += change[i];
    most = std::max(most, now + align_up(segment_.steps[i].scratch_bytes));
  }
  return most;
}

bool Lifetimes::is_kept(int value) const {
  return options_.preserve_all || outline_.last_use(value) >= plan_.next_node;
}

/// The position in this segment at which `value` is read last; the end where later nodes or the caller read it.
int Lifetimes::last_position(int value, int first) const {
  const int last_node = outline_.last_use(value);
  if (is_kept(value)) return end_position_;
  const auto after = std::upper_bound(segment_.steps.begin(), segment_.steps.end(), last_node,
                                      [](int node, const Step& step) { return node < step.node; });
  return std::max(first, static_cast<int>(after - segment_.steps.begin()) - 1);
}

void Lifetimes::new_piece(int value, int first) {
  PlannedValue& v = planned(value);
  v.storage = Storage::kArena;
  v.segment = segment_index_;
  v.root = value;
  piece_of_[rows_.row(value)] = static_cast<int>(pieces_.size());
  pieces_.push_back({v.bytes, first, last_position(value, first), is_kept(value)});
}

/// `value` lives in the piece of `root` from `position` on.
void Lifetimes::extend_piece(int root, int value, int position) {
  Piece& p = piece(root);
  p.last = std::max(p.last, last_position(value, position));
  p.kept = p.kept || is_kept(value);
}

void Lifetimes::add_inputs() {
  const int node_count = static_cast<int>(outline_.subgraph().nodes.size());
  for (int v : outline_.subgraph().inputs) {
    PlannedValue& value = planned(v);
    value.last_step = outline_.last_use(v) >= node_count ? node_count : value.last_step;
    if (value.storage != Storage::kArena || piece_of(v) >= 0) continue;
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
    PlannedValue& value = planned(v);
    value.last_step = std::max(value.last_step, step);
    // What is larger is alive as long as its parts are.
    PlannedValue& root = planned(value.root);
    if (root.bytes != value.bytes) root.last_step = std::max(root.last_step, step);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const size_t row = rows_.row(node.outputs[i]);
    values_[row].first_step = early_[row] >= 0 ? early_[row] : step;
    values_[row].last_step = step;
    add_output(position, node.outputs[i], i == 0);
  }
}

void Lifetimes::add_output(int position, int value, bool may_share) {
  PlannedValue& v = planned(value);
  if (v.storage == Storage::kVariable) return;
  const bool is_result = outline_.is_output(value);
  if (is_result && !options_.self_contained) {
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
  const PlannedValue& from = planned(source);
  PlannedValue& v = planned(value);
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
    if (piece_of(value) < 0) return false;  // no input of its own came before it
    extend_piece(value, value, position);
    return true;
  }
  PlannedValue& outer = planned(slot.outer);
  int& early = early_[rows_.row(slot.outer)];
  if (early < 0) {
    early = segment_.first_step + position;
    const bool is_result = outline_.is_output(slot.outer);
    if (is_result && !options_.self_contained) {
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

/// A part of an input that no node computes: memory of this segment, or of an input or output of the subgraph.
bool Lifetimes::share_cut(int position, int value) {
  if (!use_parts_[static_cast<size_t>(position)]) return false;
  const ir::Node& node = node_at(position);
  for (const ops::TensorPart& part : step_at(position).parts) {
    if (part.joins || node.outputs[static_cast<size_t>(part.inner)] != value) continue;
    const int source = node.inputs[static_cast<size_t>(part.outer)];
    const PlannedValue& from = planned(source);
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
  if (sharing_at(position) != ops::Sharing::kView) return false;
  const PlannedValue& source = planned(node.inputs[0]);
  PlannedValue& v = planned(value);
  if (source.storage == Storage::kVariable || source.bytes != v.bytes) return false;  // a variable may change meanwhile
  live_in(value, node.inputs[0], 0);
  if (piece_of(v.root) >= 0) extend_piece(v.root, value, position);
  return true;
}

/// Other operands in the memory of `source` are read at the same places, or none of their places is in it.
bool Lifetimes::reads_safely(const ir::Node& node, int source) const {
  const PlannedValue& from = planned(source);
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](int other) {
    if (other == ir::kAbsent) return true;
    const PlannedValue& read = planned(other);
    if (read.root != from.root) return true;
    if (read.shape == from.shape && read.shift == from.shift) return true;
    return read.shift + read.bytes <= from.shift || from.shift + from.bytes <= read.shift;
  });
}

bool Lifetimes::share_in_place(int position, int value) {
  const ir::Node& node = node_at(position);
  if (options_.preserve_all) return false;
  if (sharing_at(position) != ops::Sharing::kInPlace) return false;
  PlannedValue& v = planned(value);
  const DType type = outline_.subgraph().value(value).dtype;
  for (int input : node.inputs) {
    if (input == ir::kAbsent) continue;
    const PlannedValue& source = planned(input);
    if (source.storage != Storage::kArena || source.segment != segment_index_ || source.bytes != v.bytes) continue;
    if (dtype_bits(type) != dtype_bits(outline_.subgraph().value(input).dtype)) continue;
    if (source.shape.elements() != v.shape.elements()) continue;
    if (piece(source.root).last != position || piece(source.root).kept) continue;
    if (!reads_safely(node, input)) continue;
    live_in(value, input, 0);
    extend_piece(v.root, value, position);
    return true;
  }
  return false;
}

}  // namespace leadline::plan
