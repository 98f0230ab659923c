// SPDX-License-Identifier: Apache-2.0
#include "plan/segment_layout.h"

#include <algorithm>
#include <utility>

#include "core/buffer.h"
#include "plan/arena.h"
#include "plan/lifetimes.h"

namespace leadline::plan {
namespace {

/// Later segments are planned during every run: a quick layout is worth more than the last byte.
constexpr int64_t kRunTimeEffort = 50'000;
/// Steps with parts that are tried one by one; where there are more, it is all of them or none.
constexpr std::ptrdiff_t kMostTrials = 64;

/// Outputs of a callee that are its own inputs or constants, or listed twice, get a copy at the end.
std::vector<OutputCopy> find_output_copies(const ir::Subgraph& subgraph, const Lifetimes& lifetimes) {
  std::vector<OutputCopy> copies;
  const std::vector<int>& inputs = subgraph.inputs;
  const std::vector<int>& outputs = subgraph.outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const PlannedValue& value = lifetimes.value(outputs[i]);
    const auto here = outputs.begin() + static_cast<std::ptrdiff_t>(i);
    const bool repeated = std::find(outputs.begin(), here, outputs[i]) != here;
    const bool is_input = std::find(inputs.begin(), inputs.end(), outputs[i]) != inputs.end();
    const bool computed_here = value.storage == Storage::kArena && !is_input;
    if (!computed_here || repeated) copies.push_back({static_cast<int>(i), 0, value.bytes});
  }
  return copies;
}

class LayoutFinder {
 public:
  LayoutFinder(const Outline& outline, const PlanOptions& options, const SubgraphPlan& plan, const Segment& segment)
      : outline_(outline),
        options_(options),
        plan_(plan),
        segment_(segment),
        segment_index_(static_cast<int>(plan.segments.size())),
        lifetimes_(outline, options, plan, segment) {}

  SegmentLayout find() {
    const std::vector<bool> none(segment_.steps.size(), false);
    const bool parts =
        std::any_of(segment_.steps.begin(), segment_.steps.end(), [](const Step& step) { return !step.parts.empty(); });
    const int64_t most = lifetimes_.assign(none);
    place_pieces();
    if (parts && options_.share_parts && !options_.preserve_all) share_parts(most);
    return result();
  }

 private:
  /// Chooses the steps whose inputs or outputs lie inside each other: as many as leave the arena no larger than it is
  /// without. `most` bytes are alive at one step then.
  void share_parts(int64_t most) {
    const int64_t plain_bytes = layout_.bytes;
    const std::vector<bool> none(segment_.steps.size(), false);
    std::vector<bool> use(segment_.steps.size());
    for (size_t i = 0; i < use.size(); ++i) use[i] = !segment_.steps[i].parts.empty();
    if (const auto steps = std::count(use.begin(), use.end(), true); lifetimes_.assign(use) > most) {
      const std::vector<bool> candidates = std::exchange(use, none);
      for (size_t i = 0; steps <= kMostTrials && i < candidates.size(); ++i) {
        if (!candidates[i]) continue;
        use[i] = true;
        const int64_t live = lifetimes_.assign(use);
        use[i] = live <= most;
        most = std::min(most, live);
      }
      lifetimes_.assign(use);
    }
    place_pieces();
    if (layout_.bytes <= plain_bytes) return;
    lifetimes_.assign(none);
    place_pieces();
  }

  /// Offsets for the pieces, the copies of outputs and the scratch of each step, in this order.
  void place_pieces() {
    intervals_.clear();
    for (const Piece& p : lifetimes_.pieces()) intervals_.push_back({p.bytes, p.first, p.last});
    copies_.clear();
    if (options_.self_contained && plan_.complete) {
      copies_ = find_output_copies(outline_.subgraph(), lifetimes_);
    }
    for (const OutputCopy& copy : copies_) intervals_.push_back({copy.bytes, 0, lifetimes_.end_position()});
    for (int i = 0; i < static_cast<int>(segment_.steps.size()); ++i) {
      intervals_.push_back({segment_.steps[static_cast<size_t>(i)].scratch_bytes, i, i});
    }
    PlaceOptions options;
    options.alignment = kAlignment;
    if (segment_index_ > 0) options.effort = kRunTimeEffort;
    layout_ = place(intervals_, options);
  }

  /// Takes the values from `lifetimes_`, which has no use for them after this.
  SegmentLayout result() {
    SegmentLayout result;
    result.values = lifetimes_.take_values();
    result.output_copies = copies_;
    result.arena_bytes = layout_.bytes;
    result.lower_bound = layout_.lower_bound;
    result.last_use_node = options_.preserve_all || !copies_.empty() ? outline_.node_count() : -1;
    const size_t pieces = lifetimes_.pieces().size();
    const size_t tensors = pieces + copies_.size();
    for (size_t i = 0; i < tensors; ++i) {
      result.tensor_bytes = std::max(result.tensor_bytes, layout_.offsets[i] + align_up(intervals_[i].bytes));
    }
    for (size_t i = 0; i < result.values.size(); ++i) {
      const int v = lifetimes_.rows().value(i);
      result.changed.push_back(v);
      PlannedValue& value = result.values[i];
      if (value.storage != Storage::kArena || value.segment != segment_index_) continue;
      value.offset = layout_.offsets[static_cast<size_t>(lifetimes_.piece_of(value.root))] + value.shift;
      result.last_use_node = std::max(result.last_use_node, outline_.last_use(v));
    }
    for (size_t i = 0; i < copies_.size(); ++i) result.output_copies[i].offset = layout_.offsets[pieces + i];
    result.steps.resize(segment_.steps.size());
    if (segment_.steps.empty()) return result;
    std::vector<int64_t> change(segment_.steps.size() + 1, 0);
    for (const Interval& interval : intervals_) {
      change[static_cast<size_t>(interval.first)] += align_up(interval.bytes);
      change[static_cast<size_t>(interval.last) + 1] -= align_up(interval.bytes);
    }
    int64_t live = 0;
    for (size_t i = 0; i < segment_.steps.size(); ++i) {
      live += change[i];
      result.steps[i] = {layout_.offsets[tensors + i], live};
    }
    return result;
  }

  const Outline& outline_;
  const PlanOptions& options_;
  const SubgraphPlan& plan_;
  const Segment& segment_;
  const int segment_index_;
  Lifetimes lifetimes_;
  std::vector<OutputCopy> copies_;
  std::vector<Interval> intervals_;
  Layout layout_;
};

}  // namespace

void SegmentLayout::append_to(SubgraphPlan& plan, Segment segment) {
  segment.arena_bytes = arena_bytes;
  segment.tensor_bytes = tensor_bytes;
  segment.lower_bound = lower_bound;
  segment.last_use_node = last_use_node;
  for (size_t i = 0; i < steps.size(); ++i) {
    segment.steps[i].scratch_offset = steps[i].scratch_offset;
    segment.steps[i].live_bytes = steps[i].live_bytes;
  }
  plan.segments.push_back(std::move(segment));
  for (size_t i = 0; i < changed.size(); ++i) plan.value(changed[i]) = std::move(values[i]);
  plan.output_copies = std::move(output_copies);
}

SegmentLayout lay_out(const Outline& outline, const PlanOptions& options, const SubgraphPlan& plan,
                      const Segment& segment) {
  return LayoutFinder(outline, options, plan, segment).find();
}

}  // namespace leadline::plan
