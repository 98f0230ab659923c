// SPDX-License-Identifier: Apache-2.0
// A Plan as JSON: every field, under the names of leadline/plan.h.
#include <string>
#include <vector>

#include "base/json.h"
#include "leadline/plan.h"
#include "plan/report_peak.h"

namespace leadline {
namespace {

using Json = OrderedJson;

Json categories_json(const std::vector<CategoryBytes>& categories) {
  Json result = Json::object();
  for (const CategoryBytes& c : categories) result[memory_category_name(c.category)] = c.bytes;
  return result;
}

Json step_json(const PlannedStep& step) {
  return json_object({{"node", step.node},
                      {"op", step.op},
                      {"name", step.name},
                      {"inputs", step.inputs},
                      {"outputs", step.outputs},
                      {"segment", step.segment},
                      {"scratch_bytes", step.scratch_bytes},
                      {"merged", step.merged},
                      {"scratch_offset", step.scratch_offset},
                      {"packed_bytes", step.packed_bytes},
                      {"kept_bytes", step.kept_bytes},
                      {"live_bytes", step.live_bytes}});
}

Json tensor_json(const PlannedTensor& tensor) {
  Json shape = Json::array();
  for (const int64_t size : tensor.shape) shape.push_back(size);
  return json_object({{"index", tensor.index},
                      {"name", tensor.name},
                      {"dtype", dtype_name(tensor.dtype)},
                      {"shape", std::move(shape)},
                      {"bytes", tensor.bytes},
                      {"storage", storage_name(tensor.storage)},
                      {"offset", tensor.offset},
                      {"segment", tensor.segment},
                      {"first_step", tensor.first_step},
                      {"last_step", tensor.last_step},
                      {"shares_with", tensor.shares_with},
                      {"bound", tensor.bound}});
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
  Json json = json_object({{"complete", complete},
                           {"threads", threads},
                           {"peak_bytes", peak_bytes},
                           {"bound_bytes", bound_bytes},
                           {"arena_bytes", arena_bytes},
                           {"lower_bound_bytes", lower_bound_bytes},
                           {"peak_step", plan::peak_step(*this)},
                           {"missing_ops", missing_ops},
                           {"categories", categories_json(categories)}});
  json["phases"] = Json::array();
  for (const PlannedPhase& phase : phases) {
    json["phases"].push_back(
        json_object({{"name", phase.name}, {"bytes", phase.bytes}, {"categories", categories_json(phase.categories)}}));
  }
  json["segments"] = Json::array();
  for (const PlannedSegment& segment : segments) {
    json["segments"].push_back(json_object({{"first_step", segment.first_step},
                                            {"last_step", segment.last_step},
                                            {"arena_bytes", segment.arena_bytes},
                                            {"lower_bound_bytes", segment.lower_bound_bytes}}));
  }
  json["steps"] = Json::array();
  for (const PlannedStep& step : steps) json["steps"].push_back(step_json(step));
  json["tensors"] = Json::array();
  for (const PlannedTensor& tensor : tensors) json["tensors"].push_back(tensor_json(tensor));
  // Names that are not UTF-8 get the replacement character; ASCII only, so that no consumer can misread the rest.
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace leadline
