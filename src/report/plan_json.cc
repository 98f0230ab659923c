// SPDX-License-Identifier: Apache-2.0
// A Plan as JSON: every field, under the names of leadline/plan.h. Written piece by piece: a document in memory would
// take many times the plan's size, in blocks of a few bytes.
#include <fmt/core.h>

#include <algorithm>
#include <concepts>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "core/cancel.h"
#include "io/json.h"
#include "leadline/plan.h"
#include "report/plan_peak.h"

namespace leadline {
namespace {

/// "[...]": `add(element)` appends one.
template <typename List, typename Add>
void add_list(std::string& json, const List& list, const Add& add) {
  PacedCheck check;
  json += '[';
  for (auto it = list.begin(); it != list.end(); ++it) {
    if (it != list.begin()) json += ',';
    const size_t before = json.size();
    add(*it);
    check.count(static_cast<int64_t>(json.size() - before));
  }
  json += ']';
}

/// "{...}" at the end of a text, field by field.
class Object {
 public:
  explicit Object(std::string& json) : json_(json) { json_ += '{'; }

  Object& field(std::string_view name, std::integral auto value) {
    begin(name);
    fmt::format_to(std::back_inserter(json_), "{}", value);
    return *this;
  }
  Object& field(std::string_view name, std::string_view text) {
    begin(name);
    append_json_text(json_, text);
    return *this;
  }
  Object& field(std::string_view name, const char* text) { return field(name, std::string_view(text)); }
  template <typename List, typename Add>
  Object& list(std::string_view name, const List& values, const Add& add) {
    begin(name);
    add_list(json_, values, add);
    return *this;
  }
  template <typename List>
  Object& numbers(std::string_view name, const List& values) {
    return list(name, values, [&](auto value) { fmt::format_to(std::back_inserter(json_), "{}", value); });
  }
  Object& categories(const std::vector<CategoryBytes>& categories) {
    begin("categories");
    Object object(json_);
    for (const CategoryBytes& c : categories) object.field(memory_category_name(c.category), c.bytes);
    object.end();
    return *this;
  }
  void end() { json_ += '}'; }

 private:
  void begin(std::string_view name) {
    if (json_.back() != '{') json_ += ',';
    json_ += '"';
    json_ += name;
    json_ += "\":";
  }

  std::string& json_;
};

void add_step(std::string& json, const PlannedStep& step) {
  Object(json)
      .field("node", step.node)
      .field("op", step.op)
      .field("name", step.name)
      .numbers("inputs", step.inputs)
      .numbers("outputs", step.outputs)
      .field("segment", step.segment)
      .field("scratch_bytes", step.scratch_bytes)
      .numbers("merged", step.merged)
      .field("scratch_offset", step.scratch_offset)
      .field("packed_bytes", step.packed_bytes)
      .field("persistent_bytes", step.persistent_bytes)
      .field("live_bytes", step.live_bytes)
      .end();
}

void add_tensor(std::string& json, const PlannedTensor& tensor) {
  Object(json)
      .field("index", tensor.index)
      .field("name", tensor.name)
      .field("dtype", dtype_name(tensor.dtype))
      .numbers("shape", tensor.shape)
      .field("bytes", tensor.bytes)
      .field("storage", storage_name(tensor.storage))
      .field("offset", tensor.offset)
      .field("segment", tensor.segment)
      .field("first_step", tensor.first_step)
      .field("last_step", tensor.last_step)
      .field("shares_with", tensor.shares_with)
      .field("bound", tensor.bound)
      .end();
}

void add_phase(std::string& json, const PlannedPhase& phase) {
  Object(json).field("name", phase.name).field("bytes", phase.bytes).categories(phase.categories).end();
}

void add_segment(std::string& json, const PlannedSegment& segment) {
  Object(json)
      .field("first_step", segment.first_step)
      .field("last_step", segment.last_step)
      .field("arena_bytes", segment.arena_bytes)
      .field("lower_bound_bytes", segment.lower_bound_bytes)
      .end();
}

}  // namespace

const char* storage_name(Storage storage) noexcept {
  switch (storage) {
    case Storage::kConstant:
      return "constant";
    case Storage::kFolded:
      return "folded";
    case Storage::kInput:
      return "input";
    case Storage::kOutput:
      return "output";
    case Storage::kVariable:
      return "variable";
    case Storage::kArena:
      return "arena";
    case Storage::kUnplanned:
      return "unplanned";
  }
  return "unknown";
}

std::string Plan::to_json() const {
  std::string json;
  Object(json)
      .field("complete", complete)
      .field("threads", threads)
      .field("units", units == ByteUnits::kDecimal ? "decimal" : "binary")
      .field("peak_bytes", peak_bytes)
      .field("bound_bytes", bound_bytes)
      .field("arena_bytes", arena_bytes)
      .field("lower_bound_bytes", lower_bound_bytes)
      .field("recompute_bytes", recompute_bytes)
      .field("peak_step", report::peak_step(*this))
      .list("missing_ops", missing_ops, [&](const std::string& op) { append_json_text(json, op); })
      .categories(categories)
      .list("phases", phases, [&](const PlannedPhase& phase) { add_phase(json, phase); })
      .list("segments", segments, [&](const PlannedSegment& segment) { add_segment(json, segment); })
      .list("steps", steps, [&](const PlannedStep& step) { add_step(json, step); })
      .list("tensors", tensors, [&](const PlannedTensor& tensor) { add_tensor(json, tensor); })
      .end();
  return json;
}

}  // namespace leadline
