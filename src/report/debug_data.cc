// SPDX-License-Identifier: Apache-2.0
#include "report/debug_data.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/cancel.h"
#include "io/json.h"
#include "leadline/types.h"

namespace leadline::report {
namespace {

/// A name that more layers share is the name of a model, not of a layer: a layer of Keras seldom becomes more nodes.
constexpr int kTelling = 4;

/// Six digits are more than a page shows; JSON has no NaN and no infinity.
Json number(double value) {
  if (!std::isfinite(value)) return nullptr;
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value, std::chars_format::general, 6).ptr;
  double result = value;
  std::from_chars(text, end, result);
  return result;
}

Json number(float value) { return number(static_cast<double>(value)); }

Json numbers(const Shape& shape) {
  Json list = Json::array();
  for (const int64_t size : shape) list.push_back(size);
  return list;
}

Json error_json(const ErrorStatistics& e) {
  Json json = {{"rmse", number(e.rmse)},
               {"max", number(e.max_abs_error)},
               {"mean", number(e.mean_error)},
               {"cosine", number(e.cosine)},
               {"snr", number(e.snr_db)}};
  // A noise of nothing and a signal of nothing: neither can be shown as a share.
  json["relative"] = e.elements > 0 ? number(relative_error(e)) : Json(nullptr);
  if (e.rmse_over_scale > 0.0) json["steps"] = number(e.rmse_over_scale);
  if (e.not_finite > 0) json["not_finite"] = e.not_finite;
  return json;
}

Json weight_json(const WeightError& w) {
  return {{"name", w.name},
          {"dtype", dtype_name(w.dtype)},
          {"shape", numbers(w.shape)},
          {"scales", w.scales},
          {"rmse", number(w.rmse)},
          {"max", number(w.max_abs_error)},
          {"snr", number(w.snr_db)},
          {"channels", w.channels},
          {"worst_channel", w.worst_channel},
          {"worst_lost", number(w.worst_lost_signal)},
          {"largest_channel", w.largest_channel},
          {"spread", number(w.channel_spread)}};
}

Json channels_json(const std::vector<ChannelError>& channels) {
  Json list = Json::array();
  for (const ChannelError& c : channels) {
    list.push_back({{"channel", c.channel},
                    {"rmse", number(c.rmse)},
                    {"max_error", number(c.max_abs_error)},
                    {"lost", number(c.lost_signal)},
                    {"min", number(c.min)},
                    {"max", number(c.max)}});
  }
  return list;
}

Json histogram_json(const DebugHistogram& h) {
  return {{"min", number(h.min)},     {"max", number(h.max)},       {"reference", h.reference},
          {"quantized", h.quantized}, {"below", h.reference_below}, {"above", h.reference_above}};
}

/// Of "model/block/conv/Relu;model/block/conv/Conv2D" what ran last and the scope around it: "conv/Relu".
std::string name_end(std::string_view name) {
  name = name.substr(0, name.find(';'));
  size_t start = name.rfind('/');
  if (start != std::string_view::npos && start > 0) start = name.rfind('/', start - 1);
  return std::string(start == std::string_view::npos ? name : name.substr(start + 1));
}

Json layer_json(const LayerDebug& layer, const std::string& label) {
  Json seen = Json::array();
  seen.push_back(number(layer.seen_min));
  seen.push_back(number(layer.seen_max));
  Json json = {{"node", layer.node},
               {"tensor", layer.tensor},
               {"op", layer.op},
               {"label", label},
               {"name", layer.name},
               {"dtype", dtype_name(layer.dtype)},
               {"shape", numbers(layer.shape)},
               {"inputs", layer.inputs},
               {"saturated", number(layer.saturated)},
               {"seen", std::move(seen)}};
  if (layer.subgraph != 0) json["subgraph"] = layer.subgraph;
  if (layer.is_output) json["is_output"] = true;
  if (layer.quantized) json["quantized"] = true;
  if (!layer.scales.empty()) {
    json["scale"] = number(layer.scales.front());
    json["scales"] = layer.scales.size();
    json["range"] = Json::array({number(layer.range_min), number(layer.range_max)});
  }
  if (!layer.zero_points.empty()) json["zero_point"] = layer.zero_points.front();
  if (layer.effect) json["effect"] = number(*layer.effect);
  if (layer.own) json["own"] = error_json(*layer.own);
  if (layer.accumulated) json["total"] = error_json(*layer.accumulated);
  if (layer.levels_used > 0) json["levels"] = layer.levels_used;
  if (!layer.worst_channels.empty()) {
    json["channels"] = layer.channels;
    json["worst"] = channels_json(layer.worst_channels);
  }
  for (const WeightError& weight : layer.weights) json["weights"].push_back(weight_json(weight));
  if (layer.histogram) json["histogram"] = histogram_json(*layer.histogram);
  if (!layer.note.empty()) json["note"] = layer.note;
  return json;
}

}  // namespace

std::vector<std::string> layer_labels(const std::vector<LayerDebug>& layers) {
  std::unordered_map<std::string_view, int> uses;
  for (const LayerDebug& layer : layers) ++uses[layer.layer];
  std::vector<std::string> labels;
  labels.reserve(layers.size());
  for (const LayerDebug& layer : layers) {
    const bool telling = !layer.layer.empty() && uses[layer.layer] <= kTelling;
    std::string label = telling ? layer.layer : name_end(layer.name);
    if (label.empty()) label = layer.layer.empty() ? "tensor " + std::to_string(layer.tensor) : layer.layer;
    labels.push_back(std::move(label));
  }
  return labels;
}

std::string without_numbers(const std::string& name) {
  std::string result;
  for (const char c : name) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit) {
      result += c;
    } else if (result.empty() || result.back() != '#') {
      result += '#';
    }
  }
  return result;
}

double relative_error(const ErrorStatistics& error) {
  return error.snr_db >= kBestSnrDb ? 0.0 : std::pow(10.0, -error.snr_db / 20.0);
}

std::string page_data(const DebugResult& result) {
  Json json = {{"yardstick", number(kRoundingYardstick)}};
  json["suspects"] = Json::array();
  for (const DebugSuspect& suspect : result.suspects) {
    json["suspects"].push_back({{"layer", suspect.layer}, {"kind", suspect.kind}, {"why", suspect.why}});
  }
  json["layers"] = Json::array();
  const std::vector<std::string> labels = layer_labels(result.layers);
  PacedCheck check;
  for (size_t i = 0; i < labels.size(); ++i) {
    check.count(1 << 13);
    json["layers"].push_back(layer_json(result.layers[i], labels[i]));
  }
  return json.dump(-1, /*ascii=*/false);
}

}  // namespace leadline::report
