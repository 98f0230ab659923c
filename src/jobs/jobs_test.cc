// SPDX-License-Identifier: Apache-2.0
// What every job promises: its plan covers what is counted, and a budget below the plan is refused with the table
// before the first sample is read.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "leadline/calibrate.h"
#include "leadline/debug.h"
#include "leadline/quantize.h"
#include "leadline/tune.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::Sketch;
using testing::thrown_by;

constexpr DType kF32 = DType::kFloat32;

/// A chain of layers with a branch now and then, of sizes that a seed chooses.
Sketch random_model(uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  std::normal_distribution<float> normal(0.0F, 0.5F);
  const int64_t side = pick(1, 9);
  int64_t channels = pick(1, 5);
  Sketch s;
  int names = 0;
  const auto name = [&](const char* what) { return std::string(what) + std::to_string(names++); };
  const auto weights = [&](const Shape& shape) {
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    for (float& value : values) value = normal(random);
    return s.constant<float>(name("w"), kF32, shape, values);
  };
  const auto shape = [&] { return Shape{1, side, side, channels}; };
  const testing::AttributeValues conv = {{"stride_w", 1},
                                         {"stride_h", 1},
                                         {"dilation_w_factor", 1},
                                         {"dilation_h_factor", 1},
                                         {"fused_activation_function", pick(0, 1)}};
  int x = s.input("x", kF32, shape());
  for (int64_t layers = pick(1, 8); layers > 0; --layers) {
    switch (pick(0, 6)) {
      case 0: {
        const int64_t outputs = pick(1, 24);
        const int64_t size = 1 + 2 * pick(0, 1);
        const int w = weights({outputs, size, size, channels});
        const int b = weights({outputs});
        channels = outputs;
        x = s.compute("CONV_2D", {x, w, b}, name("conv"), kF32, shape(), conv);
        break;
      }
      case 1: {
        testing::AttributeValues depthwise = conv;
        depthwise["depth_multiplier"] = int64_t{1};
        const int w = weights({1, 3, 3, channels});
        const int b = weights({channels});
        x = s.compute("DEPTHWISE_CONV_2D", {x, w, b}, name("depthwise"), kF32, shape(), depthwise);
        break;
      }
      case 2:
        x = s.compute("ADD", {x, x}, name("sum"), kF32, shape());
        break;
      case 3: {
        const int other = s.compute("TANH", {x}, name("tanh"), kF32, shape());
        channels *= 2;
        x = s.compute("CONCATENATION", {x, other}, name("both"), kF32, shape(), {{"axis", 3}});
        break;
      }
      case 4:
        x = s.compute("LOGISTIC", {x}, name("logistic"), kF32, shape());
        break;
      case 5:
        x = s.compute("COS", {x}, name("cos"), kF32, shape());
        break;
      default:
        x = s.compute("RELU", {x}, name("relu"), kF32, shape());
    }
  }
  s.outputs({s.compute("TANH", {x}, "y", kF32, shape())});
  return s;
}

/// Values that depend on the sample and the place alone.
class Waves final : public SampleSource {
 public:
  Waves(const Model& model, int64_t count) : count_(count) {
    const SubgraphInfo graph = model.subgraph(0);
    shape_ = graph.tensors[static_cast<size_t>(graph.inputs[0])].shape;
    values_.resize(static_cast<size_t>(shape_.elements()));
  }
  bool next(Sample& sample) override {
    if (at_ == count_) return false;
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i] = std::sin(static_cast<float>(i) * 0.7F + static_cast<float>(at_));
    }
    ++at_;
    sample.inputs = {
        {.name = {}, .dtype = kF32, .shape = shape_, .data = std::as_bytes(std::span(values_)), .type_name = {}}};
    return true;
  }
  std::optional<int64_t> size() const override { return count_; }
  bool rewind() override {
    at_ = 0;
    return true;
  }

 private:
  int64_t count_;
  int64_t at_ = 0;
  Shape shape_;
  std::vector<float> values_;
};

/// Samples that must not be read.
class Untouchable final : public SampleSource {
 public:
  bool next(Sample&) override {
    ADD_FAILURE() << "a sample was read";
    return false;
  }
};

/// A job by its name: its plan and what it counted, on `samples`.
struct Job {
  std::string name;
  std::function<JobPlan(const Model&, const std::shared_ptr<Budget>&)> plan;
  std::function<int64_t(const Model&, const std::shared_ptr<Budget>&, SampleSource&)> run;
};

QuantizeOptions quantize_options(QuantizationMode mode, bool corrects, bool equalizes, std::shared_ptr<Budget> budget) {
  QuantizeOptions options;
  options.mode = mode;
  options.bias_correction = corrects;
  options.equalize = equalizes;
  options.calibration_rule.method = corrects ? CalibrationMethod::kMse : CalibrationMethod::kMinMax;
  options.min_weight_elements = 1;
  options.budget = std::move(budget);
  return options;
}

/// A quantized form of the model, charged elsewhere.
Model quantized_form(const Model& model, bool equalizes) {
  Waves samples(model, 2);
  const auto budget = Budget::with_limit(int64_t{1} << 40);
  return *QuantizeJob(model, quantize_options(QuantizationMode::kInt8, false, equalizes, budget))
              .run_to_model(&samples)
              .model;
}

std::vector<Job> all_jobs() {
  std::vector<Job> jobs;
  jobs.push_back({"calibrate",
                  [](const Model& model, const auto& budget) { return CalibrateJob(model, {.budget = budget}).plan(); },
                  [](const Model& model, const auto& budget, SampleSource& samples) {
                    return CalibrateJob(model, {.budget = budget}).run(samples).counted_peak_bytes;
                  }});
  for (const QuantizationMode mode :
       {QuantizationMode::kInt8, QuantizationMode::kInt16x8, QuantizationMode::kDynamicRange,
        QuantizationMode::kFloat16, QuantizationMode::kWeightOnlyInt8, QuantizationMode::kWeightOnlyInt4}) {
    for (const bool corrects : {false, true}) {
      for (const bool equalizes : {false, true}) {
        jobs.push_back({std::string("quantize ") + quantization_mode_name(mode) + (corrects ? " corrected" : "") +
                            (equalizes ? " equalized" : ""),
                        [=](const Model& model, const auto& budget) {
                          return QuantizeJob(model, quantize_options(mode, corrects, equalizes, budget)).plan();
                        },
                        [=](const Model& model, const auto& budget, SampleSource& samples) {
                          return QuantizeJob(model, quantize_options(mode, corrects, equalizes, budget))
                              .run(&samples)
                              .counted_peak_bytes;
                        }});
      }
    }
  }
  for (const bool equalizes : {false, true}) {
    jobs.push_back(
        {std::string("debug") + (equalizes ? " equalized" : ""),
         [=](const Model& model, const auto& budget) {
           return DebugJob(model, quantized_form(model, equalizes), {.budget = budget, .equalized = equalizes}).plan();
         },
         [=](const Model& model, const auto& budget, SampleSource& samples) {
           return DebugJob(model, quantized_form(model, equalizes), {.budget = budget, .equalized = equalizes})
               .run(samples)
               .counted_peak_bytes;
         }});
  }
  for (const QuantizationMode keep : {QuantizationMode::kFloat, QuantizationMode::kInt16x8}) {
    const auto options = [keep](const std::shared_ptr<Budget>& budget) {
      TuneOptions tune;
      tune.quantize = quantize_options(QuantizationMode::kInt8, false, false, budget);
      tune.keep = keep;
      tune.target = 0.999999;
      tune.max_trials = 6;
      return tune;
    };
    jobs.push_back({std::string("tune ") + quantization_mode_name(keep),
                    [=](const Model& model, const auto& budget) { return TuneJob(model, options(budget)).plan(); },
                    [=](const Model& model, const auto& budget, SampleSource& samples) {
                      return TuneJob(model, options(budget)).run({.calibration = &samples}).counted_peak_bytes;
                    }});
  }
  return jobs;
}

/// Whether the job refuses this limit, as it should with one below the plan, without reading a sample.
void expect_refusal(const Job& job, const Model& model, int64_t limit, const JobPlan& plan) {
  Untouchable samples;
  try {
    job.run(model, Budget::with_limit(limit), samples);
    ADD_FAILURE() << job.name << " did not refuse " << limit << " of " << plan.peak_bytes;
  } catch (const BudgetError& error) {
    EXPECT_EQ(error.needed(), plan.peak_bytes) << job.name;
    EXPECT_EQ(error.limit(), limit) << job.name;
    EXPECT_NE(std::string(error.what()).find(plan.to_text()), std::string::npos) << error.what();
  }
}

TEST(Jobs, CountNoMoreThanTheyPlanAndRefuseLessBeforeTheFirstSample) {
  const uint32_t models = std::getenv("LEADLINE_LONG") != nullptr ? 400 : 6;
  const std::vector<Job> jobs = all_jobs();
  for (uint32_t seed = 1; seed <= models; ++seed) {
    const Sketch sketch = random_model(seed);
    std::mt19937 random(seed);
    for (const Job& job : jobs) {
      SCOPED_TRACE(job.name + " of model " + std::to_string(seed));
      const Model model = sketch.load(Budget::with_limit(int64_t{1} << 40));
      const JobPlan plan = job.plan(model, Budget::with_limit(int64_t{1} << 40));
      ASSERT_TRUE(plan.complete);
      Waves samples(model, 2);
      const auto exact = Budget::with_limit(plan.peak_bytes);
      const int64_t counted = job.run(model, exact, samples);
      EXPECT_LE(counted, plan.peak_bytes) << plan.to_text();
      EXPECT_GE(counted, plan.phases.front().peak_bytes) << plan.to_text();
      EXPECT_EQ(exact->used(), 0) << "everything is given back";
      expect_refusal(job, model, plan.peak_bytes - 1, plan);
      expect_refusal(job, model, std::uniform_int_distribution<int64_t>(0, plan.peak_bytes - 1)(random), plan);
    }
  }
}

TEST(Jobs, PhasesAddUp) {
  const Model model = random_model(3).load();
  for (const Job& job : all_jobs()) {
    const JobPlan plan = job.plan(model, nullptr);
    int64_t largest = 0;
    for (const JobPhase& phase : plan.phases) {
      int64_t sum = 0;
      for (const CategoryBytes& c : phase.categories) sum += c.bytes;
      EXPECT_EQ(sum, phase.peak_bytes) << job.name << ' ' << phase.name;
      largest = std::max(largest, phase.peak_bytes);
    }
    EXPECT_EQ(largest, plan.peak_bytes) << job.name;
    EXPECT_EQ(plan.phases.front().name, "load") << job.name;
  }
}

/// A model that is charged to the budget of the job is not asked for twice.
TEST(Jobs, ModelsOfTheSameBudgetAreCountedOnce) {
  for (const Job& job : all_jobs()) {
    const Model planned = random_model(5).load();
    const JobPlan plan = job.plan(planned, nullptr);
    SCOPED_TRACE(plan.to_text());
    const auto budget = Budget::with_limit(plan.peak_bytes);
    const Model model = random_model(5).load(budget);
    Waves samples(model, 2);
    EXPECT_EQ(job.plan(model, budget).peak_bytes, plan.peak_bytes) << job.name;
    EXPECT_EQ(budget->used(), model.memory_bytes()) << job.name;
    EXPECT_LE(job.run(model, budget, samples), plan.peak_bytes) << job.name;
  }
}

TEST(QuantizeJob, WithoutSamplesSaysWhatItNeeds) {
  const Model model = random_model(2).load();
  const auto thrown = thrown_by([&] { QuantizeJob(model).run(); });
  EXPECT_EQ(thrown.code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(thrown.names("mode int8 needs samples")) << thrown.message;
}

TEST(QuantizeJob, RefusesRulesThatMatchNothing) {
  const Model model = random_model(2).load();
  QuantizeOptions options;
  options.mode = QuantizationMode::kFloat16;
  options.recipe = {rule_for_tensor("y", QuantizationMode::kFloat),
                    rule_for_tensor("y_int8", QuantizationMode::kFloat)};
  const auto thrown = thrown_by([&] { const QuantizeJob job(model, options); });
  EXPECT_EQ(thrown.code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(thrown.names("no node matches the rule name '^y_int8$'")) << thrown.message;
  options.recipe[1].optional = true;
  const QuantizeResult result = QuantizeJob(model, options).run();
  ASSERT_EQ(result.unmatched_rules.size(), 1U);
  EXPECT_EQ(describe(result.unmatched_rules[0]), "name '^y_int8$'");
}

TEST(QuantizeJob, TheResultIsTheSameInEveryForm) {
  const Model model = random_model(4).load();
  Waves samples(model, 3);
  QuantizeJob job(model);
  const QuantizeResult file = job.run(&samples);
  samples.rewind();
  const QuantizeResult loaded = job.run_to_model(&samples);
  EXPECT_EQ(loaded.model->to_tflite(), Model::from_bytes(file.file).to_tflite());
  EXPECT_EQ(file.samples, 3);
  EXPECT_LE(file.result_bytes, job.plan().result_bytes);
}

TEST(QuantizeJob, StopsWhenItsObserverSaysSo) {
  const Model model = random_model(4).load();
  Waves samples(model, 50);
  std::vector<std::string> phases;
  const auto thrown = thrown_by([&] {
    QuantizeJob(model).run(&samples, [&](const JobProgress& progress) {
      phases.emplace_back(progress.phase);
      return progress.done < 2;
    });
  });
  EXPECT_EQ(thrown.code, ErrorCode::kCancelled);
  EXPECT_EQ(phases, (std::vector<std::string>{"calibrate", "calibrate"}));
}

TEST(TuneJob, KeepsWhatSpoilsTheResult) {
  // One weight a thousand times the others: with one scale for all channels nothing else survives.
  Sketch s;
  const int x = s.input("x", kF32, {1, 4});
  std::vector<float> spoiled(16, 0.01F);
  spoiled[5] = 100.0F;
  const int w1 = s.constant<float>("w1", kF32, {4, 4}, std::vector<float>(16, 0.25F));
  const int w2 = s.constant<float>("w2", kF32, {4, 4}, spoiled);
  const int h = s.compute("FULLY_CONNECTED", {x, w1, -1}, "fine", kF32, {1, 4});
  const int g = s.compute("FULLY_CONNECTED", {h, w2, -1}, "spoiled", kF32, {1, 4});
  s.outputs({g});
  const Model model = s.load();
  Waves samples(model, 4);
  TuneOptions options;
  options.quantize.mode = QuantizationMode::kDynamicRange;
  options.quantize.min_weight_elements = 1;
  options.quantize.per_channel = options.quantize.per_channel_dense = false;
  options.function = [&](std::span<const std::byte> file) {
    const Model trial = Model::from_bytes(file);
    for (const NodeInfo& node : trial.subgraph(0).nodes) {
      const SubgraphInfo graph = trial.subgraph(0);
      if (graph.tensors[static_cast<size_t>(node.outputs[0])].name != "spoiled") continue;
      return graph.tensors[static_cast<size_t>(node.inputs[1])].dtype == kF32 ? 1.0 : 0.0;
    }
    return 0.0;
  };
  options.target = 1.0;
  int told = 0;
  options.on_trial = [&](const TuneTrial&) { ++told; };
  const TuneResult result = TuneJob(model, options).run({.calibration = &samples});
  EXPECT_TRUE(result.reached);
  EXPECT_EQ(result.kept, (std::vector<std::string>{"spoiled"}));
  EXPECT_EQ(result.causes, result.kept);
  EXPECT_EQ(told, static_cast<int>(result.trials.size()));
  ASSERT_EQ(result.recipe.size(), 1U);
  EXPECT_EQ(parse_recipe(recipe_to_json(result.recipe)).rules[0].name, "^spoiled$");
  EXPECT_EQ(options.function(result.file), 1.0);
}

}  // namespace
}  // namespace leadline
