// SPDX-License-Identifier: Apache-2.0
// What can be told of the page without a browser; tests/python/test_debug_page.py opens it in one.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "leadline/debug_result.h"
#include "report/debug_data.h"

namespace leadline {
namespace {

constexpr const char* kHostile = "</script><script>alert(1)</script>\"'<!--";

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

bool contains(const std::string& text, const std::string& part) { return count(text, part) > 0; }

DebugResult sample(const std::string& name, double snr_db = 26.02) {
  DebugResult result;
  result.samples = 8;
  result.float_bytes = 4000;
  result.quantized_bytes = 1000;
  LayerDebug layer;
  layer.op = layer.name = layer.layer = name;
  layer.own.emplace();
  layer.own->elements = 10;
  layer.own->snr_db = snr_db;
  layer.accumulated = layer.own;
  result.layers = {layer};
  DebugOutput output;
  output.name = name;
  output.layer = 0;
  output.accumulated = *layer.own;
  output.rows = 8;
  output.same_argmax = 0.75;
  result.outputs = {output};
  return result;
}

TEST(DebugPage, VerdictIsASentence) {
  DebugResult result = sample("conv");
  EXPECT_TRUE(contains(result.to_html(),
                       "class=\"panel verdict good\">The quantized model&#39;s output is off by 5 % of its signal and "
                       "has its largest value at the same place in 75 % of 8 rows; no layer loses more than rounding "
                       "must cost.</p>"));
  result.suspects.push_back({0, 0.5, "weight_outlier", "a reason", "an advice"});
  const std::string page = result.to_html();
  EXPECT_TRUE(contains(page, "verdict fair"));
  EXPECT_TRUE(contains(page, "1 layer to look at, first &#39;conv&#39;."));
  EXPECT_TRUE(contains(page, "weight outlier"));
  EXPECT_TRUE(contains(page, "a reason"));
  EXPECT_TRUE(contains(page, "an advice"));
  EXPECT_TRUE(contains(sample("conv", 3.0).to_html(), "verdict poor"));
}

TEST(DebugPage, VerdictNamesValuesThatAreNotNumbers) {
  DebugResult result = sample("conv");
  result.outputs[0].accumulated.not_finite = 3;
  const std::string page = result.to_html();
  EXPECT_TRUE(contains(page, "verdict poor"));
  EXPECT_TRUE(contains(page, "3 values of output &#39;conv&#39; are NaN or infinite"));
}

TEST(DebugPage, SaysWhatTheRunTook) {
  DebugRun run;
  run.quantized_model = "folder/model.int8.tflite";
  run.seconds = 1.25;
  run.counted_bytes = 2048;
  DebugResult result = sample("conv");
  result.plan.peak_bytes = 4096;
  const std::string page = result.to_html(run);
  EXPECT_TRUE(contains(page, "<h1>model.int8.tflite</h1>"));
  EXPECT_TRUE(contains(page, "1.25 s"));
  EXPECT_TRUE(contains(page, "counted: 2 KiB"));
  EXPECT_TRUE(contains(page, "25 % of 3.9 KiB"));
}

TEST(DebugPage, AResultOfNothingHasAPageToo) {
  EXPECT_TRUE(contains(DebugResult().to_html(), "No sample was run"));
  EXPECT_TRUE(contains(DebugResult().to_html(), "</html>"));
}

TEST(DebugPage, NamesCannotBreakOut) {
  DebugRun run;
  run.float_model = run.quantized_model = run.data = kHostile;
  DebugResult result = sample(kHostile);
  result.suspects.push_back({0, 0.5, kHostile, kHostile, kHostile});
  result.unmatched = {kHostile};
  const std::string page = result.to_html(run);
  EXPECT_EQ(count(page, "<script"), 2U);  // data and code
  EXPECT_EQ(count(page, "</script"), 2U);
  EXPECT_FALSE(contains(page, "alert(1)</"));
  EXPECT_FALSE(contains(page, "<!--"));
  const std::string cell = result.to_notebook_html(run);
  EXPECT_FALSE(contains(cell, "<script"));
  EXPECT_FALSE(contains(cell, "allow-same-origin"));
  EXPECT_EQ(count(cell, "<iframe"), 1U);
  EXPECT_EQ(count(cell, "\"") % 2, 0U);  // none of the page's quotes ends srcdoc
}

TEST(DebugPage, LoadsNothing) {
  const std::string page = sample("conv").to_html();
  for (const char* part : {" src=", "href=", "url(", "@import", "http-equiv=refresh"}) {
    EXPECT_FALSE(contains(page, part)) << part;
  }
}

TEST(DebugPageData, IsShortAndHasNoNaN) {
  DebugResult result = sample("x\xff");
  result.layers[0].own->rmse = 0.123456789;
  result.layers[0].own->snr_db = std::nan("");
  const auto data = nlohmann::json::parse(report::page_data(result));
  const auto& layer = data["layers"][0];
  EXPECT_EQ(layer["own"]["rmse"], 0.123457);
  EXPECT_TRUE(layer["own"]["snr"].is_null());
  EXPECT_TRUE(layer["own"]["relative"].is_null());
  EXPECT_FALSE(layer.contains("histogram"));
  EXPECT_NEAR(layer["total"]["relative"].get<double>(), 0.05, 1e-4);
}

TEST(DebugPageData, CallsLayersByNamesThatTellThemApart) {
  std::vector<LayerDebug> layers(7);
  layers[0].tensor = 7;
  layers[1].name = "model/block/Relu;model/block/conv";
  layers[1].layer = "block";
  for (size_t i = 2; i < 7; ++i) {
    layers[i].name = "Net/Net/conv" + std::to_string(i) + "/Relu6";
    layers[i].layer = "Net";
  }
  const auto labels = report::layer_labels(layers);
  EXPECT_EQ(labels[0], "tensor 7");
  EXPECT_EQ(labels[1], "block");
  EXPECT_EQ(labels[2], "conv2/Relu6");
  EXPECT_EQ(labels[6], "conv6/Relu6");
}

}  // namespace
}  // namespace leadline
