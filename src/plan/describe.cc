// SPDX-License-Identifier: Apache-2.0
#include "plan/describe.h"

#include <algorithm>

namespace leadline::plan {
namespace {

PlannedPhase phase(const char* name, const std::array<int64_t, kMemoryCategoryCount>& bytes) {
  PlannedPhase result;
  result.name = name;
  for (int c = 0; c < kMemoryCategoryCount; ++c) {
    const int64_t size = bytes[static_cast<size_t>(c)];
    if (size == 0) continue;
    result.categories.push_back({static_cast<MemoryCategory>(c), size});
    result.bytes += size;
  }
  return result;
}

PlannedTensor describe_value(const ir::Value& source, const PlannedValue& value, int index) {
  PlannedTensor tensor;
  tensor.index = index;
  tensor.name = source.name;
  tensor.dtype = source.dtype;
  tensor.shape = value.shape_known ? value.shape : source.shape;
  tensor.bytes = value.bytes;
  tensor.storage = value.storage;
  tensor.first_step = value.first_step;
  tensor.last_step = value.last_step;
  if (value.root != index) tensor.shares_with = value.root;
  if (value.storage == Storage::kArena) {
    tensor.offset = value.offset;
    tensor.segment = value.segment;
  }
  return tensor;
}

}  // namespace

Plan describe(const Outline& outline, const SubgraphPlan& plan, const PlannedTotals& totals, int threads) {
  Plan result;
  result.threads = threads;
  result.complete = plan.complete;
  const ir::Subgraph& subgraph = outline.subgraph();
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    const Segment& segment = plan.segments[s];
    PlannedSegment planned;
    planned.first_step = segment.first_step;
    planned.last_step = segment.first_step + static_cast<int>(segment.steps.size()) - 1;
    planned.arena_bytes = segment.arena_bytes;
    planned.lower_bound_bytes = segment.lower_bound;
    result.segments.push_back(planned);
    result.arena_bytes += segment.arena_bytes;
    result.lower_bound_bytes += segment.lower_bound;
    for (const Step& step : segment.steps) {
      const ir::Node& node = outline.node(step.node);
      PlannedStep described;
      described.node = step.node;
      described.op = node.op.name();
      if (!node.outputs.empty()) described.name = subgraph.value(node.outputs[0]).name;
      described.inputs = node.inputs;
      described.outputs = node.outputs;
      if (const ir::ChangedNode* changed = outline.changed(step.node)) described.merged = changed->merged;
      described.segment = static_cast<int>(s);
      described.scratch_bytes = step.scratch_bytes;
      if (step.scratch_bytes > 0) described.scratch_offset = step.scratch_offset;
      described.packed_bytes = step.packed_bytes;
      described.persistent_bytes = step.persistent_bytes;
      described.live_bytes = step.live_bytes;
      result.steps.push_back(std::move(described));
    }
  }
  for (size_t v = 0; v < plan.values.size(); ++v) {
    result.tensors.push_back(describe_value(subgraph.values[v], plan.values[v], static_cast<int>(v)));
  }
  result.phases = {phase("load", totals.load), phase("prepare", totals.prepare), phase("run", totals.peak)};
  result.categories = result.phases.back().categories;
  result.peak_bytes = result.phases.back().bytes;
  return result;
}

}  // namespace leadline::plan
