// SPDX-License-Identifier: Apache-2.0
#include "leadline/job_plan.h"

#include <gtest/gtest.h>

namespace leadline {
namespace {

JobPlan sample() {
  JobPlan plan;
  plan.job = "quantize";
  plan.phases = {{"load", {{MemoryCategory::kModelFile, 1000}, {MemoryCategory::kGraph, 24}}, 1024, "the file"},
                 {"calibrate", {{MemoryCategory::kStatistics, 20480}}, 20480, "run 4 KiB"}};
  plan.peak_bytes = 20480;
  plan.result_bytes = 300;
  return plan;
}

TEST(JobPlan, TextHasALineForEachPhase) {
  EXPECT_EQ(sample().to_text(),
            "quantize takes at most 20 KiB (20480 bytes), its result 300 B (300 bytes)\n"
            "  load        1 KiB   1024 bytes  the file\n"
            "  calibrate  20 KiB  20480 bytes  run 4 KiB\n");
  JobPlan open = sample();
  open.complete = false;
  EXPECT_NE(open.to_text().find("Not complete"), std::string::npos);
}

TEST(JobPlan, JsonHasEverything) {
  EXPECT_EQ(sample().to_json(),
            R"({"job":"quantize","peak_bytes":20480,"result_bytes":300,"complete":true,"phases":[)"
            R"({"name":"load","peak_bytes":1024,"categories":{"model file":1000,"graph":24},"detail":"the file"},)"
            R"({"name":"calibrate","peak_bytes":20480,"categories":{"statistics":20480},"detail":"run 4 KiB"}]})");
}

}  // namespace
}  // namespace leadline
