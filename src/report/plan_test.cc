// SPDX-License-Identifier: Apache-2.0
// Reports of a hand-made plan, with names a hostile model could have.
#include "leadline/plan.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "leadline/error.h"
#include "leadline/work_limit.h"
#include "report/plan_peak.h"

namespace leadline {
namespace {

constexpr const char* kHostile = "</script><script>alert(1)</script><!-- \"'&\x1b[31m\n\xE2\x80\xA8";

PlannedTensor arena_tensor(int index, const std::string& name, int64_t bytes, int64_t offset, int first, int last) {
  PlannedTensor tensor;
  tensor.index = index;
  tensor.name = name;
  tensor.shape = Shape({1, bytes / 4});
  tensor.bytes = bytes;
  tensor.storage = Storage::kArena;
  tensor.offset = offset;
  tensor.first_step = first;
  tensor.last_step = last;
  return tensor;
}

PlannedStep planned_step(int node, const std::string& op, int64_t live) {
  PlannedStep step;
  step.node = node;
  step.op = op;
  step.name = "out" + std::to_string(node);
  step.inputs = {0, -1};
  step.outputs = {node + 1};
  step.live_bytes = live;
  return step;
}

/// Three steps; step 1 is the highest, with scratch; tensor 3 uses the memory of tensor 2.
Plan sample_plan() {
  Plan plan;
  plan.tensors = {arena_tensor(1, kHostile, 1024, 0, 0, 1), arena_tensor(2, "wide", 4096, 1024, 1, 2),
                  arena_tensor(3, "in_place", 4096, 1024, 2, 2)};
  plan.tensors[2].shares_with = 2;
  plan.steps = {planned_step(0, "CONV_2D", 1024), planned_step(1, "ADD", 5376), planned_step(2, "RELU", 4096)};
  plan.steps[1].scratch_bytes = 256;
  plan.steps[1].scratch_offset = 5120;
  plan.segments = {{0, 2, 6144, 5376}};
  plan.arena_bytes = 6144;
  plan.lower_bound_bytes = 5376;
  plan.categories = {{MemoryCategory::kModelFile, 2048}, {MemoryCategory::kArena, 6144}};
  plan.phases = {{"load", {{MemoryCategory::kModelFile, 2048}}, 2048}, {"run", plan.categories, 8192}};
  plan.peak_bytes = 8192;
  plan.threads = 2;
  return plan;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Report, PeakStepIsTheFirstWithTheMostLiveBytes) {
  Plan plan = sample_plan();
  EXPECT_EQ(report::peak_step(plan), 1);
  plan.steps[2].live_bytes = plan.steps[1].live_bytes;
  EXPECT_EQ(report::peak_step(plan), 1);
  EXPECT_EQ(report::peak_step(Plan{}), -1);
}

TEST(Report, TensorsThatShareMemoryAreOneLivePiece) {
  const Plan plan = sample_plan();
  const auto live = report::live_tensors(plan, 2);
  ASSERT_EQ(live.size(), 1U);
  EXPECT_EQ(live[0]->name, "wide");
  EXPECT_EQ(report::live_tensors(plan, 1).size(), 2U);
  EXPECT_TRUE(report::live_tensors(plan, 3).empty());
}

TEST(Report, TextNamesPeakContributorsBoundAndGap) {
  const std::string text = sample_plan().to_text();
  EXPECT_TRUE(contains(text, "Peak 8 KiB (8192 bytes) with 2 threads: arena 6 KiB, model file 2 KiB")) << text;
  EXPECT_TRUE(contains(text, "25.0 %"));
  EXPECT_TRUE(contains(text, "14.3 % above the lower bound")) << text;
  EXPECT_TRUE(contains(text, "Highest step: 1 of 3, ADD #1 'out1', 5.2 KiB alive")) << text;
  EXPECT_TRUE(contains(text, "(scratch of this step)"));
  EXPECT_FALSE(contains(text, "Not complete"));
}

TEST(Report, TextSaysWhenThePlanIsNotComplete) {
  Plan plan = sample_plan();
  plan.complete = false;
  EXPECT_TRUE(contains(plan.to_text(), "Not complete"));
  EXPECT_TRUE(contains(plan.to_html("m"), "Not complete"));
}

TEST(Report, TextHasNoControlCharactersFromNames) {
  Plan plan = sample_plan();
  plan.tensors[0].name = "a\x1b[2Jb\r\n\x9b";
  plan.steps[1].op = "X\x07";
  const std::string text = plan.to_text();
  for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
  EXPECT_TRUE(contains(text, "a\\x1b[2Jb\\x0d\\x0a\\x9b")) << text;
}

TEST(Report, TextListsTheTenLargestTensorsOfThePeak) {
  Plan plan = sample_plan();
  for (int i = 10; i < 30; ++i) plan.tensors.push_back(arena_tensor(i, "t" + std::to_string(i), 64 * i, 0, 0, 2));
  const std::string text = plan.to_text();
  EXPECT_TRUE(contains(text, "#29 t29"));
  EXPECT_FALSE(contains(text, "#15 t15"));
  EXPECT_TRUE(contains(text, "and 12 smaller")) << text;
}

TEST(Report, EmptyPlanHasReportsToo) {
  const Plan plan;
  EXPECT_TRUE(contains(plan.to_text(), "Peak 0 B"));
  EXPECT_EQ(nlohmann::json::parse(plan.to_json())["peak_step"], -1);
  EXPECT_TRUE(contains(plan.to_html(""), "</html>"));
}

TEST(Report, JsonHasEveryField) {
  const Plan plan = sample_plan();
  const auto json = nlohmann::json::parse(plan.to_json());
  EXPECT_EQ(json["peak_bytes"], 8192);
  EXPECT_EQ(json["arena_bytes"], 6144);
  EXPECT_EQ(json["lower_bound_bytes"], 5376);
  EXPECT_EQ(json["threads"], 2);
  EXPECT_EQ(json["complete"], true);
  EXPECT_EQ(json["peak_step"], 1);
  EXPECT_EQ(json["categories"]["arena"], 6144);
  EXPECT_EQ(json["phases"][0]["name"], "load");
  EXPECT_EQ(json["segments"][0]["last_step"], 2);
  EXPECT_EQ(json["steps"][1]["scratch_offset"], 5120);
  EXPECT_EQ(json["steps"][1]["inputs"], (nlohmann::json{0, -1}));
  EXPECT_EQ(json["tensors"][2]["shares_with"], 2);
  EXPECT_EQ(json["tensors"][1]["shape"], (nlohmann::json{1, 1024}));
  EXPECT_EQ(json["tensors"][1]["storage"], "arena");
  EXPECT_EQ(json["tensors"][1]["dtype"], "float32");
}

TEST(Report, JsonKeepsHostileNamesAndReplacesWhatIsNotUtf8) {
  Plan plan = sample_plan();
  EXPECT_EQ(nlohmann::json::parse(plan.to_json())["tensors"][0]["name"], kHostile);
  plan.tensors[0].name = "a\xff";
  EXPECT_EQ(nlohmann::json::parse(plan.to_json())["tensors"][0]["name"], "a\xEF\xBF\xBD");
}

TEST(Report, JsonIsWrittenAsAParserWouldWriteIt) {
  Plan plan = sample_plan();
  plan.complete = false;
  plan.missing_ops = {"Mine", "quote\" back\\slash \x7F"};
  plan.steps[0].merged = {4, 5};
  plan.steps[2].outputs.clear();
  plan.tensors[1].shape = Shape();
  for (const Plan& each : {plan, Plan()}) {
    const std::string json = each.to_json();
    EXPECT_EQ(nlohmann::ordered_json::parse(json).dump(-1, ' ', true), json);
  }
}

TEST(Report, OfManyTensorsEndsAtALimitOfWork) {
  Plan plan;
  plan.tensors.resize(5000);
  const WorkLimit limit({}, 0.0);
  EXPECT_THROW(plan.to_json(), Error);
  EXPECT_THROW(plan.to_html("m"), Error);
}

TEST(Report, HtmlIsOnePageThatNamesCannotBreakOutOf) {
  const std::string page = sample_plan().to_html(kHostile);
  EXPECT_EQ(count(page, "<script"), 2U);  // data and code
  EXPECT_EQ(count(page, "</script"), 2U);
  EXPECT_FALSE(contains(page, "alert(1)</"));
  EXPECT_FALSE(contains(page, "<!-- "));
  EXPECT_TRUE(contains(page, "&lt;/script&gt;"));
  EXPECT_TRUE(contains(page, "\\u003c/script\\u003e"));
  const std::string cell = sample_plan().to_notebook_html(kHostile);
  EXPECT_FALSE(contains(cell, "<script"));
  EXPECT_FALSE(contains(cell, "<style"));
}

TEST(Report, HtmlDataIsThePlan) {
  const Plan plan = sample_plan();
  const std::string page = plan.to_html("m");
  const std::string open = "id=plan>";
  const size_t start = page.find(open) + open.size();
  const auto data = nlohmann::json::parse(page.substr(start, page.find("</script>", start) - start));
  EXPECT_EQ(data, nlohmann::json::parse(plan.to_json()));
}

TEST(Report, HtmlLoadsNothing) {
  const std::string page = sample_plan().to_html("m");
  EXPECT_FALSE(contains(page, " src="));
  EXPECT_FALSE(contains(page, "href="));
  EXPECT_FALSE(contains(page, "url("));
  EXPECT_FALSE(contains(page, "@import"));
  EXPECT_TRUE(contains(page, "default-src 'none'"));
}

TEST(Report, StorageNamesAreDistinct) {
  EXPECT_STREQ(storage_name(Storage::kArena), "arena");
  EXPECT_STREQ(storage_name(Storage::kUnplanned), "unplanned");
  EXPECT_STREQ(storage_name(static_cast<Storage>(200)), "unknown");
}

}  // namespace
}  // namespace leadline
