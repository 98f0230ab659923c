// SPDX-License-Identifier: Apache-2.0
// One test per rule: each breaks one thing in a legal graph.
#include "ir/verifier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <memory>

#include "ir/sources.h"
#include "tests/cpp/sketch.h"

namespace leadline::ir {
namespace {

using testing::Sketch;
using testing::thrown_by;

/// y = x + w, z = relu(y). Tensors: 0 x, 1 w, 2 y, 3 z.
Sketch legal() {
  Sketch s;
  const int x = s.input("x", DType::kFloat32, {2, 3});
  const int w = s.constant<float>("w", DType::kFloat32, {3}, {1, 2, 3});
  const int y = s.compute("ADD", {x, w}, "y", DType::kFloat32, {2, 3});
  const int z = s.compute("RELU", {y}, "z", DType::kFloat32, {2, 3});
  s.outputs({z});
  s.graph().signatures.push_back({"serve", 0, {{"in", x}}, {{"out", z}}});
  return s;
}

void expect_rejected(const Graph& graph, std::initializer_list<const char*> words) {
  const auto thrown = thrown_by([&] { verify(graph); });
  EXPECT_EQ(thrown.code, ErrorCode::kInvalidModel) << thrown.message;
  for (const char* word : words) EXPECT_TRUE(thrown.names(word)) << "no " << word << " in: " << thrown.message;
}

Value& value(Sketch& s, int index) { return s.subgraph().value(index); }

TEST(Verifier, AcceptsALegalGraph) { EXPECT_NO_THROW(verify(legal().graph())); }

TEST(Verifier, WantsASubgraph) {
  Sketch s = legal();
  s.graph().subgraphs.clear();
  expect_rejected(s.graph(), {"no subgraph"});
}

TEST(Verifier, NamesTheSubgraphOfAProblem) {
  Sketch s = legal();
  s.next_subgraph("other");
  s.outputs({7});
  expect_rejected(s.graph(), {"subgraph 1", "7"});
}

TEST(Verifier, GraphInputsMustExist) {
  for (const int bad : {-1, 4, 1'000'000}) {
    Sketch s = legal();
    s.subgraph().inputs = {bad};
    expect_rejected(s.graph(), {"graph input", std::to_string(bad).c_str(), "4 tensors"});
  }
}

TEST(Verifier, GraphInputsAreListedOnce) {
  Sketch s = legal();
  s.subgraph().inputs = {0, 0};
  expect_rejected(s.graph(), {"graph input 0", "'x'", "twice"});
}

TEST(Verifier, GraphOutputsMustExist) {
  for (const int bad : {-1, 4}) {
    Sketch s = legal();
    s.outputs({bad});
    expect_rejected(s.graph(), {"graph output", std::to_string(bad).c_str()});
  }
}

TEST(Verifier, GraphOutputsMustBeComputed) {
  Sketch s = legal();
  const int nothing = s.value("nothing", DType::kFloat32, {1});
  s.outputs({nothing});
  expect_rejected(s.graph(), {"graph output 4", "'nothing'", "never computed"});
}

TEST(Verifier, NodeInputsMustExist) {
  for (const int bad : {-2, 4, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    Sketch s = legal();
    s.subgraph().nodes[0].inputs[1] = bad;
    expect_rejected(s.graph(), {"ADD #0", std::to_string(bad).c_str()});
  }
}

TEST(Verifier, AbsentOperandsAreLegal) {
  Sketch s = legal();
  s.subgraph().nodes[0].inputs[1] = kAbsent;
  EXPECT_NO_THROW(verify(s.graph()));
}

TEST(Verifier, NodeOutputsMustExist) {
  for (const int bad : {-1, 4}) {
    Sketch s = legal();
    s.subgraph().nodes[1].outputs = {bad};
    expect_rejected(s.graph(), {"RELU #1", std::to_string(bad).c_str()});
  }
}

TEST(Verifier, IntermediatesMustExist) {
  for (const int bad : {-1, 4}) {
    Sketch s = legal();
    s.subgraph().nodes[1].intermediates = {bad};
    expect_rejected(s.graph(), {"RELU #1", "intermediate", std::to_string(bad).c_str()});
  }
}

TEST(Verifier, InputsAreComputedBeforeTheyAreUsed) {
  Sketch s = legal();
  std::swap(s.subgraph().nodes[0], s.subgraph().nodes[1]);
  expect_rejected(s.graph(), {"RELU #0", "tensor 2", "'y'", "before it is used"});
}

TEST(Verifier, ANodeDoesNotReadWhatItWrites) {
  Sketch s = legal();
  s.subgraph().nodes[1].inputs.push_back(3);
  value(s, 3).variable = true;  // available, and writable once
  expect_rejected(s.graph(), {"RELU #1", "tensor 3", "'z'", "both its input and its output"});
}

TEST(Verifier, AValueHasOneProducer) {
  Sketch s = legal();
  s.node("RELU", {0}, {2});
  expect_rejected(s.graph(), {"RELU #2", "tensor 2", "'y'", "node 0"});
}

TEST(Verifier, ANodeDoesNotListAnOutputTwice) {
  Sketch s = legal();
  s.subgraph().nodes[1].outputs = {3, 3};
  expect_rejected(s.graph(), {"RELU #1", "tensor 3", "'z'"});
}

TEST(Verifier, ConstantsAndGraphInputsAreNotWritten) {
  Sketch constant = legal();
  constant.node("RELU", {0}, {1});
  expect_rejected(constant.graph(), {"RELU #2", "tensor 1", "'w'"});
  Sketch input = legal();
  input.node("RELU", {1}, {0});
  expect_rejected(input.graph(), {"RELU #2", "tensor 0", "'x'"});
}

TEST(Verifier, AVariableIsWrittenByOneNodeAtMost) {
  Sketch s = legal();
  const int v = s.variable("state", DType::kFloat32, {2, 3});
  s.node("RELU", {0}, {v});
  EXPECT_NO_THROW(verify(s.graph()));
  s.node("RELU", {3}, {v});
  expect_rejected(s.graph(), {"RELU #3", "tensor 4", "'state'", "node 2"});
}

TEST(Verifier, ShapesFitIntoMemoryArithmetic) {
  Sketch s = legal();
  constexpr int64_t kLarge = std::numeric_limits<int32_t>::max();
  value(s, 2).shape = {kLarge, kLarge, 2};
  expect_rejected(s.graph(), {"tensor 2", "'y'", "64 bits"});
}

TEST(Verifier, ConstantsHaveExactlyTheirBytes) {
  for (const int64_t size : {2, 4}) {
    Sketch s = legal();
    value(s, 1).shape = {size};
    expect_rejected(s.graph(), {"tensor 1", "'w'", std::to_string(4 * size).c_str(), "12"});
  }
  Sketch packed = legal();
  value(packed, 1).dtype = DType::kInt4;  // 3 values take two bytes, the buffer has twelve
  expect_rejected(packed.graph(), {"tensor 1", "'w'", "needs 2 bytes", "has 12"});
}

TEST(Verifier, VariablesHaveNoConstantData) {
  Sketch s = legal();
  value(s, 1).variable = true;
  expect_rejected(s.graph(), {"tensor 1", "'w'", "variable"});
}

TEST(Verifier, SourcesTakeThePlaceOfData) {
  Sketch s = legal();
  value(s, 1).source = owned_source(std::vector<std::byte>(12));
  expect_rejected(s.graph(), {"tensor 1", "'w'", "source"});
  value(s, 1).data = {};
  EXPECT_NO_THROW(verify(s.graph()));
  value(s, 1).source = owned_source(std::vector<std::byte>(11));
  expect_rejected(s.graph(), {"tensor 1", "'w'", "needs 12 bytes", "source has 11"});
  value(s, 1).constant = false;
  expect_rejected(s.graph(), {"tensor 1", "'w'", "source"});
}

// Quantization

Sketch quantized(std::vector<float> scale, std::vector<int64_t> zero_point, int axis = 0) {
  Sketch s = legal();
  Value& x = value(s, 0);
  x.dtype = DType::kInt8;
  x.quantization.scale = std::move(scale);
  x.quantization.zero_point = std::move(zero_point);
  x.quantization.axis = axis;
  return s;
}

TEST(VerifierQuantization, AcceptsPerTensorAndPerChannel) {
  EXPECT_NO_THROW(verify(quantized({0.5F}, {-128}).graph()));
  EXPECT_NO_THROW(verify(quantized({0.5F, 1, 2}, {0, 1, 127}, 1).graph()));
}

TEST(VerifierQuantization, CountsOfScalesAndZeroPointsAgree) {
  expect_rejected(quantized({0.5F, 1}, {0}).graph(), {"tensor 0", "'x'", "2 scales", "1 zero points"});
  expect_rejected(quantized({}, {0}).graph(), {"tensor 0", "'x'", "0 scales", "1 zero points"});
}

TEST(VerifierQuantization, MeansNothingOnFloats) {
  Sketch s = quantized({0, -1}, {}, 7);
  value(s, 0).dtype = DType::kFloat32;
  EXPECT_NO_THROW(verify(s.graph()));
}

TEST(VerifierQuantization, TheAxisIsInsideTheShape) {
  expect_rejected(quantized({1, 1}, {0, 0}, 2).graph(), {"tensor 0", "'x'", "axis 2", "[2, 3]"});
  expect_rejected(quantized({1, 1}, {0, 0}, -1).graph(), {"tensor 0", "'x'", "axis -1"});
}

TEST(VerifierQuantization, EveryChannelHasAScale) {
  expect_rejected(quantized({1, 1}, {0, 0}, 1).graph(), {"tensor 0", "'x'", "2 scales", "axis 1", "has 3"});
}

TEST(VerifierQuantization, ScalesArePositiveNumbers) {
  for (const float bad : {0.0F, -1.0F, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    expect_rejected(quantized({1, bad}, {0, 0}).graph(), {"tensor 0", "'x'", "scale 1"});
  }
}

TEST(VerifierQuantization, ZeroPointsFitTheType) {
  expect_rejected(quantized({1}, {128}).graph(), {"tensor 0", "'x'", "128", "int8"});
  expect_rejected(quantized({1}, {-129}).graph(), {"tensor 0", "'x'", "-129"});
  Sketch s = quantized({1}, {255});
  value(s, 0).dtype = DType::kUInt8;
  EXPECT_NO_THROW(verify(s.graph()));
  value(s, 0).quantization.zero_point = {-1};
  expect_rejected(s.graph(), {"'x'", "-1", "uint8"});
}

TEST(VerifierQuantization, BlockwiseTensorsExist) {
  Sketch s = legal();
  Quantization& q = value(s, 1).quantization;
  q.block_size = 32;
  q.block_scales = 4;
  expect_rejected(s.graph(), {"tensor 1", "'w'", "scales", "4"});
  q.block_scales = 0;
  q.block_zero_points = 9;
  expect_rejected(s.graph(), {"tensor 1", "'w'", "zero points", "9"});
  q.block_zero_points = -1;
  EXPECT_NO_THROW(verify(s.graph()));
}

// Sparsity: a 4 x 4 matrix whose rows are dense and whose columns are compressed; three values are stored.

Sparsity compressed_rows() {
  Sparsity sparsity;
  sparsity.traversal_order = {0, 1};
  sparsity.dimensions.resize(2);
  sparsity.dimensions[0].dense_size = 4;
  sparsity.dimensions[1].dense = false;
  sparsity.dimensions[1].segments = {0, 1, 1, 3, 3};
  sparsity.dimensions[1].indices = {2, 0, 3};
  return sparsity;
}

Sketch sparse(const Sparsity& sparsity) {
  Sketch s = legal();
  const int w = s.constant<float>("sparse", DType::kFloat32, {4, 4}, {1, 2, 3});
  value(s, w).sparsity = std::make_shared<const Sparsity>(sparsity);
  return s;
}

template <typename Change>
void expect_sparsity_rejected(const Change& change, std::initializer_list<const char*> words) {
  Sparsity sparsity = compressed_rows();
  change(sparsity);
  const Sketch s = sparse(sparsity);
  expect_rejected(s.graph(), {"tensor 4", "'sparse'"});
  expect_rejected(s.graph(), words);
}

TEST(VerifierSparsity, AcceptsCompressedRows) { EXPECT_NO_THROW(verify(sparse(compressed_rows()).graph())); }

TEST(VerifierSparsity, BelongsToAConstant) {
  Sketch s = sparse(compressed_rows());
  value(s, 0).sparsity = value(s, 4).sparsity;
  expect_rejected(s.graph(), {"tensor 0", "'x'", "sparse", "no constant"});
}

TEST(VerifierSparsity, HasOneLevelPerDimension) {
  expect_sparsity_rejected([](Sparsity& s) { s.traversal_order = {0}; }, {"1 traversal entries", "expected 2"});
  expect_sparsity_rejected([](Sparsity& s) { s.dimensions.pop_back(); }, {"1 dimensions", "expected 2"});
}

TEST(VerifierSparsity, TheTraversalOrderIsAPermutation) {
  for (const std::vector<int32_t>& order : {std::vector<int32_t>{0, 0}, {0, 2}, {-1, 0}}) {
    expect_sparsity_rejected([&](Sparsity& s) { s.traversal_order = order; }, {"not a permutation"});
  }
}

TEST(VerifierSparsity, DenseLevelsHaveTheirDimension) {
  expect_sparsity_rejected([](Sparsity& s) { s.dimensions[0].dense_size = 5; }, {"size 5", "expected 4"});
}

TEST(VerifierSparsity, SegmentsCoverTheIndices) {
  expect_sparsity_rejected([](Sparsity& s) { s.dimensions[1].segments = {0, 1, 3}; }, {"3 segments", "4 positions"});
  expect_sparsity_rejected([](Sparsity& s) { s.dimensions[1].segments = {}; }, {"0 segments"});
  expect_sparsity_rejected([](Sparsity& s) { s.dimensions[1].segments = {1, 1, 1, 3, 3}; }, {"level 1"});
  expect_sparsity_rejected([](Sparsity& s) { s.dimensions[1].segments = {0, 1, 1, 3, 4}; }, {"3 indices"});
  expect_sparsity_rejected([](Sparsity& s) { s.dimensions[1].segments = {0, 2, 1, 3, 3}; }, {"decrease"});
}

TEST(VerifierSparsity, IndicesAreInsideTheShape) {
  expect_sparsity_rejected([](Sparsity& s) { s.dimensions[1].indices[0] = 4; }, {"index 4", "outside 4"});
  expect_sparsity_rejected([](Sparsity& s) { s.dimensions[1].indices[0] = -1; }, {"index -1"});
}

TEST(VerifierSparsity, DescribesExactlyTheStoredValues) {
  expect_sparsity_rejected(
      [](Sparsity& s) {
        s.dimensions[1].segments = {0, 1, 1, 2, 2};
        s.dimensions[1].indices = {2, 0};
      },
      {"stores 2 values", "12 bytes"});
}

TEST(VerifierSparsity, BlocksDivideTheirAxis) {
  const auto blocked = [](int32_t block, int32_t axis) {
    return [=](Sparsity& s) {
      s.traversal_order = {0, 1, 2};
      s.block_map = {axis};
      s.dimensions.push_back({true, block, {}, {}});
      s.dimensions[1].segments = {0, 0, 0, 0, 0};
      s.dimensions[1].indices = {};
    };
  };
  expect_sparsity_rejected(blocked(3, 1), {"block of 3", "axis 1", "size 4"});
  expect_sparsity_rejected(blocked(0, 1), {"block of 0"});
  expect_sparsity_rejected(blocked(2, 2), {"maps to axis 2"});
  expect_sparsity_rejected(blocked(2, -1), {"maps to axis -1"});
}

TEST(VerifierSparsity, CountsDoNotOverflow) {
  Sparsity sparsity;
  sparsity.traversal_order = {0, 1};
  sparsity.dimensions = {{true, 1 << 30, {}, {}}, {true, 1 << 30, {}, {}}};
  Sketch s = sparse(sparsity);
  value(s, 4).shape = {1 << 30, 1 << 30};  // 2^62 bytes: legal as a shape
  expect_rejected(s.graph(), {"'sparse'", "12 bytes"});
}

// Calls

/// `count` subgraphs; each but the last calls the next with `calls` IF nodes.
Sketch chain(int count, int calls) {
  Sketch s;
  for (int i = 0; i < count; ++i) {
    if (i > 0) s.next_subgraph("s" + std::to_string(i));
    const int x = s.input("x", DType::kBool, {});
    if (i + 1 == count) {
      s.outputs({x});
      break;
    }
    const testing::AttributeValues next = {{"then_subgraph_index", i + 1}, {"else_subgraph_index", i + 1}};
    for (int k = 0; k < calls; ++k)
      s.outputs({s.compute("IF", {x, x}, "y" + std::to_string(k), DType::kBool, {}, next)});
  }
  return s;
}

void call(Sketch& s, size_t from, int to) {
  Sketch other;
  other.node("IF", {}, {}, {{"then_subgraph_index", to}, {"else_subgraph_index", to}});
  Node& node = s.graph().subgraphs[from].nodes.empty() ? s.graph().subgraphs[from].nodes.emplace_back()
                                                       : s.graph().subgraphs[from].nodes.back();
  if (node.attributes == nullptr) node = other.subgraph().nodes[0];
  node.attributes = other.subgraph().nodes[0].attributes;
}

TEST(VerifierCalls, AcceptsAChain) { EXPECT_NO_THROW(verify(chain(10, 1).graph())); }

TEST(VerifierCalls, ListsWhatANodeCalls) {
  Sketch s;
  s.node("WHILE", {}, {}, {{"cond_subgraph_index", 3}, {"body_subgraph_index", 5}});
  s.node("RELU", {}, {});
  EXPECT_EQ(called_subgraphs(s.subgraph().nodes[0]), (std::vector<int>{3, 5}));
  EXPECT_TRUE(called_subgraphs(s.subgraph().nodes[1]).empty());
}

TEST(VerifierCalls, CalledSubgraphsExist) {
  for (const int bad : {-1, 3}) {
    Sketch s = chain(3, 1);
    call(s, 0, bad);
    expect_rejected(s.graph(), {"IF calls subgraph", std::to_string(bad).c_str(), "there are 3"});
  }
}

TEST(VerifierCalls, NoSubgraphCallsItself) {
  Sketch direct = chain(3, 1);
  call(direct, 1, 1);
  expect_rejected(direct.graph(), {"subgraph 1 calls itself"});
  Sketch round_about = chain(4, 1);
  call(round_about, 3, 1);
  expect_rejected(round_about.graph(), {"subgraph 1 calls itself", "subgraph 3"});
}

TEST(VerifierCalls, NestingIsBounded) {
  EXPECT_NO_THROW(verify(chain(static_cast<int>(kMaxCallDepth), 1).graph()));
  expect_rejected(chain(static_cast<int>(kMaxCallDepth) + 1, 1).graph(), {"nested", "64"});
}

TEST(VerifierCalls, PathsThroughCallsAreBounded) {
  EXPECT_NO_THROW(verify(chain(6, 2).graph()));
  expect_rejected(chain(40, 2).graph(), {"10000"});
}

// Signatures

TEST(VerifierSignatures, KeysAreUnique) {
  Sketch s = legal();
  s.graph().signatures.push_back(s.graph().signatures[0]);
  expect_rejected(s.graph(), {"two signatures", "'serve'"});
}

TEST(VerifierSignatures, TheirSubgraphExists) {
  for (const int bad : {-1, 1}) {
    Sketch s = legal();
    s.graph().signatures[0].subgraph = bad;
    expect_rejected(s.graph(), {"signature 'serve'", std::to_string(bad).c_str()});
  }
}

TEST(VerifierSignatures, NameInputsAndOutputsOfTheirSubgraph) {
  Sketch inputs = legal();
  inputs.graph().signatures[0].inputs[0].second = 1;
  expect_rejected(inputs.graph(), {"'serve'", "input 'in'", "tensor 1"});
  Sketch outputs = legal();
  outputs.graph().signatures[0].outputs[0].second = 2;
  expect_rejected(outputs.graph(), {"'serve'", "output 'out'", "tensor 2"});
}

}  // namespace
}  // namespace leadline::ir
