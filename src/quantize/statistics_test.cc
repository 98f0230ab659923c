// SPDX-License-Identifier: Apache-2.0
#include "quantize/statistics.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "core/half.h"
#include "leadline/error.h"
#include "quantize/statistics_bytes.h"

namespace leadline::quantize {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

template <typename T>
Observation observe(DType dtype, const std::vector<T>& values) {
  Recorder recorder;
  Observation seen;
  recorder.record(dtype, std::as_bytes(std::span(values)), true, seen);
  return seen;
}
Observation observe(const std::vector<float>& values) { return observe(DType::kFloat32, values); }

/// Of every size that a float can have.
std::vector<float> wild_values(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> exponent(-45.0, 38.0);
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(std::pow(10.0, exponent(random)) * (random() % 2 == 0 ? 1 : -1));
    if (random() % 50 == 0) value = kNan;
    if (random() % 50 == 1) value = -kInfinite;
    if (random() % 10 == 2) value = random() % 2 == 0 ? 0.0F : -0.0F;
  }
  return values;
}

ModelStatistics model_of(TensorStatistics statistics, int64_t samples) {
  ModelStatistics model;
  model.model = 7;
  model.samples = samples;
  model.tensors.push_back({0, 3, "t", std::move(statistics)});
  return model;
}

TEST(Statistics, EveryValueIsInTheBinThatDivisionSays) {
  for (const size_t count : {1, 7, 8, 100, 1023, 4096, 4097, 50000}) {
    std::mt19937 random(static_cast<uint32_t>(count));
    std::normal_distribution<float> normal(0.3F, 5.0F);
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    const Observation seen = observe(values);
    const double width = seen.histogram.width();
    std::vector<int64_t> expected(kBins);
    float min = values[0];
    float max = values[0];
    for (const float value : values) {
      ++expected[static_cast<size_t>(std::fabs(double{value}) / width) + (value < 0 ? kBinsPerSide : 0)];
      min = std::min(min, value);
      max = std::max(max, value);
    }
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), seen.histogram.counts().begin())) << count;
    EXPECT_EQ(seen.range, (Range{min, max}));
    EXPECT_EQ(seen.elements, static_cast<int64_t>(count));
    const double largest = std::max(std::fabs(min), std::fabs(max));
    EXPECT_GE(largest / width, kBinsPerSide / 2) << "the bins are wider than need be";
    EXPECT_LT(largest / width, kBinsPerSide);
  }
}

TEST(Statistics, ValuesThatAreNotFiniteAreCountedApart) {
  const Observation seen = observe({1.0F, kNan, -2.0F, kInfinite, -kInfinite, 0.0F});
  EXPECT_EQ(seen.elements, 3);
  EXPECT_EQ(seen.not_finite, 3);
  EXPECT_EQ(seen.range, (Range{-2.0F, 1.0F}));
  const Observation none = observe({kNan, kInfinite});
  EXPECT_EQ(none.elements, 0);
  EXPECT_EQ(none.not_finite, 2);
  EXPECT_TRUE(none.range.empty());
}

TEST(Statistics, ExtremeMagnitudesHaveABin) {
  const float top = std::numeric_limits<float>::max();
  const float tiny = std::numeric_limits<float>::denorm_min();
  for (const std::vector<float>& values :
       std::vector<std::vector<float>>{{top, -top}, {tiny, -tiny}, {top, tiny, -tiny}, {0.0F, 0.0F}, {-0.0F}, {}}) {
    const Observation seen = observe(values);
    int64_t sum = 0;
    for (const int64_t count : seen.histogram.counts()) sum += count;
    EXPECT_EQ(sum, static_cast<int64_t>(values.size()));
    EXPECT_EQ(seen.elements, sum);
  }
  EXPECT_EQ(observe({-0.0F}).histogram.count(0), 1) << "a negative zero is a zero";
  EXPECT_FALSE(std::signbit(observe({-0.0F}).range.min));
  EXPECT_EQ(observe({-tiny, top}).histogram.count(kBinsPerSide), 1) << "on its own side however small";
}

TEST(Statistics, PowersOfTwoDoNotFallOutOfTheBins) {
  for (int e = -149; e < 128; ++e) {
    const Observation seen = observe({std::ldexp(1.0F, e), -std::ldexp(1.0F, e)});
    int64_t sum = 0;
    for (const int64_t count : seen.histogram.counts()) sum += count;
    EXPECT_EQ(sum, 2) << e;
  }
}

TEST(Statistics, OtherFloatTypesAreWidened) {
  EXPECT_EQ(observe(DType::kFloat16, std::vector<uint16_t>{float_to_half(-1.5F), float_to_half(4.0F)}).range,
            (Range{-1.5F, 4.0F}));
  EXPECT_EQ(observe(DType::kBFloat16, std::vector<uint16_t>{float_to_bfloat16(-1.5F), 0x7FC0}).range,
            (Range{-1.5F, -1.5F}));
  const Observation wide = observe(DType::kFloat64, std::vector<double>{1e300, 0.5, -0.25});
  EXPECT_EQ(wide.range, (Range{-0.25F, 0.5F}));
  EXPECT_EQ(wide.not_finite, 1) << "what float32 cannot hold";
}

TEST(Statistics, AnySplitGivesTheSameBytes) {
  // 600 samples: more than a moving average remembers.
  std::vector<std::vector<float>> samples;
  std::mt19937 random(1);
  for (uint32_t i = 0; i < 600; ++i) samples.push_back(wild_values(random() % 40, i));
  const auto statistics_of = [&](size_t begin, size_t end) {
    TensorStatistics result;
    for (size_t i = begin; i < end; ++i) result.add_sample(observe(samples[i]));
    return model_of(std::move(result), static_cast<int64_t>(end - begin));
  };
  const auto whole = to_bytes(statistics_of(0, 600));
  for (int attempt = 0; attempt < 20; ++attempt) {
    ModelStatistics merged = statistics_of(0, 0);
    for (size_t begin = 0; begin < 600;) {
      const size_t end = std::min<size_t>(600, begin + 1 + random() % (attempt % 2 == 0 ? 400 : 20));
      merged.merge(statistics_of(begin, end));
      begin = end;
    }
    EXPECT_EQ(to_bytes(merged), whole);
  }
}

TEST(Statistics, ValuesOfASampleMayComeInAnyOrder) {
  const std::vector<float> values = wild_values(20000, 5);
  std::vector<float> reversed(values.rbegin(), values.rend());
  const Observation a = observe(values);
  const Observation b = observe(reversed);
  EXPECT_TRUE(std::equal(a.histogram.counts().begin(), a.histogram.counts().end(), b.histogram.counts().begin()));
  EXPECT_EQ(a.range, b.range);
}

TEST(Statistics, OtherModelsAreNotMerged) {
  ModelStatistics a = model_of({}, 1);
  ModelStatistics b = model_of({}, 1);
  b.model = 8;
  EXPECT_THROW(a.merge(b), Error);
  b = model_of({}, 1);
  b.tensors[0].tensor = 4;
  EXPECT_THROW(a.merge(b), Error);
  b = model_of({}, 1);
  b.tensors[0].statistics.all.elements = std::numeric_limits<int64_t>::max();
  a.tensors[0].statistics.all.elements = 1;
  EXPECT_THROW(a.merge(b), Error);
  EXPECT_EQ(a.samples, 1);
}

TEST(Statistics, MergingWithItselfDoubles) {
  TensorStatistics statistics;
  statistics.add_sample(observe({1.0F, -3.0F}));
  ModelStatistics model = model_of(std::move(statistics), 1);
  model.merge(model);
  EXPECT_EQ(model.samples, 2);
  EXPECT_EQ(model.tensors[0].statistics.all.elements, 4);
  EXPECT_EQ(model.tensors[0].statistics.recent.size(), 2U);
}

std::vector<std::byte> example_bytes() {
  TensorStatistics statistics;
  statistics.add_sample(observe({1.0F, -3.0F, 2.0F, kNan}));
  statistics.add_sample(observe({5.0F, 0.25F}));
  ModelStatistics model = model_of(std::move(statistics), 2);
  model.tensors.push_back({1, 0, "never reached", {}});
  return to_bytes(model);
}

void seal(std::vector<std::byte>& bytes) {
  uint64_t sum = 0xCBF29CE484222325U;
  for (size_t i = 0; i + 8 < bytes.size(); ++i) sum = (sum ^ static_cast<uint64_t>(bytes[i])) * 0x100000001B3U;
  for (size_t i = 0; i < 8; ++i) bytes[bytes.size() - 8 + i] = static_cast<std::byte>(sum >> (8 * i));
}

TEST(StatisticsBytes, ComeBackAsTheyWere) {
  const std::vector<std::byte> bytes = example_bytes();
  const auto budget = Budget::with_limit(1 << 20);
  {
    Charge charge(budget, MemoryCategory::kStatistics);
    const ModelStatistics model = from_bytes(bytes, charge);
    EXPECT_EQ(to_bytes(model), bytes);
    EXPECT_EQ(model.tensors[1].name, "never reached");
    EXPECT_EQ(model.tensors[0].statistics.all.not_finite, 1);
    EXPECT_EQ(budget->used(MemoryCategory::kStatistics), model.bytes());
  }
  EXPECT_EQ(budget->used(), 0);
}

TEST(StatisticsBytes, DamageIsAnError) {
  const std::vector<std::byte> bytes = example_bytes();
  Charge charge;
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_THROW(from_bytes(std::span(bytes).first(length), charge), Error) << length;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> damaged = bytes;
    damaged[i] ^= std::byte{0x11};
    EXPECT_THROW(from_bytes(damaged, charge), Error) << i;
  }
}

TEST(StatisticsBytes, ForgedBytesGiveAnErrorOrLegalStatistics) {
  const std::vector<std::byte> bytes = example_bytes();
  const auto budget = Budget::with_limit(1 << 20);
  std::mt19937 random(3);
  int legal = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> forged = bytes;
    for (uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      forged[8 + random() % (forged.size() - 16)] = static_cast<std::byte>(random());
    }
    if (random() % 4 == 0) forged.resize(16 + random() % forged.size());
    seal(forged);
    Charge charge(budget, MemoryCategory::kStatistics);
    try {
      const ModelStatistics model = from_bytes(forged, charge);
      EXPECT_EQ(to_bytes(model), forged);
      ++legal;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(legal, 0) << "a changed name or fingerprint cannot be noticed";
  EXPECT_EQ(budget->used(), 0);
}

}  // namespace
}  // namespace leadline::quantize
