// SPDX-License-Identifier: Apache-2.0
// Samples on their way into a model: which input a tensor is for, what fits, how types convert, what is found.
#include "leadline/sample_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::Sketch;
using testing::Thrown;
using testing::thrown_by;

constexpr DType kF32 = DType::kFloat32;

template <typename T>
SampleTensor tensor_of(DType dtype, const Shape& shape, const std::vector<T>& values, const std::string& name = "") {
  return {name, dtype, shape, std::as_bytes(std::span(values)), {}};
}

/// One sample, again and again.
std::unique_ptr<SampleSource> repeated(const std::vector<SampleTensor>& inputs, int count = 1) {
  const auto left = std::make_shared<int>(count);
  return callback_samples(
      [=](Sample& sample) {
        if (*left == 0) return false;
        --*left;
        sample.inputs = inputs;
        return true;
      },
      [=] { *left = count; }, count);
}

Sketch negating(DType dtype, const Shape& shape) {
  Sketch s;
  s.outputs({s.compute("NEG", {s.input("x", dtype, shape)}, "y", dtype, shape)});
  return s;
}

template <typename T>
std::vector<T> input_values(Interpreter& interpreter) {
  const TensorMemory memory = interpreter.tensor(interpreter.inputs()[0]);
  std::vector<T> values(static_cast<size_t>(memory.bytes) / sizeof(T));
  std::memcpy(values.data(), memory.data, values.size() * sizeof(T));
  return values;
}

/// What the input of `model` holds after it was given `tensor`.
template <typename T>
std::vector<T> converted(const Model& model, const SampleTensor& tensor) {
  auto source = repeated({tensor});
  SampleReader reader(model, *source);
  Interpreter interpreter(model);
  set_inputs(interpreter, *reader.next());
  return input_values<T>(interpreter);
}

Thrown refusal_of(const Model& model, const std::vector<SampleTensor>& inputs) {
  auto source = repeated(inputs);
  SampleReader reader(model, *source);
  return thrown_by([&] { reader.next(); });
}

TEST(SampleReader, ConvertsNumbersToTheTypeOfTheInput) {
  const Model model = negating(kF32, {3}).load();
  const std::vector<float> expected = {0, 7, 255};
  EXPECT_EQ(converted<float>(model, tensor_of<uint8_t>(DType::kUInt8, {3}, {0, 7, 255})), expected);
  EXPECT_EQ(converted<float>(model, tensor_of<double>(DType::kFloat64, {3}, {0, 7, 255})), expected);
  EXPECT_EQ(converted<float>(model, tensor_of<int64_t>(DType::kInt64, {3}, {0, 7, 255})), expected);
  EXPECT_EQ(converted<float>(model, tensor_of<uint16_t>(DType::kFloat16, {3}, {0, 0x4700, 0x5BF8})), expected);
  const Model integers = negating(DType::kInt32, {2}).load();
  EXPECT_EQ(converted<int32_t>(integers, tensor_of<int64_t>(DType::kInt64, {2}, {-5, 6})),
            (std::vector<int32_t>{-5, 6}));
  EXPECT_TRUE(
      refusal_of(integers, {tensor_of<int64_t>(DType::kInt64, {2}, {1, int64_t{1} << 40})}).names("do not fit"));
  EXPECT_TRUE(refusal_of(integers, {tensor_of<uint64_t>(DType::kUInt64, {2}, {1, UINT64_MAX})}).names("do not fit"));
  EXPECT_TRUE(refusal_of(integers, {tensor_of<float>(kF32, {2}, {1, 2})}).names("the type is float32"));
}

TEST(SampleReader, QuantizesFloatsForIntegerInputs) {
  Sketch s = negating(DType::kInt8, {5});
  for (ir::Value& value : s.subgraph().values) {
    value.quantization.scale = {0.5F};
    value.quantization.zero_point = {-3};
  }
  const std::vector<float> values = {0.0F, 0.25F, -0.25F, 1000.0F, -1000.0F};
  EXPECT_EQ(converted<int8_t>(s.load(), tensor_of(kF32, {5}, values)), (std::vector<int8_t>{-3, -2, -4, 127, -128}))
      << "ties go away from zero";
  EXPECT_EQ(converted<int8_t>(s.load(), tensor_of<int8_t>(DType::kInt8, {5}, {1, 2, 3, 4, 5})),
            (std::vector<int8_t>{1, 2, 3, 4, 5}));
}

TEST(SampleReader, FindsInputsByNameAndResizesThem) {
  Sketch s;
  const int a = s.input("a", kF32, {1}), b = s.input("b:0", kF32, {1});
  for (const int v : {a, b}) s.subgraph().value(v).signature = std::vector<int32_t>{-1};
  s.outputs({s.compute("SUB", {a, b}, "y", kF32, {1})});
  const Model model = s.load();
  const std::vector<float> one = {1, 2}, two = {10, 20};
  auto source = repeated({tensor_of(kF32, {2}, two, "b"), tensor_of(kF32, {2}, one, "a")});
  SampleReader reader(model, *source);
  Interpreter interpreter(model);
  set_inputs(interpreter, *reader.next());
  interpreter.invoke();
  EXPECT_EQ(testing::get<float>(interpreter, interpreter.outputs()[0]), (std::vector<float>{-9, -18}));
  EXPECT_TRUE(refusal_of(model, {tensor_of(kF32, {2}, one, "c")}).names("sample 0: the model has no input 'c'"));
  EXPECT_TRUE(refusal_of(model, {tensor_of(kF32, {2}, one, "a")}).names("input 'b:0' is missing"));
  EXPECT_TRUE(refusal_of(model, {tensor_of(kF32, {2}, one)}).names("1 arrays for 2 inputs"));
}

TEST(SampleReader, RefusesWhatCannotServe) {
  const Model model = negating(kF32, {1, 2}).load();
  const std::vector<float> values = {1, 2, 3, 4};
  EXPECT_TRUE(refusal_of(model, {tensor_of(kF32, {2, 2}, values)}).names("give samples one by one"));
  EXPECT_TRUE(refusal_of(model, {tensor_of<float>(kF32, {2}, {1, 2})}).names("add the batch dimension"));
  EXPECT_TRUE(refusal_of(model, {tensor_of(kF32, {1, 2}, values)}).names("takes 8 bytes, got 16"));
  EXPECT_TRUE(refusal_of(model, {tensor_of<float>(kF32, {1, 2}, {1, NAN})}).names("the first at [0, 1]"));
  EXPECT_TRUE(refusal_of(model, {tensor_of<double>(DType::kFloat64, {1, 2}, {1e300, 0})}).names("1 of 2 values"));
  EXPECT_TRUE(refusal_of(model, {tensor_of<uint8_t>(DType::kBool, {1, 2}, {1, 0})}).names("the type is bool"));
  auto nothing = repeated({}, 0);
  SampleReader empty(model, *nothing);
  EXPECT_TRUE(thrown_by([&] { empty.next(); }).names("is empty"));
}

TEST(SampleReader, StopsAtTheLimitAndBeginsAgain) {
  const Model model = negating(kF32, {1}).load();
  const std::vector<float> values = {1, 2, 3, 4, 5};
  auto source = array_samples({tensor_of(kF32, {5}, values)});
  SampleReader reader(model, *source, {.limit = 3});
  EXPECT_EQ(reader.size(), 3);
  float sum = 0;
  const auto add = [&](const Sample& sample) { sum += *reinterpret_cast<const float*>(sample.inputs[0].data.data()); };
  std::vector<int64_t> told;
  const auto progress = [&](int64_t done, int64_t total) { return told.push_back(done * 10 + total), true; };
  EXPECT_EQ(for_each_sample(reader, progress, add), 3);
  EXPECT_EQ(sum, 6);
  EXPECT_EQ(told, (std::vector<int64_t>{13, 23, 33}));
  const size_t findings = reader.findings().size();
  ASSERT_TRUE(reader.rewind());
  EXPECT_EQ(for_each_sample(reader, {}, add), 3);
  EXPECT_EQ(sum, 12);
  EXPECT_EQ(reader.findings().size(), findings) << "once is enough";
  reader.rewind();
  const Thrown thrown = thrown_by([&] {
    for_each_sample(reader, {}, [&](const Sample&) {
      if (reader.count() == 2) throw Error(ErrorCode::kRuntime, "no");
    });
  });
  EXPECT_EQ(thrown.message, "sample 1: no");
  EXPECT_EQ(thrown.code, ErrorCode::kRuntime);
}

// What is found ------------------------------------------------------------------------------------

Sketch image_model(const std::string& op) {
  Sketch s;
  const int x = s.input("image", kF32, {1, 2, 2, 3});
  s.outputs({s.compute(op, {x}, "y", kF32, {1, 2, 2, 3})});
  return s;
}

/// Messages for 40 samples of 12 values each, made by make(sample, element).
template <typename Make>
std::string findings_of(const Model& model, const Make& make, int count = 40) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < 12; ++j) values.push_back(static_cast<float>(make(i, j)));
  }
  auto source = array_samples({tensor_of(kF32, {count, 2, 2, 3}, values)});
  SampleReader reader(model, *source);
  for_each_sample(reader, {}, [](const Sample&) {});
  std::string text;
  for (const SampleFinding& finding : reader.findings()) text += finding.message + "\n";
  return text;
}

TEST(SampleLint, FindsWhatMayNotBeMeant) {
  const Model model = image_model("NEG").load();
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_EQ(findings_of(model, [](int i, int j) { return 0.01 * (i + j); }), "");
  EXPECT_TRUE(has(findings_of(model, [](int i, int j) { return 5 * i + j; }),
                  "as of raw pixels, but the model begins "
                  "with NEG"));
  EXPECT_TRUE(has(findings_of(model, [](int, int) { return 0.5; }), "every value of every sample is 0.5"));
  EXPECT_TRUE(
      has(findings_of(model, [](int, int j) { return 0.1 * j; }), "all 40 samples of the dataset are the same"));
  EXPECT_TRUE(has(findings_of(model, [](int i, int j) { return i == 20 ? 9000 : 0.1 * (i + j); }),
                  "sample 20, input 'image': values up to 9000"));
  EXPECT_TRUE(has(findings_of(model, [](int, int j) { return 0.1 * j; }, 1), "only 1 samples"));
}

}  // namespace
}  // namespace leadline
