// SPDX-License-Identifier: Apache-2.0
#include "jobs/tune_proof.h"

#include <gtest/gtest.h>

#include <cmath>

#include "jobs/sample_parts.h"
#include "jobs/tune_search.h"

namespace leadline::jobs {
namespace {

TEST(TuneProof, LowestShareIsThatOfTheBinomialDistribution) {
  // From tables of Clopper and Pearson's limits, one-sided, 95 %.
  EXPECT_NEAR(lowest_share(10, 10, 0.05), 0.7411, 1e-4);
  EXPECT_NEAR(lowest_share(9, 10, 0.05), 0.6058, 1e-4);
  EXPECT_NEAR(lowest_share(95, 100, 0.05), 0.8977, 1e-4);
  EXPECT_EQ(lowest_share(0, 10, 0.05), 0.0);
  EXPECT_NEAR(lowest_share(10, 10, 0.05), share_like_the_worst(10, 0.05), 1e-9) << "the same question";
}

TEST(TuneProof, EachLookMakesABoundWeaker) {
  DebugMeasure all;
  all.cosine = 0.99;
  std::vector<DebugMeasure> each(20, all);
  each[7].cosine = 0.9;
  const TuneBound first = bound_of(TuneMetric::kCosine, each, all, 1);
  EXPECT_EQ(first.samples, 20);
  EXPECT_EQ(first.value, 0.99);
  EXPECT_EQ(first.lowest, 0.9);
  EXPECT_NEAR(first.share, std::pow(0.05, 1.0 / 20.0), 1e-12);
  EXPECT_LT(bound_of(TuneMetric::kCosine, each, all, 3).share, first.share);
  EXPECT_LT(bound_of_accuracy(0.9, 100, 3).lowest, bound_of_accuracy(0.9, 100, 1).lowest);
  EXPECT_NE(first.text("cosine").find("0.9900 on 20 samples that were held out"), std::string::npos);
}

TEST(TuneProof, AnswersAreCounted) {
  DebugMeasure all;
  all.rows = 10;
  all.same_argmax = 0.9;
  const TuneBound bound = bound_of(TuneMetric::kSameTop, std::vector<DebugMeasure>(10), all, 1);
  EXPECT_EQ(bound.share, 0.0);
  EXPECT_NEAR(bound.lowest, 0.6058, 1e-4);
}

TEST(SampleParts, HoldOutTheLastOfEveryFew) {
  std::vector<float> values(10);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  SampleTensor array{.shape = {10, 1}, .data = std::as_bytes(std::span(values))};
  const auto source = array_samples({array});
  SampleParts parts(*source, 4);
  const auto read = [](SampleSource& part) {
    std::vector<float> found;
    Sample sample;
    while (part.next(sample)) found.push_back(*reinterpret_cast<const float*>(sample.inputs[0].data.data()));
    return found;
  };
  EXPECT_EQ(parts.held_out().size(), 2);
  EXPECT_EQ(parts.searched().size(), 8);
  EXPECT_EQ(read(parts.searched()), (std::vector<float>{0, 1, 2, 4, 5, 6, 8, 9}));
  EXPECT_EQ(read(parts.held_out()), (std::vector<float>{3, 7})) << "each part begins at the beginning";
  EXPECT_TRUE(parts.searched().rewind());
  EXPECT_EQ(read(parts.searched()).size(), 8U);
  EXPECT_EQ(count_samples(*source), 10);
}

TEST(SampleParts, CountWhatDoesNotSay) {
  int place = 0;
  const auto next = [&](Sample&) { return place++ < 5; };
  const auto again = callback_samples(next, [&] { place = 0; });
  EXPECT_EQ(count_samples(*again), 5);
  place = 0;
  const auto once = callback_samples(next);
  EXPECT_EQ(count_samples(*once), std::nullopt);
}

TEST(TuneSearch, TheFrontHasWhatNoOtherBeats) {
  const auto trial = [](double value, int64_t bytes, double seconds) {
    TuneTrial made;
    made.value = value;
    made.file_bytes = bytes;
    made.seconds = seconds;
    return made;
  };
  const std::vector<TuneTrial> front = front_of({trial(0.9, 100, 1.0), trial(0.8, 120, 2.0), trial(0.99, 150, 1.0),
                                                 trial(0.9, 100, 1.0), trial(0.95, 160, 0.5), trial(0.9, 100, 0.99)});
  ASSERT_EQ(front.size(), 3U);
  EXPECT_EQ(front[0].file_bytes, 100) << "one of three that are as good";
  EXPECT_EQ(front[1].file_bytes, 150);
  EXPECT_EQ(front[2].file_bytes, 160) << "larger and worse, but faster";
}

}  // namespace
}  // namespace leadline::jobs
