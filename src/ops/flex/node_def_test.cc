// SPDX-License-Identifier: Apache-2.0
#include "ops/flex/node_def.h"

#include <gtest/gtest.h>

#include <random>

#include "ops/flex/node_def_writer.h"
#include "ops/op_testing.h"

namespace leadline::ops {
namespace {

NodeDefWriter example() {
  return NodeDefWriter("Example")
      .integer("count", -7)
      .flag("on", true)
      .type("T", 2)
      .text("mode", "SAME")
      .number("scale", 0.5F)
      .integers("sizes", {1, 300, -1})
      .shape("shape", {4, -1})
      .integer("_note", 3);
}

TEST(NodeDef, ReadsAttributes) {
  const NodeDefAttributes a = read_node_def(example().options());
  EXPECT_EQ(a.problem, "");
  EXPECT_EQ(a.op, "Example");
  EXPECT_EQ(a.integer("count", 0), -7);
  EXPECT_TRUE(a.flag("on", false));
  EXPECT_EQ(a.dtype("T"), DType::kFloat64);
  EXPECT_EQ(a.text("mode", ""), "SAME");
  EXPECT_EQ(a.number("scale", 0), 0.5F);
  EXPECT_EQ(a.integers("sizes"), (std::vector<int64_t>{1, 300, -1}));
  EXPECT_EQ(a.integers("shape"), (std::vector<int64_t>{4, -1}));
  EXPECT_EQ(a.find("_note"), nullptr) << "notes of TensorFlow's passes are left out";
  EXPECT_EQ(a.integer("absent", 5), 5);
  EXPECT_GT(a.extra_bytes(), 0);
}

TEST(NodeDef, SaysWhatIsWrong) {
  const auto problem = [](std::string_view message) {
    return read_node_def(NodeDefWriter::options_of("X", message)).problem;
  };
  EXPECT_NE(read_node_def({}).problem, "");
  EXPECT_EQ(problem(""), "") << "an op without attributes";
  EXPECT_NE(problem("\x2A\x7F").find("cut off"), std::string::npos);
  EXPECT_NE(problem("\x2F").find("kind"), std::string::npos) << "wire type 7";
  EXPECT_NE(problem(std::string(11, '\xFF')).find("64 bits"), std::string::npos);
  NodeDefWriter many("X");
  for (int i = 0; i < 65; ++i) many.integer("a" + std::to_string(i), i);
  EXPECT_NE(read_node_def(many.options()).problem.find("64 attributes"), std::string::npos);
  NodeDefWriter longest("X");
  longest.integers("a", std::vector<int64_t>(5000, 1));
  EXPECT_NE(read_node_def(longest.options()).problem.find("4096"), std::string::npos);
  NodeDefWriter text("X");
  text.text("a", std::string(100000, 'x'));
  EXPECT_NE(read_node_def(text.options()).problem.find("65536"), std::string::npos);
}

TEST(NodeDef, SurvivesEveryCutAndManyMutations) {
  const std::string message = example().message();
  for (size_t size = 0; size < message.size(); ++size) {
    read_node_def(NodeDefWriter::options_of("X", std::string_view(message).substr(0, size)));
  }
  const std::vector<std::byte> options = example().options();
  for (size_t size = 0; size < options.size(); ++size) {
    read_node_def(std::span(options).first(size));
    read_node_def(std::span(options).subspan(size));
  }
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> changed = options;
    for (int i = 0; i < 3; ++i) changed[random() % changed.size()] = static_cast<std::byte>(random());
    const NodeDefAttributes a = read_node_def(changed);
    EXPECT_LE(a.entries.size(), 64U);
  }
}

TEST(NodeDef, DamagedOptionsFailTheNodeNotTheFile) {
  const OpDef* row = registry().find(ir::OpId::custom("FlexErf"));
  ASSERT_NE(row, nullptr);
  OpTester t("FlexErf");
  NodeDefAttributes damaged;
  damaged.problem = "broken";
  t.attributes(damaged).input<float>({1}, {0}).output(DType::kFloat32);
  try {
    t.run();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidModel);
    EXPECT_NE(std::string(error.what()).find("broken"), std::string::npos);
  }
}

}  // namespace
}  // namespace leadline::ops
