// SPDX-License-Identifier: Apache-2.0
#include "debug/layer_names.h"

#include <gtest/gtest.h>

namespace leadline::debug {
namespace {

TEST(LayerNames, TakeTheScopeInsideTheModel) {
  const LayerNames names({"model/block1_conv/Conv2D", "model/dense/MatMul"});
  EXPECT_EQ(names.layer("model/block1_conv/Conv2D", true), "block1_conv");
  EXPECT_EQ(names.layer("model/bn/batchnorm/add_1", false), "bn");
  EXPECT_EQ(names.layer("block1_conv", true), "block1_conv");
  EXPECT_EQ(names.layer("block1_conv/Relu", true), "block1_conv");
  EXPECT_EQ(names.layer("serving_default_x:0", false), "serving_default_x");
}

TEST(LayerNames, OfMergedNamesTheOneWithTheWeightsCounts) {
  const LayerNames names({});
  EXPECT_EQ(names.layer("m/relu/Relu;m/bn/batchnorm/add;m/stem/Conv2D;m/bn/batchnorm/sub", true), "stem");
  EXPECT_EQ(names.layer("m/relu/Relu;m/add/add", false), "relu");
}

TEST(LayerNames, ModelsInsideModelsHaveMoreScopes) {
  const LayerNames names({});
  EXPECT_EQ(names.layer("m/backbone/conv/Conv2D", true), "conv");
  EXPECT_EQ(names.layer("m/dense/Tensordot/MatMul", true), "dense");
  EXPECT_EQ(names.layer("Net/Net/Conv2d_1_pointwise/Relu6", true), "Conv2d_1_pointwise");
}

TEST(LayerNames, NumbersThatTheExporterAddedToAllGo) {
  const LayerNames exported({"functional_1/stem_1/convolution", "functional_1/dense_2_1/MatMul"});
  EXPECT_EQ(exported.layer("functional_1/stem_1/convolution", true), "stem");
  EXPECT_EQ(exported.layer("functional_1/dense_2_1/MatMul", true), "dense_2");
  const LayerNames own({"sequential_1/conv_1/Conv2D", "sequential_1/dense/MatMul"});
  EXPECT_EQ(own.layer("sequential_1/conv_1/Conv2D", true), "conv_1");
}

}  // namespace
}  // namespace leadline::debug
