// SPDX-License-Identifier: Apache-2.0
// A DebugResult as JSON (every field, under the names of leadline/debug_result.h) and as CSV.
#include <fmt/core.h>

#include <cmath>
#include <string>

#include "core/cancel.h"
#include "io/json.h"
#include "leadline/debug_result.h"
#include "report/job_plan.h"

namespace leadline {
namespace {

Json shape_json(const Shape& shape) {
  Json result = Json::array();
  for (int64_t size : shape) result.push_back(size);
  return result;
}

Json error_json(const ErrorStatistics& e) {
  return {{"elements", e.elements},
          {"not_finite", e.not_finite},
          {"broken", e.broken},
          {"mean_error", e.mean_error},
          {"stddev", e.stddev},
          {"max_abs_error", e.max_abs_error},
          {"mean_squared_error", e.mean_squared_error},
          {"rmse", e.rmse},
          {"rmse_over_scale", e.rmse_over_scale},
          {"cosine", e.cosine},
          {"snr_db", e.snr_db},
          {"lost_signal", e.lost_signal}};
}

Json measure_json(const DebugMeasure& m) {
  return {{"error", m.error},           {"cosine", m.cosine}, {"same_argmax", m.same_argmax},
          {"divergence", m.divergence}, {"rows", m.rows},     {"file_bytes", m.file_bytes},
          {"seconds", m.seconds}};
}

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json optional_json(const std::optional<ErrorStatistics>& e) { return e ? error_json(*e) : Json(nullptr); }

Json weight_json(const WeightError& w) {
  return {{"input", w.input},
          {"name", w.name},
          {"dtype", dtype_name(w.dtype)},
          {"shape", shape_json(w.shape)},
          {"channels", w.channels},
          {"scales", w.scales},
          {"rmse", w.rmse},
          {"max_abs_error", w.max_abs_error},
          {"snr_db", w.snr_db},
          {"worst_channel", w.worst_channel},
          {"worst_lost_signal", w.worst_lost_signal},
          {"peak_channel", w.peak_channel},
          {"peak", w.peak},
          {"largest_channel", w.largest_channel},
          {"channel_spread", w.channel_spread}};
}

Json channel_json(const ChannelError& c) {
  return {{"channel", c.channel},
          {"mean_error", c.mean_error},
          {"rmse", c.rmse},
          {"max_abs_error", c.max_abs_error},
          {"lost_signal", c.lost_signal},
          {"min", c.min},
          {"max", c.max}};
}

Json histogram_json(const DebugHistogram& h) {
  return {{"min", h.min},
          {"max", h.max},
          {"reference", h.reference},
          {"quantized", h.quantized},
          {"reference_below", h.reference_below},
          {"reference_above", h.reference_above},
          {"quantized_below", h.quantized_below},
          {"quantized_above", h.quantized_above}};
}

Json layer_json(const LayerDebug& layer) {
  Json json = {{"index", layer.index},
               {"subgraph", layer.subgraph},
               {"node", layer.node},
               {"tensor", layer.tensor},
               {"float_node", layer.float_node},
               {"float_tensor", layer.float_tensor},
               {"op", layer.op},
               {"name", layer.name},
               {"float_name", layer.float_name},
               {"layer", layer.layer},
               {"weakness", layer.weakness},
               {"dtype", dtype_name(layer.dtype)},
               {"shape", shape_json(layer.shape)},
               {"scales", layer.scales},
               {"zero_points", layer.zero_points},
               {"is_output", layer.is_output},
               {"quantized", layer.quantized},
               {"inputs", layer.inputs},
               {"own", optional_json(layer.own)},
               {"accumulated", optional_json(layer.accumulated)},
               {"effect", layer.effect ? Json(*layer.effect) : Json(nullptr)},
               {"region", layer.region},
               {"saturated", layer.saturated},
               {"range_min", layer.range_min},
               {"range_max", layer.range_max},
               {"seen_min", layer.seen_min},
               {"seen_max", layer.seen_max},
               {"levels_used", layer.levels_used},
               {"channels", layer.channels}};
  json["worst_channels"] = Json::array();
  for (const ChannelError& channel : layer.worst_channels) json["worst_channels"].push_back(channel_json(channel));
  json["weights"] = Json::array();
  for (const WeightError& weight : layer.weights) json["weights"].push_back(weight_json(weight));
  json["histogram"] = layer.histogram ? histogram_json(*layer.histogram) : Json(nullptr);
  json["note"] = layer.note;
  return json;
}

/// A name of a model as a cell. A leading apostrophe keeps spreadsheets from computing what looks like a formula.
std::string csv_cell(const std::string& name) {
  std::string text = printable(name);
  if (text.find_first_of("=+-@") == 0) text.insert(0, 1, '\'');
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string result = "\"";
  for (char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + '"';
}

std::string csv_errors(const std::optional<ErrorStatistics>& e) {
  if (!e) return ",,,,,,,,,";
  return fmt::format("{},{},{},{},{},{},{},{},{},{}", e->elements, e->not_finite, e->stddev, e->mean_error,
                     e->max_abs_error, e->mean_squared_error, e->rmse_over_scale, e->cosine, e->snr_db, e->lost_signal);
}

}  // namespace

std::string DebugResult::to_json() const {
  Json json = {{"samples", samples},
               {"float_bytes", float_bytes},
               {"quantized_bytes", quantized_bytes},
               {"rounding_yardstick", kRoundingYardstick},
               {"plan", report::plan_json(plan)}};
  json["outputs"] = Json::array();
  for (const DebugOutput& output : outputs) {
    json["outputs"].push_back({{"name", output.name},
                               {"layer", output.layer},
                               {"accumulated", error_json(output.accumulated)},
                               {"same_argmax", output.same_argmax},
                               {"clearly_other", output.clearly_other},
                               {"divergence", output.divergence},
                               {"rows", output.rows}});
  }
  json["suspects"] = Json::array();
  for (const DebugSuspect& suspect : suspects) {
    json["suspects"].push_back({{"layer", suspect.layer},
                                {"score", suspect.score},
                                {"kind", suspect.kind},
                                {"why", suspect.why},
                                {"try_this", suspect.try_this}});
  }
  json["regions"] = Json::array();
  for (const DebugRegion& region : regions) {
    json["regions"].push_back({{"name", region.name},
                               {"parent", region.parent},
                               {"nodes", region.nodes},
                               {"layers", region.layers},
                               {"effect", region.effect},
                               {"cosine", region.cosine},
                               {"weights_effect", optional_json(region.weights_effect)},
                               {"values_effect", optional_json(region.values_effect)}});
  }
  json["error"] = optional_json(error);
  json["weights_error"] = optional_json(weights_error);
  json["values_error"] = optional_json(values_error);
  json["suggestions"] = Json::array();
  for (const DebugSuggestion& suggestion : suggestions) {
    json["suggestions"].push_back({{"kind", suggestion.kind},
                                   {"what", suggestion.what},
                                   {"recipe", parse_json(suggestion.recipe)},
                                   {"recalibrate", suggestion.recalibrate},
                                   {"before", measure_json(suggestion.before)},
                                   {"after", measure_json(suggestion.after)},
                                   {"samples", suggestion.samples},
                                   {"held_out", suggestion.held_out}});
  }
  json["changes_tried"] = changes_tried;
  json["notes"] = notes;
  json["verdict"] = verdict();
  json["layers"] = Json::array();
  PacedCheck check;
  for (const LayerDebug& layer : layers) {
    check.count(1 << 14);
    json["layers"].push_back(layer_json(layer));
  }
  json["unmatched"] = unmatched;
  return json.dump(1);
}

std::string DebugResult::to_csv() const {
  std::string text =
      "index,subgraph,node,tensor_idx,op_name,layer,dtype,scale,zero_point,saturated,own_num_elements,own_not_finite,"
      "own_stddev,own_mean_error,own_max_abs_error,own_mean_squared_error,own_rmse_over_scale,own_cosine,own_snr_db,"
      "own_lost_signal,num_elements,not_finite,stddev,mean_error,max_abs_error,mean_squared_error,rmse_over_scale,"
      "cosine,"
      "snr_db,lost_signal,effect,tensor_name\n";
  PacedCheck check;
  for (const LayerDebug& layer : layers) {
    check.count(1 << 12);
    const bool one_scale = layer.scales.size() == 1;
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", layer.index, layer.subgraph, layer.node,
                        layer.tensor, csv_cell(layer.op), csv_cell(layer.layer), dtype_name(layer.dtype),
                        one_scale ? fmt::format("{}", layer.scales[0]) : "",
                        one_scale ? fmt::format("{}", layer.zero_points[0]) : "", layer.saturated,
                        csv_errors(layer.own), csv_errors(layer.accumulated),
                        layer.effect ? fmt::format("{}", *layer.effect) : "", csv_cell(layer.name));
  }
  return text;
}

}  // namespace leadline
