// SPDX-License-Identifier: Apache-2.0
// Evaluation: metrics, order, threads, memory and failures.
#include "leadline/evaluate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "leadline/work_limit.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::Sketch;
using testing::Thrown;
using testing::thrown_by;

constexpr DType kF32 = DType::kFloat32;

/// y = f(x), elementwise, for rows of `size` values.
Model elementwise(const std::string& op, int64_t size, std::shared_ptr<Budget> budget = Budget::with_limit(64 << 20)) {
  Sketch s;
  s.outputs({s.compute(op, {s.input("x", kF32, {1, size})}, "y", kF32, {1, size})});
  return s.load(std::move(budget));
}

/// A dense layer with random weights, so that runs take some time and memory.
Model dense(int64_t inputs, int64_t outputs, std::shared_ptr<Budget> budget = Budget::with_limit(64 << 20)) {
  std::mt19937 random(5);
  std::vector<float> weights(static_cast<size_t>(inputs * outputs));
  for (float& weight : weights) weight = static_cast<float>(random() % 1000) / 1000 - 0.5F;
  Sketch s;
  const int x = s.input("x", kF32, {1, inputs}), w = s.constant("w", kF32, {outputs, inputs}, weights);
  const int b = s.constant("b", kF32, {outputs}, std::vector<float>(static_cast<size_t>(outputs)));
  s.outputs({s.compute("FULLY_CONNECTED", {x, w, b}, "y", kF32, {1, outputs})});
  return s.load(std::move(budget));
}

/// Rows of values with a target for each.
struct Data {
  int64_t columns = 0;
  std::vector<float> values;
  std::vector<int64_t> labels;
  std::vector<float> expected;

  static Data random(int64_t rows, int64_t columns, int64_t classes) {
    std::mt19937 random(11);
    Data data{columns, {}, {}, {}};
    for (int64_t i = 0; i < rows * columns; ++i) data.values.push_back(static_cast<float>(random() % 200) / 100 - 1);
    for (int64_t i = 0; i < rows; ++i)
      data.labels.push_back(static_cast<int64_t>(random() % static_cast<size_t>(classes)));
    return data;
  }
  std::unique_ptr<SampleSource> source() const {
    const int64_t rows = std::ssize(values) / columns;
    std::vector<SampleTensor> targets;
    if (!labels.empty())
      targets.push_back({.dtype = DType::kInt64, .shape = {rows}, .data = std::as_bytes(std::span(labels))});
    if (!expected.empty()) {
      targets.push_back({.shape = {rows, std::ssize(expected) / rows}, .data = std::as_bytes(std::span(expected))});
    }
    return array_samples({{.shape = {rows, columns}, .data = std::as_bytes(std::span(values))}}, targets);
  }
};

EvaluateResult evaluate(const Model& model, const Data& data, EvaluateOptions options = {}) {
  EvaluateJob job(model, std::move(options));
  const auto source = data.source();
  const int64_t planned = job.plan(source.get()).peak_bytes;
  EvaluateResult result = job.run(*source);
  EXPECT_LE(result.counted_peak_bytes, planned);
  return result;
}

TEST(Evaluate, AccuracyCountsTopAnswers) {
  const Model model = elementwise("ABS", 3);
  const Data data{3, {1, -5, 2, /**/ 3, 1, 2, /**/ 1, 1, 0, /**/ 0, 0, -9}, {1, 2, 1, 2}, {}};
  const EvaluateResult top1 = evaluate(model, data, {.per_sample = true});
  EXPECT_EQ(top1.value, 0.5);
  EXPECT_EQ(top1.correct, 2);
  EXPECT_EQ(top1.samples, 4);
  EXPECT_EQ(top1.per_sample, (std::vector<double>{1, 0, 0, 1})) << "of equal answers the first counts";
  ASSERT_EQ(top1.classes, 3);
  EXPECT_EQ(top1.confusion, (std::vector<int64_t>{0, 0, 0, /**/ 1, 1, 0, /**/ 1, 0, 1}));
  EXPECT_EQ(evaluate(model, data, {.top_k = 2}).value, 1.0);
  EXPECT_NE(top1.to_text().find("accuracy 50.00 %: 2 of 4"), std::string::npos) << top1.to_text();
  const Data wrong{3, {1, 2, 3}, {3}, {}};
  EXPECT_TRUE(thrown_by([&] { evaluate(model, wrong); }).names("sample 0: the label is 3, the model has 3 classes"));
  const Data unlabelled{3, {1, 2, 3}, {}, {}};
  EXPECT_TRUE(thrown_by([&] { evaluate(model, unlabelled); }).names("has no label"));
  const Data one_hot{3, {1, 2, 3}, {}, {0, 0, 1}};
  EXPECT_EQ(evaluate(model, one_hot).value, 1.0);
}

TEST(Evaluate, TheTableOfAnswersIsKeptForTheClassesAskedFor) {
  const Model model = elementwise("ABS", 300);
  const Data data = Data::random(20, 300, 300);
  const auto planned = [&](int64_t classes) {
    return EvaluateJob(model, {.max_confusion_classes = classes}).plan().peak_bytes;
  };
  EXPECT_EQ(planned(300) - planned(299), 16 * 300 * 300) << "the table, and its copy when it grows";
  EXPECT_EQ(planned(256), planned(0));
  EXPECT_EQ(evaluate(model, data).classes, 0);
  const EvaluateResult with_table = evaluate(model, data, {.max_confusion_classes = 300});
  ASSERT_GT(with_table.classes, 256);
  EXPECT_EQ(std::accumulate(with_table.confusion.begin(), with_table.confusion.end(), int64_t{0}), 20);
  EXPECT_EQ(with_table.value, evaluate(model, data, {.max_confusion_classes = 0}).value);
  for (const int64_t wrong : {int64_t{-1}, int64_t{1} << 40}) {
    EXPECT_TRUE(
        thrown_by([&] { EvaluateJob(model, {.max_confusion_classes = wrong}); }).names("expected 0 (no table) to"));
  }
}

TEST(Evaluate, DistancesAreMeansOverSamples) {
  const Model model = elementwise("NEG", 2);
  const Data data{2, {1, 2, /**/ -3, 0}, {}, {-1, -1, /**/ 3, 4}};
  EXPECT_EQ(evaluate(model, data, {.metric = Metric::kMeanSquaredError}).value, (1.0 / 2 + 16.0 / 2) / 2);
  EXPECT_EQ(evaluate(model, data, {.metric = Metric::kMeanAbsoluteError}).value, (1.0 / 2 + 4.0 / 2) / 2);
  const double first = 3 / (std::sqrt(5.0) * std::sqrt(2.0)), second = 9 / (3.0 * 5.0);
  EXPECT_NEAR(evaluate(model, data, {.metric = Metric::kCosine}).value, (first + second) / 2, 1e-12);
  const Data plain{2, {1, 2, /**/ -3, 0}, {}, {}};
  EvaluateOptions against{.metric = Metric::kMeanAbsoluteError, .reference = elementwise("ABS", 2)};
  EXPECT_EQ(evaluate(model, plain, against).value, (3.0 + 0.0) / 2);
  EXPECT_TRUE(thrown_by([&] { evaluate(model, plain, {.metric = Metric::kCosine}); }).names("no reference model"));
  const Data other{2, {1, 2}, {}, {1, 2, 3}};
  EXPECT_TRUE(thrown_by([&] { evaluate(model, other, {.metric = Metric::kCosine}); }).names("3 expected values"));
}

TEST(Evaluate, AgreementComparesTopAnswers) {
  const Data data{3, {1, -5, 2, /**/ 3, 1, 2}, {}, {}};
  EvaluateOptions options{.metric = Metric::kAgreement, .reference = elementwise("ABS", 3)};
  const EvaluateResult result = evaluate(elementwise("NEG", 3), data, options);
  EXPECT_EQ(result.value, 0.5);
  EXPECT_TRUE(thrown_by([&] {
                EvaluateJob(elementwise("NEG", 3), {.metric = Metric::kAgreement});
              }).names("needs a reference model"));
}

TEST(Evaluate, IntegerOutputsCountAsWhatTheyStandFor) {
  Sketch s;
  const int x = s.input("x", kF32, {1, 2});
  const int q = s.compute("QUANTIZE", {x}, "q", DType::kInt8, {1, 2});
  s.subgraph().value(q).quantization.scale = {0.5F};
  s.subgraph().value(q).quantization.zero_point = {10};
  s.outputs({q});
  const Data data{2, {1.25F, -2}, {}, {1, -2}};
  EXPECT_EQ(evaluate(s.load(Budget::with_limit(1 << 20)), data, {.metric = Metric::kMeanAbsoluteError}).value, 0.25);
}

TEST(Evaluate, ResultsDoNotDependOnThreads) {
  const Model model = dense(64, 10), other = dense(64, 10);
  const Data data = Data::random(300, 64, 10);
  std::string one;
  for (const int threads : {1, 2, 3, 8}) {
    for (const Metric metric : {Metric::kAccuracy, Metric::kFunction}) {
      EvaluateOptions options{.metric = metric, .num_threads = threads, .per_sample = true};
      if (metric == Metric::kFunction) {
        options.function = [](const EvaluatedSample& sample) {
          double sum = static_cast<double>(sample.index);
          for (size_t i = 0; i < 10; ++i) sum += reinterpret_cast<const float*>(sample.outputs[0].data.data())[i] * 0.1;
          return sum;
        };
      }
      EvaluateResult result = evaluate(model, data, options);
      result.seconds = 0;
      result.counted_peak_bytes = 0;
      const std::string text = result.to_json();
      if (metric == Metric::kAccuracy && threads == 1) one = text;
      if (metric == Metric::kAccuracy) {
        EXPECT_EQ(text, one);
      }
      EXPECT_EQ(result.samples, 300);
    }
  }
}

TEST(Evaluate, ABudgetBelowThePlanIsRefusedBeforeTheFirstSample) {
  const Data data = Data::random(10, 64, 10);
  int64_t planned = 0;
  for (const int threads : {1, 4}) {
    const Model unlimited = dense(64, 10);
    planned = EvaluateJob(unlimited, {.num_threads = threads}).plan().peak_bytes;
    for (const int64_t less : {0, 1}) {
      const auto budget = Budget::with_limit(planned - less);
      const Model model = dense(64, 10, budget);
      int read = 0;
      const auto all = data.source();
      const auto counted = callback_samples([&](Sample& sample) { return ++read, all->next(sample); });
      EvaluateJob job(model, {.num_threads = threads});
      ASSERT_EQ(job.plan(counted.get()).peak_bytes, planned);
      const Thrown thrown = thrown_by([&] { job.run(*counted); });
      if (less == 0) {
        EXPECT_FALSE(thrown.code.has_value()) << thrown.message;
        EXPECT_LE(budget->peak(), planned);
      } else {
        EXPECT_EQ(thrown.code, ErrorCode::kBudget);
        EXPECT_TRUE(thrown.names("evaluate needs")) << thrown.message;
        EXPECT_EQ(read, 0);
      }
    }
  }
}

TEST(Evaluate, TellsHowFarItIsAndStops) {
  const Model model = dense(64, 10);
  const Data data = Data::random(50, 64, 10);
  const Data many = Data::random(5000, 64, 10);  // enough for the calling thread, which asks, to get some of them
  for (const int threads : {1, 3}) {
    std::vector<int64_t> told;
    EvaluateJob job(model, {.num_threads = threads});
    job.run(*data.source(), [&](const JobProgress& progress) {
      EXPECT_EQ(progress.total, 50);
      EXPECT_EQ(progress.phase, "evaluate");
      told.push_back(progress.done);
      return true;
    });
    EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
    EXPECT_EQ(told.back(), 50);
    EXPECT_EQ(thrown_by([&] { job.run(*data.source(), [](const JobProgress&) { return false; }); }).code,
              ErrorCode::kCancelled);
    int asked = 0;
    const WorkLimit limit([&] {
      if (++asked == 20) throw Error(ErrorCode::kTimeout, "too late");
    });
    EXPECT_EQ(thrown_by([&] { job.run(*many.source()); }).message, "too late");
  }
}

TEST(Evaluate, TheFirstFailureIsToldAndThreadsEnd) {
  const Model model = dense(64, 10);
  Data data = Data::random(100, 64, 10);
  data.labels[40] = 77;
  for (const int threads : {1, 4}) {
    EvaluateJob job(model, {.num_threads = threads});
    EXPECT_TRUE(thrown_by([&] { job.run(*data.source()); }).names("sample 40: the label is 77"));
    std::atomic<int> calls = 0;
    EvaluateJob throwing(model, {.metric = Metric::kFunction,
                                 .function = [&](const EvaluatedSample&) -> double {
                                   if (++calls == 10) throw std::string("mine");
                                   return 0;
                                 },
                                 .num_threads = threads});
    EXPECT_THROW(throwing.run(*data.source()), std::string) << "a caller's own exception is passed on";
  }
}

TEST(Evaluate, MetricsHaveNames) {
  for (const Metric metric : {Metric::kAccuracy, Metric::kMeanSquaredError, Metric::kMeanAbsoluteError, Metric::kCosine,
                              Metric::kAgreement, Metric::kFunction}) {
    EXPECT_EQ(parse_metric(metric_name(metric)), metric);
  }
  EXPECT_TRUE(thrown_by([] { parse_metric("f1"); }).names("unknown metric 'f1'; expected one of: accuracy, mse"));
}

}  // namespace
}  // namespace leadline
