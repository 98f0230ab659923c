// SPDX-License-Identifier: Apache-2.0
// Expected results are those of TensorFlow Lite.
#include "ops/sequence_lstm.h"

#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

SequenceLstmAttributes attributes(bool time_major) {
  SequenceLstmAttributes a;
  a.activation = ir::Activation::kTanh;
  a.time_major = time_major;
  return a;
}

/// Two float cells with peephole, two steps of one row.
void add_float_weights(OpTester& t) {
  t.input<float>({2, 2}, {.4F, -.5F, -.9F, -.2F}).input<float>({2, 2}, {-.2F, .8F, -.1F, -.3F});
  t.input<float>({2, 2}, {.3F, -.2F, -.6F, .8F}).input<float>({2, 2}, {.2F, -.4F, 0, 1});
  t.input<float>({2, 2}, {-.7F, -1, -.1F, -.4F}).input<float>({2, 2}, {-.4F, -.8F, .4F, -.2F});
  t.input<float>({2, 2}, {.7F, -.8F, -1, -.2F}).input<float>({2, 2}, {.9F, 0, .3F, -.9F});
  t.input<float>({2}, {-1, .3F}).input<float>({2}, {-.7F, .8F}).input<float>({2}, {.9F, .5F});
  t.input<float>({2}, {-.8F, .8F}).input<float>({2}, {.7F, .6F}).input<float>({2}, {.7F, -.1F});
  t.input<float>({2}, {.6F, .2F}).absent_input().absent_input();
}

void expect_near(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5F) << "value " << i;
}

TEST(SequenceLstm, FloatStateIsKeptBetweenRuns) {
  OpTester t("UNIDIRECTIONAL_SEQUENCE_LSTM");
  t.attributes(attributes(false)).input<float>({1, 2, 2}, {.5F, -1, 2, .25F}, {}, false);
  add_float_weights(t);
  t.variable<float>({1, 2}, {0, 0}).variable<float>({1, 2}, {0, 0}).output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.shape(0), (Shape{1, 2, 2}));
  expect_near(t.result<float>(0), {0.2868401F, -0.1242276F, 0.4103523F, -0.2657465F});
  expect_near(t.state<float>(18), {0.4103523F, -0.2657465F});
  t.run();
  expect_near(t.result<float>(0), {0.4109223F, -0.2074081F, 0.4486717F, -0.32876F});
}

TEST(SequenceLstm, TimeMajorRowsAreIndependent) {
  OpTester t("UNIDIRECTIONAL_SEQUENCE_LSTM");
  // The row of the test above twice, side by side.
  t.attributes(attributes(true)).input<float>({2, 2, 2}, {.5F, -1, .5F, -1, 2, .25F, 2, .25F}, {}, false);
  add_float_weights(t);
  t.variable<float>({2, 2}, {0, 0, 0, 0}).variable<float>({2, 2}, {0, 0, 0, 0}).output(DType::kFloat32);
  t.run();
  expect_near(t.result<float>(0),
              {0.2868401F, -0.1242276F, 0.2868401F, -0.1242276F, 0.4103523F, -0.2657465F, 0.4103523F, -0.2657465F});
}

TEST(SequenceLstm, HybridWeightsComeCloseToFloat) {
  OpTester t("UNIDIRECTIONAL_SEQUENCE_LSTM");
  t.attributes(attributes(false)).input<float>({1, 2, 2}, {.5F, -1, 2, .25F}, {}, false);
  const Quantization q = quantized(0.01F);
  t.input<int8_t>({2, 2}, {40, -50, -90, -20}, q).input<int8_t>({2, 2}, {-20, 80, -10, -30}, q);
  t.input<int8_t>({2, 2}, {30, -20, -60, 80}, q).input<int8_t>({2, 2}, {20, -40, 0, 100}, q);
  t.input<int8_t>({2, 2}, {-70, -100, -10, -40}, q).input<int8_t>({2, 2}, {-40, -80, 40, -20}, q);
  t.input<int8_t>({2, 2}, {70, -80, -100, -20}, q).input<int8_t>({2, 2}, {90, 0, 30, -90}, q);
  t.input<int8_t>({2}, {-100, 30}, q).input<int8_t>({2}, {-70, 80}, q).input<int8_t>({2}, {90, 50}, q);
  t.input<float>({2}, {-.8F, .8F}).input<float>({2}, {.7F, .6F}).input<float>({2}, {.7F, -.1F});
  t.input<float>({2}, {.6F, .2F}).absent_input().absent_input();
  t.variable<float>({1, 2}, {0, 0}).variable<float>({1, 2}, {0, 0}).output(DType::kFloat32);
  t.run();
  const std::vector<float> expected = {0.2868401F, -0.1242276F, 0.4103523F, -0.2657465F};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(t.result<float>(0)[i], expected[i], 0.01F);
}

const Quantization kWeight = quantized(0.01F);
const Quantization kBiases = quantized(2e-4F);
const Quantization kState = quantized(0.01F, -3);

TEST(SequenceLstm, IntegerBitForBit) {
  OpTester t("UNIDIRECTIONAL_SEQUENCE_LSTM");
  t.attributes(attributes(true)).input<int8_t>({3, 1, 2}, {-22, 24, 123, -66, -121, 120}, quantized(0.02F, 5), false);
  t.input<int8_t>({2, 2}, {-21, 25, 122, 4}, kWeight).input<int8_t>({2, 2}, {57, 73, -127, -106}, kWeight);
  t.input<int8_t>({2, 2}, {126, 20, 75, -20}, kWeight).input<int8_t>({2, 2}, {122, 42, 11, 22}, kWeight);
  t.input<int8_t>({2, 2}, {-8, 39, 97, 21}, kWeight).input<int8_t>({2, 2}, {45, -34, 40, 15}, kWeight);
  t.input<int8_t>({2, 2}, {121, -101, -46, 91}, kWeight).input<int8_t>({2, 2}, {23, -61, -125, 64}, kWeight);
  t.absent_input().absent_input().absent_input();
  t.input<int32_t>({2}, {1388, -1359}, kBiases).input<int32_t>({2}, {-1142, 1653}, kBiases);
  t.input<int32_t>({2}, {920, -1378}, kBiases).input<int32_t>({2}, {-367, 461}, kBiases);
  t.absent_input().absent_input();
  t.variable<int8_t>({1, 2}, {-3, -3}, kState).variable<int16_t>({1, 2}, {0, 0}, quantized(0x1p-11F));
  for (int i = 0; i < 4; ++i) t.intermediate(DType::kInt16, {});
  t.intermediate(DType::kInt8, kState).output(DType::kInt8, kState);
  t.run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{-12, -13, 17, 32, -8, 27}));
  t.run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{-22, 12, 0, 41, -8, 35}));
}

/// Coupled gates, peephole, projection and layer normalization.
TEST(SequenceLstm, IntegerWithEverythingBitForBit) {
  OpTester t("UNIDIRECTIONAL_SEQUENCE_LSTM");
  t.attributes(attributes(true)).input<int8_t>({3, 1, 2}, {-127, -43, -11, -9, 74, 107}, quantized(0.02F, 5), false);
  t.absent_input().input<int8_t>({3, 2}, {-21, 25, 122, 4, 57, 73}, kWeight);
  t.input<int8_t>({3, 2}, {-127, -106, 126, 20, 75, -20}, kWeight);
  t.input<int8_t>({3, 2}, {122, 42, 11, 22, -8, 39}, kWeight);
  t.absent_input().input<int8_t>({3, 2}, {97, 21, 45, -34, 40, 15}, kWeight);
  t.input<int8_t>({3, 2}, {121, -101, -46, 91, 23, -61}, kWeight);
  t.input<int8_t>({3, 2}, {-125, 64, -67, 2, 52, -37}, kWeight);
  t.absent_input().input<int16_t>({3}, {1718, 2729, -1358}, quantized(1e-4F));
  t.input<int16_t>({3}, {1926, -433, 243}, quantized(1e-4F));
  t.absent_input().input<int32_t>({3}, {1617, 427, -641}, kBiases);
  t.input<int32_t>({3}, {-1824, -171, 1092}, kBiases).input<int32_t>({3}, {910, 609, -571}, kBiases);
  t.input<int8_t>({2, 3}, {0, 79, 117, -99, -8, -73}, quantized(0.008F));
  t.input<int32_t>({2}, {-500, 204}, quantized(1e-4F));
  t.variable<int8_t>({1, 2}, {-3, -3}, kState).variable<int16_t>({1, 3}, {0, 0, 0}, quantized(0x1p-11F));
  t.absent_input().input<int16_t>({3}, {13466, 22780, 19271}, quantized(3e-5F));
  t.input<int16_t>({3}, {21037, 7232, 14981}, quantized(3e-5F));
  t.input<int16_t>({3}, {21046, 5545, 7161}, quantized(3e-5F));
  for (int i = 0; i < 4; ++i) t.intermediate(DType::kInt16, quantized(0.0005F));
  t.intermediate(DType::kInt8, quantized(0.012F, 4)).output(DType::kInt8, kState);
  t.run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{-18, -3, -22, -6, -10, 17}));
  t.run();
  EXPECT_EQ(t.result<int8_t>(0), (std::vector<int8_t>{-19, 2, -22, -3, -11, 19}));
}

TEST(SequenceLstm, StateThatIsNoVariableIsRefused) {
  OpTester t("UNIDIRECTIONAL_SEQUENCE_LSTM");
  t.attributes(attributes(false)).input<float>({1, 2, 2}, {.5F, -1, 2, .25F}, {}, false);
  add_float_weights(t);
  t.input<float>({1, 2}, {0, 0}).variable<float>({1, 2}, {0, 0}).output(DType::kFloat32);
  EXPECT_THROW(t.run(), Error);
}

TEST(SequenceLstm, WeightsOfTheWrongShapeAreRefused) {
  OpTester t("UNIDIRECTIONAL_SEQUENCE_LSTM");
  t.attributes(attributes(false)).input<float>({1, 2, 3}, std::vector<float>(6), {}, false);
  add_float_weights(t);
  t.variable<float>({1, 2}, {0, 0}).variable<float>({1, 2}, {0, 0}).output(DType::kFloat32);
  EXPECT_THROW(t.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
