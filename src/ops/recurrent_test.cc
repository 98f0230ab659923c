// SPDX-License-Identifier: Apache-2.0
// LSTM (basic kernel), the RNNs and SVDF. Quantized results are those of TensorFlow Lite.
#include <gtest/gtest.h>

#include "ops/lstm.h"
#include "ops/op_testing.h"
#include "ops/rnn.h"
#include "ops/svdf.h"

namespace leadline::ops {
namespace {

TEST(Lstm, BasicQuantizedCellBitForBit) {
  LstmAttributes a;
  a.kernel_type = LstmKernel::kBasic;
  a.activation = ir::Activation::kTanh;
  OpTester t("LSTM");
  const Quantization value = quantized(1.0F / 128, 128);
  t.attributes(a).input<uint8_t>({1, 2}, {200, 30}, value, false).variable<uint8_t>({1, 2}, {0, 0}, value);
  t.input<uint8_t>({8, 4}, {126, 92,  126, 245, 182, 56,  251, 150, 125, 65,  22,  180, 59,  40,  250, 241,
                            248, 117, 91,  161, 221, 220, 128, 188, 238, 187, 216, 202, 184, 221, 62,  234},
                   quantized(0.005F, 120));
  t.input<int32_t>({8}, {-2582, -2642, -5232, -4976, 1979, 7779, 6269, 4798}, quantized(0.005F / 128));
  t.variable<int16_t>({1, 2}, {0, 0}, quantized(0x1p-11F));
  t.output(DType::kUInt8, value).output(DType::kInt16, quantized(0x1p-11F));
  t.output(DType::kUInt8, value).output(DType::kInt16, quantized(0x1p-12F));
  t.run();
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{131, 111}));
  EXPECT_EQ(t.result<int16_t>(1), (std::vector<int16_t>{147, -674}));
  EXPECT_EQ(t.result<int16_t>(3), (std::vector<int16_t>{-2588, -2002, 861, -5385, 1593, -716, -2333, -1225}));
  t.run();
  EXPECT_EQ(t.result<uint8_t>(0), (std::vector<uint8_t>{130, 113}));
  EXPECT_EQ(t.result<int16_t>(1), (std::vector<int16_t>{58, -511}));
}

TEST(Rnn, StepAddsInputStateAndBias) {
  RnnAttributes a;
  a.activation = ir::Activation::kRelu;
  OpTester t("RNN");
  t.attributes(a).input<float>({1, 2}, {1, 2}, {}, false).input<float>({2, 2}, {1, 1, -1, -1});
  t.input<float>({2, 2}, {2, 0, 0, 1}).input<float>({2}, {0.5F, 1}).variable<float>({1, 2}, {0, 0});
  t.output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{3.5F, 0}));
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{10.5F, 0}));
  EXPECT_EQ(t.state<float>(4), (std::vector<float>{10.5F, 0}));
}

TEST(Rnn, BidirectionalOutputsAreMergedSideBySide) {
  BidirectionalRnnAttributes a;
  a.merge_outputs = true;
  OpTester t("BIDIRECTIONAL_SEQUENCE_RNN");
  t.attributes(a).input<float>({1, 3, 1}, {1, 2, 3}, {}, false);
  for (int direction = 0; direction < 2; ++direction) {
    t.input<float>({1, 1}, {1}).input<float>({1, 1}, {1}).input<float>({1}, {0}).variable<float>({1, 1}, {0});
  }
  t.absent_input().absent_input().absent_input().output(DType::kFloat32).run();
  EXPECT_EQ(t.shape(0), (Shape{1, 3, 2}));
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{1, 6, 3, 5, 6, 3}));
}

SvdfAttributes rank_two(ir::Activation activation) {
  SvdfAttributes a;
  a.rank = 2;
  a.activation = activation;
  return a;
}

TEST(Svdf, IntegerBitForBitOverThreeSteps) {
  OpTester t("SVDF");
  t.attributes(rank_two(ir::Activation::kRelu)).input<int8_t>({1, 2}, {100, -77}, quantized(0.02F, 3), false);
  t.input<int8_t>({4, 2}, {-28, 79, 112, 62, 103, -9, 17, -54}, quantized(0.01F));
  t.input<int16_t>({4, 3}, {13800, 13508, -3897, 14750, 15227, -17282, 176, -12313, 8876, 12655, 15953, 10133},
                   quantized(1e-4F));
  t.input<int32_t>({2}, {-707513, -216912}, quantized(1e-6F));
  t.variable<int16_t>({1, 12}, std::vector<int16_t>(12), quantized(5e-5F)).output(DType::kInt8, quantized(0.05F, -20));
  const std::vector<std::vector<int8_t>> expected = {{-48, 33}, {-56, 31}, {-67, 62}};
  for (const auto& step : expected) {
    t.run();
    EXPECT_EQ(t.result<int8_t>(0), step);
  }
}

TEST(Svdf, FloatRemembersItsLastResults) {
  OpTester t("SVDF");
  t.attributes(rank_two(ir::Activation::kNone)).input<float>({1, 1}, {2}, {}, false).input<float>({2, 1}, {1, 3});
  t.input<float>({2, 2}, {10, 1, 0, 1}).input<float>({1}, {0.5F}).variable<float>({1, 4}, {0, 0, 0, 0});
  t.output(DType::kFloat32);
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{8.5F}));
  t.run();
  EXPECT_EQ(t.result<float>(0), (std::vector<float>{28.5F}));
}

TEST(Svdf, RankThatDoesNotDivideTheFiltersIsRefused) {
  OpTester t("SVDF");
  t.attributes(rank_two(ir::Activation::kNone)).input<float>({1, 1}, {2}).input<float>({3, 1}, {1, 3, 4});
  t.input<float>({3, 1}, {1, 1, 1}).absent_input().variable<float>({1, 3}, {0, 0, 0}).output(DType::kFloat32);
  EXPECT_THROW(t.run(), Error);
}

}  // namespace
}  // namespace leadline::ops
