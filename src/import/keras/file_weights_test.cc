// SPDX-License-Identifier: Apache-2.0
#include "import/keras/file_weights.h"

#include <gtest/gtest.h>

namespace leadline::keras {
namespace {

std::vector<std::string> inside(const std::vector<std::string>& variables, const std::vector<std::string>& names) {
  std::vector<Variable> all;
  for (const std::string& name : variables) all.push_back({name, DType::kFloat32, {}, nullptr});
  std::vector<std::string> result;
  for (const Variable& v : variables_inside(all, names)) result.push_back(v.name);
  return result;
}

using Names = std::vector<std::string>;

TEST(FileWeights, LayersInsideAreFoundByTheirName) {
  const Names all = {"dense/kernel:0", "dense_1/kernel:0", "dense_1/bias:0"};
  EXPECT_EQ(inside(all, {"sub"}), all);
  EXPECT_EQ(inside(all, {"sub", "dense"}), (Names{"dense/kernel:0"}));
  EXPECT_EQ(inside(all, {"sub", "dense_1"}), (Names{"dense_1/kernel:0", "dense_1/bias:0"}));
  EXPECT_EQ(inside(all, {"sub", "conv"}), Names{});
}

TEST(FileWeights, CellsMayBeNumberedOrLeftOut) {
  const Names numbered = {"bi/forward_lstm/lstm_cell_4/kernel:0", "bi/backward_lstm/lstm_cell_5/kernel:0"};
  EXPECT_EQ(inside(numbered, {"bi", "backward_lstm", "lstm_cell"}), (Names{numbered[1]}));
  EXPECT_EQ(inside({"lstm/kernel:0"}, {"lstm", "lstm_cell"}), (Names{"lstm/kernel:0"}));
}

}  // namespace
}  // namespace leadline::keras
