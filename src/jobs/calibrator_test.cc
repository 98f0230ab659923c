// SPDX-License-Identifier: Apache-2.0
// Calibration through the public API: what is recorded, what it takes, and what failures leave behind.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "leadline/calibration.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::set;
using testing::Sketch;
using testing::thrown_by;

constexpr DType kF32 = DType::kFloat32;
constexpr DType kI32 = DType::kInt32;

const TensorCalibration& find(const std::vector<TensorCalibration>& tensors, int subgraph, const std::string& name) {
  static const TensorCalibration kNothing{-1, -1, "nothing", -1, -1, {}};
  for (const TensorCalibration& tensor : tensors) {
    if (tensor.subgraph == subgraph && tensor.name == name) return tensor;
  }
  return kNothing;
}

void expect_range(const TensorCalibration& tensor, int64_t elements, float min, float max) {
  EXPECT_EQ(tensor.elements, elements) << tensor.name;
  EXPECT_EQ(tensor.range.min, min) << tensor.name;
  EXPECT_EQ(tensor.range.max, max) << tensor.name;
}

/// |x| -> picked by an index that a run may refuse -> negated
Sketch picking_model() {
  Sketch s;
  const int x = s.input("x", kF32, {4});
  const int index = s.input("index", kI32, {1});
  const int a = s.compute("ABS", {x}, "a", kF32, {4});
  s.outputs({s.compute("NEG", {s.compute("GATHER", {a, index}, "picked", kF32, {1})}, "y", kF32, {1})});
  return s;
}

void add_sample(Calibrator& calibrator, const std::vector<float>& x, int32_t index) {
  set<float>(calibrator.interpreter(), 0, x);
  set<int32_t>(calibrator.interpreter(), 1, {index});
  calibrator.add_sample();
}

TEST(Calibration, HoldsInputsAndOutputsOfNodes) {
  Calibrator calibrator(picking_model().load());
  add_sample(calibrator, {1, -2, 3, -4}, 1);
  add_sample(calibrator, {0, 0, 0, 8}, 3);
  const Calibration calibration = calibrator.calibration();
  EXPECT_EQ(calibration.samples(), 2);
  const auto tensors = calibration.tensors();
  ASSERT_EQ(tensors.size(), 4U) << "the index is not a float";
  expect_range(find(tensors, 0, "x"), 8, -4, 8);
  expect_range(find(tensors, 0, "a"), 8, 0, 8);
  expect_range(find(tensors, 0, "picked"), 2, 2, 8);
  expect_range(find(tensors, 0, "y"), 2, -8, -2);
  const auto range = calibration.range(0, find(tensors, 0, "y").tensor, {}, 8, false);
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->min, -8);
  EXPECT_FALSE(calibration.range(0, 1, {}, 8, false).has_value()) << "an int32 tensor";
  EXPECT_FALSE(calibration.range(5, 1, {}, 8, false).has_value());
}

TEST(Calibration, TellsWhereValuesWereNotFiniteFirst) {
  Sketch s;
  const int x = s.input("x", kF32, {2});
  s.outputs({s.compute("NEG", {s.compute("LOG", {x}, "logarithm", kF32, {2})}, "y", kF32, {2})});
  Calibrator calibrator(s.load());
  const auto add = [&](const std::vector<float>& values) {
    set<float>(calibrator.interpreter(), 0, values);
    calibrator.add_sample();
  };
  add({1, 2});
  EXPECT_FALSE(calibrator.first_not_finite().has_value());
  add({1, -1});
  add({0, 0});
  const auto found = calibrator.first_not_finite();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->sample, 1);
  EXPECT_EQ(calibrator.model().subgraph(0).tensors[static_cast<size_t>(found->tensor)].name, "logarithm");
  calibrator.clear();
  EXPECT_FALSE(calibrator.first_not_finite().has_value());
}

TEST(Calibration, AFailedRunLeavesNoTrace) {
  Calibrator calibrator(picking_model().load());
  add_sample(calibrator, {1, 2, 3, 4}, 1);
  const auto before = calibrator.calibration().to_bytes();
  EXPECT_EQ(thrown_by([&] { add_sample(calibrator, {100, 200, 300, 400}, 9); }).code, ErrorCode::kRuntime);
  EXPECT_EQ(calibrator.calibration().to_bytes(), before);
  add_sample(calibrator, {1, 2, 3, 4}, 1);
  EXPECT_EQ(calibrator.calibration().samples(), 2);
  expect_range(find(calibrator.calibration().tensors(), 0, "a"), 8, 1, 4);
}

TEST(Calibration, RunsOfTheCallerAreNotRecorded) {
  Calibrator calibrator(picking_model().load());
  add_sample(calibrator, {1, 2, 3, 4}, 1);
  const auto before = calibrator.calibration().to_bytes();
  calibrator.interpreter().invoke();
  EXPECT_EQ(calibrator.calibration().to_bytes(), before);
}

TEST(Calibration, PartsMergeToTheWhole) {
  const Model model = picking_model().load();
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Calibrator whole(model);
  Calibrator part(model);
  Calibration merged;
  for (int i = 0; i < 40; ++i) {
    const std::vector<float> x = {normal(random), normal(random) * 100, normal(random) * 1e-3F, normal(random)};
    add_sample(whole, x, i % 4);
    add_sample(part, x, i % 4);
    if (i % 7 == 6 || i == 39) {
      merged.merge(Calibration::from_bytes(part.calibration().to_bytes()));
      part.clear();
    }
  }
  EXPECT_EQ(merged.to_bytes(), whole.calibration().to_bytes());
  EXPECT_TRUE(merged.is_of(model));
}

TEST(Calibration, OtherModelsDoNotMerge) {
  Sketch other = picking_model();
  other.subgraph().values[0].name = "another";
  Calibration calibration = Calibrator(picking_model().load()).calibration();
  const Model model = other.load();
  EXPECT_FALSE(calibration.is_of(model));
  EXPECT_EQ(thrown_by([&] { calibration.merge(Calibrator(model).calibration()); }).code, ErrorCode::kInvalidArgument);
}

TEST(Calibration, LoopsAreRecordedInside) {
  Sketch s;
  const int i = s.input("i", kI32, {});
  const int x = s.input("x", kF32, {2});
  const std::vector<int> ends = {s.value("i_end", kI32, {}), s.value("x_end", kF32, {2})};
  s.node("WHILE", {i, x}, ends, {{"cond_subgraph_index", int64_t{1}}, {"body_subgraph_index", int64_t{2}}});
  s.outputs({ends[1]});
  s.next_subgraph("cond");
  const int ci = s.input("i", kI32, {});
  s.input("x", kF32, {2});
  s.outputs({s.compute("LESS", {ci, s.constant<int32_t>("limit", kI32, {}, {3})}, "goes_on", DType::kBool, {})});
  s.next_subgraph("body");
  const int bi = s.input("i", kI32, {});
  const int bx = s.input("bx", kF32, {2});
  const int next = s.compute("ADD", {bi, s.constant<int32_t>("one", kI32, {}, {1})}, "next", kI32, {});
  const int twice = s.compute("ADD", {bx, bx}, "twice", kF32, {2});
  s.outputs({next, s.compute("ADD", {twice, bx}, "thrice", kF32, {2})});

  Calibrator calibrator(s.load());
  set<int32_t>(calibrator.interpreter(), i, {0});
  set<float>(calibrator.interpreter(), x, {1, -2});
  calibrator.add_sample();
  const auto tensors = calibrator.calibration().tensors();
  expect_range(find(tensors, 0, "x"), 2, -2, 1);
  expect_range(find(tensors, 2, "bx"), 6, -18, 9);  // once a round, though two nodes read it three times
  expect_range(find(tensors, 2, "twice"), 6, -36, 18);
  expect_range(find(tensors, 0, "x_end"), 2, -54, 27);
}

TEST(Calibration, VariablesAreRecordedAndEachSampleBeginsAnew) {
  Sketch s;
  const int x = s.input("x", kF32, {2});
  const int state = s.variable("state", kF32, {2});
  s.outputs({s.compute("ADD", {x, state}, "y", kF32, {2})});
  Calibrator calibrator(s.load());
  set<float>(calibrator.interpreter(), x, {1, 2});
  set<float>(calibrator.interpreter(), state, {10, 20});
  calibrator.add_sample();
  expect_range(find(calibrator.calibration().tensors(), 0, "state"), 2, 10, 20);
  calibrator.add_sample();
  expect_range(find(calibrator.calibration().tensors(), 0, "state"), 4, 0, 20);
  expect_range(find(calibrator.calibration().tensors(), 0, "y"), 4, 1, 22);

  CalibrateOptions options;
  options.keep_state = true;
  Calibrator stream(s.load(), options);
  set<float>(stream.interpreter(), x, {1, 2});
  set<float>(stream.interpreter(), state, {10, 20});
  stream.add_sample();
  stream.add_sample();
  expect_range(find(stream.calibration().tensors(), 0, "state"), 4, 10, 20);
}

TEST(Calibration, ResultsOfShapesAloneAreRecorded) {
  Sketch s;
  const int x = s.input("x", kF32, {1, 2});
  s.subgraph().values[0].signature = std::vector<int32_t>{-1, 2};
  const int shape = s.compute("SHAPE", {x}, "shape", kI32, {2}, {{"out_type", int64_t{2}}});
  const int fill = s.compute("FILL", {shape, s.constant<float>("three", kF32, {}, {3})}, "fill", kF32, {1, 2});
  const int table = s.constant<float>("table", kF32, {2}, {7, 8});
  const int negative = s.compute("NEG", {table}, "negative", kF32, {2});
  s.outputs({s.compute("ADD", {s.compute("ADD", {x, fill}, "sum", kF32, {1, 2}), negative}, "y", kF32, {1, 2})});
  Calibrator calibrator(s.load());
  for (const int64_t rows : {1, 3}) {
    calibrator.interpreter().resize_input(x, {rows, 2});
    set<float>(calibrator.interpreter(), x, std::vector<float>(static_cast<size_t>(2 * rows), 1.0F));
    calibrator.add_sample();
  }
  const auto tensors = calibrator.calibration().tensors();
  expect_range(find(tensors, 0, "fill"), 8, 3, 3);
  expect_range(find(tensors, 0, "negative"), 0, 0, 0);
  expect_range(find(tensors, 0, "sum"), 8, 4, 4);
}

TEST(Calibration, SignaturesOnTheirOwnSubgraphsGoIntoOneCalibration) {
  Sketch s;
  s.outputs({s.compute("ABS", {s.input("x", kF32, {2})}, "first", kF32, {2})});
  s.next_subgraph("other");
  s.outputs({s.compute("NEG", {s.input("z", kF32, {2})}, "second", kF32, {2})});
  Calibrator calibrator(s.load());
  set<float>(calibrator.interpreter(1), 0, {5, 6});
  calibrator.add_sample(1);
  set<float>(calibrator.interpreter(0), 0, {-1, 2});
  calibrator.add_sample(0);
  const auto tensors = calibrator.calibration().tensors();
  EXPECT_EQ(calibrator.calibration().samples(), 2);
  expect_range(find(tensors, 0, "first"), 2, 1, 2);
  expect_range(find(tensors, 1, "second"), 2, -6, -5);
  EXPECT_EQ(thrown_by([&] { calibrator.add_sample(7); }).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(thrown_by([&] { calibrator.add_sample(7); }).code, ErrorCode::kInvalidArgument);
}

TEST(Calibration, MemoryIsKnownBeforeAndDoesNotGrow) {
  const auto budget = Budget::with_limit(1 << 20);
  {
    const Model model = picking_model().load(budget);
    Calibrator calibrator(model);
    const int64_t planned = calibrator.statistics_bytes();
    EXPECT_GT(planned, 4 * 2 * 4096 * 8);
    EXPECT_EQ(budget->used(MemoryCategory::kStatistics), 0) << "nothing before the first sample";
    for (int i = 0; i < 300; ++i) {
      add_sample(calibrator, {1, 2, 3, static_cast<float>(i)}, 3);
      ASSERT_EQ(budget->used(MemoryCategory::kStatistics), planned);
    }
    const Calibration calibration = calibrator.calibration();
    EXPECT_EQ(budget->used(MemoryCategory::kStatistics), planned + calibration.memory_bytes());
    const Calibration copy = calibration;  // NOLINT(performance-unnecessary-copy-initialization)
    EXPECT_EQ(budget->used(MemoryCategory::kStatistics), planned + 2 * calibration.memory_bytes());
  }
  EXPECT_EQ(budget->used(), 0);
}

TEST(Calibration, StatisticsThatDoNotFitAreRefused) {
  const auto budget = Budget::with_limit(200'000);
  Calibrator calibrator(picking_model().load(budget));
  EXPECT_EQ(thrown_by([&] { add_sample(calibrator, {1, 2, 3, 4}, 0); }).code, ErrorCode::kBudget);
  EXPECT_EQ(calibrator.calibration().samples(), 0);
  CalibrateOptions options;
  options.histograms = false;
  Calibrator lean(picking_model().load(budget), options);
  add_sample(lean, {1, 2, 3, 4}, 0);
  EXPECT_EQ(lean.calibration().samples(), 1);
  EXPECT_EQ(thrown_by([&] { lean.calibration().range(0, 0, {.method = CalibrationMethod::kMse}, 8, false); }).code,
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(lean.calibration().range(0, 0, {.method = CalibrationMethod::kMovingAverage}, 8, false).has_value());
}

}  // namespace
}  // namespace leadline
