// SPDX-License-Identifier: Apache-2.0
// Writes the page of a made-up DebugResult, for the tests that open it in a browser.
// usage: debug_page page|notebook sample|hostile|empty|<number of layers>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "leadline/debug_result.h"

namespace {

using leadline::DebugResult;
using leadline::DebugRun;
using leadline::ErrorStatistics;
using leadline::LayerDebug;

constexpr const char* kHostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;<!--";

/// In [0, 1), the same on every run and machine.
double noise(int seed) {
  const double x = std::sin(12.9898 * seed + 78.233) * 43758.5453;
  return x - std::floor(x);
}

ErrorStatistics error(double relative, double steps, double scale) {
  ErrorStatistics e;
  e.elements = 4096;
  e.rmse = steps * scale;
  e.rmse_over_scale = steps;
  e.mean_error = e.rmse / 50.0;
  e.stddev = e.rmse;
  e.max_abs_error = 4.0 * e.rmse;
  e.mean_squared_error = e.rmse * e.rmse;
  e.snr_db = -20.0 * std::log10(relative);
  e.cosine = 1.0 - relative * relative / 2.0;
  e.lost_signal = std::min(1.0, relative * relative);
  return e;
}

void add_details(LayerDebug& layer) {
  layer.channels = 8;
  for (int c = 0; c < 8; ++c) layer.worst_channels.push_back({c, 0.0, 0.01, 0.04, 0.02 / (c + 1), -0.5F, 1.5F});
  leadline::WeightError weight;
  weight.name = layer.name + "/kernel";
  weight.shape = leadline::Shape{8, 3, 3, 8};
  weight.channels = weight.scales = 8;
  weight.rmse = 0.002;
  weight.snr_db = 38.0;
  weight.channel_spread = 2.5;
  layer.weights.push_back(std::move(weight));
  leadline::DebugHistogram histogram;
  histogram.min = layer.range_min;
  histogram.max = layer.range_max;
  for (int bin = 0; bin < 64; ++bin) {
    const double height = 900.0 * std::exp(-std::pow((bin - 24) / 9.0, 2.0));
    histogram.reference.push_back(static_cast<int64_t>(height + 30.0 * noise(bin)));
    histogram.quantized.push_back(static_cast<int64_t>(height + 30.0 * noise(bin + 99)));
  }
  histogram.reference_above = 40;
  layer.histogram = std::move(histogram);
}

LayerDebug make_layer(int i, int count) {
  constexpr const char* kOps[] = {"CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D", "ADD", "FULLY_CONNECTED"};
  LayerDebug layer;
  layer.index = layer.node = i;
  layer.tensor = i + 20;
  layer.op = i == 0 ? "QUANTIZE" : i + 1 == count ? "SOFTMAX" : kOps[i % 5];
  layer.layer = fmt::format("block{}_{}", i / 5, i % 5);
  layer.name = fmt::format("model/block{}_{}/Relu;model/block{}_{}/convolution", i / 5, i % 5, i / 5, i % 5);
  layer.shape = leadline::Shape{1, 16, 16, 8};
  layer.quantized = i % 17 != 16;
  layer.scales = {0.004F + 0.0001F * static_cast<float>(i % 10)};
  layer.zero_points = {-128};
  layer.range_min = -0.2F;
  layer.range_max = 0.8F;
  layer.seen_min = -0.19F;
  layer.seen_max = 0.93F;
  if (i > 0) layer.inputs.push_back(i - 1);
  if (i > 3 && layer.op == "ADD") layer.inputs.push_back(i - 3);
  const bool planted = i == count / 3;
  layer.saturated = planted ? 0.031 : i % 7 == 0 ? 0.0004 : 0.0;
  layer.own = error(planted ? 0.31 : 0.003 + 0.01 * noise(i), planted ? 4.2 : 0.25 + 0.1 * noise(i + 7), 0.004);
  layer.accumulated = error(0.004 + (i >= count / 3 ? 0.25 : 0.0) + 0.02 * noise(i + 3), 1.1, 0.004);
  return layer;
}

DebugResult make_result(int count) {
  DebugResult result;
  result.samples = 8;
  result.float_bytes = 14'200'000;
  result.quantized_bytes = 3'900'000;
  result.plan.peak_bytes = 25'400'000;
  result.plan.phases = {{.name = "compare",
                         .categories = {{leadline::MemoryCategory::kModelFile, 18'100'000},
                                        {leadline::MemoryCategory::kArena, 6'200'000},
                                        {leadline::MemoryCategory::kGraph, 1'100'000}},
                         .peak_bytes = 25'400'000,
                         .detail = ""}};
  for (int i = 0; i < count; ++i) result.layers.push_back(make_layer(i, count));
  if (count == 0) return result;
  const auto planted = static_cast<size_t>(count / 3);
  for (size_t i = planted; i < std::min(result.layers.size(), planted + 6); ++i) add_details(result.layers[i]);
  result.layers.back().is_output = true;
  result.suspects.push_back({count / 3, 0.096, "saturation",
                             fmt::format("{} '{}': 3.1 % of its values lie outside what its integers can hold.",
                                         result.layers[planted].op, result.layers[planted].layer),
                             "calibrate with samples like these, or with method min_max"});
  leadline::DebugOutput output;
  output.name = "probabilities";
  output.layer = count - 1;
  output.accumulated = *result.layers.back().accumulated;
  output.same_argmax = 0.875;
  output.rows = 8;
  result.outputs.push_back(std::move(output));
  return result;
}

/// Every text that comes from a model tries to be more than text.
void poison(DebugResult& result, DebugRun& run) {
  for (LayerDebug& layer : result.layers) {
    layer.op = layer.name = layer.layer = layer.note = kHostile;
    for (auto& weight : layer.weights) weight.name = kHostile;
  }
  for (auto& suspect : result.suspects) suspect.kind = suspect.why = suspect.try_this = kHostile;
  for (auto& output : result.outputs) output.name = kHostile;
  result.unmatched = {kHostile, "bytes that are not UTF-8: \xff\xfe and \x1b[31m"};
  result.layers.back().name = "\xff\xfe not UTF-8";
  result.layers.back().own->snr_db = std::nan("");
  run.float_model = run.data = kHostile;
  run.quantized_model = std::string("dir/") + kHostile;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: debug_page page|notebook sample|hostile|empty|<number of layers>\n", stderr);
    return 2;
  }
  const std::string form = argv[1], kind = argv[2];
  const int count = kind == "empty" ? 0 : kind == "sample" || kind == "hostile" ? 24 : std::atoi(kind.c_str());
  DebugResult result = make_result(count);
  DebugRun run{"model.tflite", "model.int8.tflite", "samples.npz", 0.42, 24'900'000};
  if (kind == "hostile") poison(result, run);
  const std::string text = form == "notebook" ? result.to_notebook_html(run) : result.to_html(run);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}
