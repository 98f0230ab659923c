// SPDX-License-Identifier: Apache-2.0
// What is written comes back when it is read.
#include "model/writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "ir/sources.h"
#include "model/reader.h"
#include "tests/cpp/sketch.h"

namespace leadline::model {
namespace {

using testing::Sketch;

std::shared_ptr<const ir::Graph> round_trip(const Sketch& s) { return read(ModelBytes::copy(s.file())); }

ir::Value& value(Sketch& s, int index) { return s.subgraph().value(index); }

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) { return std::ranges::equal(a, b); }

/// x * w + v where w and v share their bytes.
Sketch sample() {
  Sketch s;
  const int x = s.input("x", DType::kFloat32, {1, 3});
  const int w = s.constant<float>("w", DType::kFloat32, {3}, {1, 2, 3});
  const int v = s.value("v", DType::kFloat32, {1, 3});
  value(s, v).constant = true;
  value(s, v).data = value(s, w).data;
  const int product = s.compute("MUL", {x, w}, "product", DType::kFloat32, {1, 3}, {{"fused_activation_function", 1}});
  const int sum = s.compute("ADD", {product, v}, "sum", DType::kFloat32, {1, 3});
  s.outputs({sum});
  s.graph().description = "sample";
  return s;
}

TEST(Writer, KeepsSubgraphsNodesAndValues) {
  const Sketch s = sample();
  const auto back = round_trip(s);
  EXPECT_EQ(back->description, "sample");
  EXPECT_EQ(ir::to_text(*back), ir::to_text(s.graph()));
  ASSERT_EQ(back->subgraphs.size(), 1U);
  const ir::Subgraph& subgraph = back->subgraphs[0];
  EXPECT_EQ(subgraph.name, "main");
  EXPECT_EQ(subgraph.inputs, std::vector<int>{0});
  EXPECT_EQ(subgraph.outputs, std::vector<int>{4});
  EXPECT_TRUE(same_bytes(subgraph.values[1].data, s.graph().subgraphs[0].values[1].data));
  EXPECT_EQ(ir::attributes_text(*subgraph.nodes[0].attributes), "fused_activation_function=1");
}

TEST(Writer, WritingAgainGivesTheSameFile) {
  const std::vector<std::byte> file = sample().file();
  EXPECT_EQ(write(*read(ModelBytes::copy(file))), file);
}

TEST(Writer, SharedConstantsShareABuffer) {
  Sketch s = sample();
  const auto shared = s.file();
  const auto back = read(ModelBytes::copy(shared));
  EXPECT_EQ(back->subgraphs[0].values[1].data.data(), back->subgraphs[0].values[2].data.data());
  Sketch twice = sample();
  const int other = twice.constant<float>("other", DType::kFloat32, {1, 3}, {1, 2, 3});
  value(twice, 2).data = value(twice, other).data;
  EXPECT_GT(twice.file().size(), shared.size());
}

TEST(Writer, ConstantsAreAlignedInTheFile) {
  const auto back = round_trip(sample());
  EXPECT_TRUE(back->storage.empty());
  const auto at = back->subgraphs[0].values[1].data.data() - back->bytes->span().data();
  EXPECT_EQ(at % 16, 0);
}

TEST(Writer, KeepsEmptyConstants) {
  Sketch s = sample();
  s.constant<float>("empty", DType::kFloat32, {0, 2}, {});
  const auto back = round_trip(s);
  EXPECT_TRUE(back->subgraphs[0].values[5].constant);
  EXPECT_TRUE(back->subgraphs[0].values[5].data.empty());
}

TEST(Writer, KeepsShapeSignaturesAndVariables) {
  Sketch s = sample();
  value(s, 0).signature = std::vector<int32_t>{-1, 3};
  value(s, 0).has_rank = true;
  s.variable("state", DType::kInt16, {2});
  const auto back = round_trip(s);
  EXPECT_EQ(back->subgraphs[0].values[0].signature, (std::vector<int32_t>{-1, 3}));
  EXPECT_TRUE(back->subgraphs[0].values[0].has_rank);
  EXPECT_FALSE(back->subgraphs[0].values[1].signature.has_value());
  EXPECT_TRUE(back->subgraphs[0].values[5].variable);
  EXPECT_EQ(back->subgraphs[0].values[5].dtype, DType::kInt16);
}

TEST(Writer, KeepsQuantization) {
  Sketch s = sample();
  value(s, 1).quantization = {{0.5F, 0.25F, 2.0F}, {0, -3, 7}, 0, {-1, -2, -3}, {1, 2, 3}};
  value(s, 3).quantization = {{0.125F}, {5}, 0, {}, {}};
  value(s, 4).quantization.min = {-6};
  value(s, 4).quantization.max = {6};
  value(s, 2).quantization.block_size = 32;
  value(s, 2).quantization.block_scales = 1;
  const auto back = round_trip(s);
  for (size_t v = 0; v < 5; ++v) {
    EXPECT_EQ(back->subgraphs[0].values[v].quantization, s.graph().subgraphs[0].values[v].quantization) << v;
  }
}

TEST(Writer, KeepsSparsity) {
  Sketch s = sample();
  const int w = s.constant<int8_t>("sparse", DType::kInt8, {2, 4}, {1, 2, 3, 4});
  ir::Sparsity sparsity;
  sparsity.traversal_order = {0, 1, 2};
  sparsity.block_map = {1};
  sparsity.dimensions = {{true, 2, {}, {}}, {false, 0, {0, 1, 2}, {1, 0}}, {true, 2, {}, {}}};
  value(s, w).sparsity = std::make_shared<const ir::Sparsity>(sparsity);
  const auto back = round_trip(s);
  const auto& read_back = back->subgraphs[0].value(w).sparsity;
  ASSERT_NE(read_back, nullptr);
  EXPECT_EQ(read_back->traversal_order, sparsity.traversal_order);
  EXPECT_EQ(read_back->block_map, sparsity.block_map);
  ASSERT_EQ(read_back->dimensions.size(), 3U);
  EXPECT_EQ(read_back->dimensions[0].dense_size, 2);
  EXPECT_FALSE(read_back->dimensions[1].dense);
  EXPECT_EQ(read_back->dimensions[1].segments, sparsity.dimensions[1].segments);
  EXPECT_EQ(read_back->dimensions[1].indices, sparsity.dimensions[1].indices);
}

TEST(Writer, KeepsSignaturesAndMetadata) {
  Sketch s = sample();
  s.graph().signatures.push_back({"serve", 0, {{"in", 0}}, {{"out", 4}}});
  s.graph().signatures.push_back({"other", 0, {}, {{"o", 4}}});
  s.graph().metadata.push_back({"notes", value(s, 1).data});
  s.graph().metadata.push_back({"none", {}});
  const auto back = round_trip(s);
  ASSERT_EQ(back->signatures.size(), 2U);
  EXPECT_EQ(back->signatures[0].key, "serve");
  EXPECT_EQ(back->signatures[0].inputs, s.graph().signatures[0].inputs);
  EXPECT_EQ(back->signatures[1].outputs, s.graph().signatures[1].outputs);
  ASSERT_EQ(back->metadata.size(), 2U);
  EXPECT_EQ(back->metadata[0].name, "notes");
  EXPECT_TRUE(same_bytes(back->metadata[0].data, value(s, 1).data));
  EXPECT_TRUE(back->metadata[1].data.empty());
}

TEST(Writer, KeepsVersionsAbsentOperandsIntermediatesAndCustomOps) {
  Sketch s = sample();
  const int y = s.value("y", DType::kFloat32, {1});
  s.node("FULLY_CONNECTED", {0, 1, ir::kAbsent}, {y}, {{"keep_num_dims", 1}});
  s.subgraph().nodes.back().version = 5;
  s.subgraph().nodes.back().intermediates = {3};
  const int z = s.value("z", DType::kFloat32, {1});
  s.node("MyOwnOp", {y}, {z});
  s.subgraph().nodes.back().custom_options = value(s, 1).data;
  const auto back = round_trip(s);
  const ir::Node& dense = back->subgraphs[0].nodes[2];
  EXPECT_EQ(dense.version, 5);
  EXPECT_EQ(dense.inputs, (std::vector<int>{0, 1, ir::kAbsent}));
  EXPECT_EQ(dense.intermediates, std::vector<int>{3});
  EXPECT_NE(ir::attributes_text(*dense.attributes).find("keep_num_dims=true"), std::string::npos);
  const ir::Node& own = back->subgraphs[0].nodes[3];
  EXPECT_TRUE(own.op == ir::OpId::custom("MyOwnOp"));
  EXPECT_TRUE(same_bytes(own.custom_options, value(s, 1).data));
}

TEST(Writer, KeepsCallsBetweenSubgraphs) {
  Sketch s;
  const int condition = s.input("condition", DType::kBool, {});
  s.outputs({s.compute("IF", {condition}, "result", DType::kFloat32, {1},
                       {{"then_subgraph_index", 1}, {"else_subgraph_index", 2}})});
  for (const float number : {1.0F, 2.0F}) {
    s.next_subgraph("branch");
    s.outputs({s.constant<float>("c", DType::kFloat32, {1}, {number})});
  }
  const auto back = round_trip(s);
  EXPECT_EQ(ir::to_text(*back), ir::to_text(s.graph()));
  EXPECT_EQ(ir::attributes_text(*back->subgraphs[0].nodes[0].attributes),
            "then_subgraph_index=1 else_subgraph_index=2");
}

// Constants with sources

/// Bytes 0, 1, 2 ...; notes how much of a file was written when it was read.
class Numbers final : public ir::ConstantSource {
 public:
  explicit Numbers(int64_t count, int* reads = nullptr) : count_(count), reads_(reads) {}
  int64_t bytes() const override { return count_; }
  void read(std::span<std::byte> out) const override {
    if (reads_ != nullptr) ++*reads_;
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i);
  }

 private:
  int64_t count_;
  int* reads_;
};

int lazy(Sketch& s, const std::string& name, std::shared_ptr<const ir::ConstantSource> source) {
  const int index = s.value(name, DType::kInt8, {source->bytes()});
  value(s, index).constant = true;
  value(s, index).source = std::move(source);
  return index;
}

bool counts_up(std::span<const std::byte> data, size_t size) {
  if (data.size() != size) return false;
  for (size_t i = 0; i < size; ++i) {
    if (data[i] != static_cast<std::byte>(i)) return false;
  }
  return true;
}

TEST(WriterSources, AreReadOnceIntoTheFile) {
  Sketch s = sample();
  int reads = 0;
  const auto source = std::make_shared<Numbers>(1001, &reads);
  const int a = lazy(s, "a", source);
  const int b = lazy(s, "b", source);
  const auto file = s.file();
  EXPECT_EQ(reads, 1);
  const auto back = read(ModelBytes::copy(file));
  const auto& values = back->subgraphs[0].values;
  EXPECT_TRUE(counts_up(values[static_cast<size_t>(a)].data, 1001));
  EXPECT_EQ(values[static_cast<size_t>(a)].data.data(), values[static_cast<size_t>(b)].data.data());
}

TEST(WriterSources, TheSizeIsKnownBeforeAnythingIsRead) {
  Sketch s = sample();
  int reads = 0;
  lazy(s, "a", std::make_shared<Numbers>(5000, &reads));
  const FileWriter writer(s.graph());
  EXPECT_GE(writer.bytes(), 5000);
  EXPECT_EQ(reads, 0);
  std::vector<std::byte> file(static_cast<size_t>(writer.bytes()), std::byte{0xFF});  // no byte is left as it was
  writer.write(file);
  EXPECT_EQ(file, s.file());
}

TEST(WriterSources, PiecesMakeTheSameFile) {
  Sketch s = sample();
  lazy(s, "a", std::make_shared<Numbers>(5000));
  lazy(s, "b", std::make_shared<Numbers>(33));
  for (const int64_t limit : {kFlatbufferLimit, int64_t{4096}}) {
    const FileWriter writer(s.graph(), limit);
    std::vector<std::byte> whole(static_cast<size_t>(writer.bytes()));
    writer.write(whole);
    std::vector<std::byte> pieces;
    size_t largest = 0;
    writer.write_to([&](std::span<const std::byte> piece) {
      pieces.insert(pieces.end(), piece.begin(), piece.end());
      largest = std::max(largest, piece.size());
    });
    EXPECT_EQ(pieces, whole);
    EXPECT_LE(static_cast<int64_t>(largest), writer.sink_bytes());
  }
}

TEST(WriterSources, ProgressEndsWithEverythingAndMayStop) {
  Sketch s = sample();
  int reads = 0;
  lazy(s, "a", std::make_shared<Numbers>(5000, &reads));
  const FileWriter writer(s.graph());
  std::vector<std::byte> file(static_cast<size_t>(writer.bytes()));
  int64_t last = -1;
  writer.write(file, [&](int64_t done, int64_t total) {
    EXPECT_GE(done, last);
    EXPECT_EQ(total, writer.bytes());
    last = done;
    return true;
  });
  EXPECT_EQ(last, writer.bytes());
  EXPECT_EQ(reads, 1);
  EXPECT_TRUE(testing::thrown_by([&] { writer.write(file, [](int64_t, int64_t) { return false; }); }).names("stopped"));
  EXPECT_EQ(reads, 1);
}

TEST(WriterSources, TheHungriestSourceTellsTheMemory) {
  Sketch s = sample();
  const int order[] = {1, 0};
  lazy(s, "a", ir::transposed_source(std::make_shared<Numbers>(6000), {60, 100}, order, 1));
  lazy(s, "b", ir::transposed_source(std::make_shared<Numbers>(2000), {20, 100}, order, 1));
  EXPECT_EQ(FileWriter(s.graph()).extra_bytes(), 6000);
  EXPECT_EQ(FileWriter(sample().graph()).extra_bytes(), 0);
}

TEST(WriterSources, AFailingSourceFailsTheWrite) {
  class Broken final : public ir::ConstantSource {
    int64_t bytes() const override { return 100; }
    void read(std::span<std::byte>) const override { throw Error(ErrorCode::kInvalidModel, "weights are damaged"); }
  };
  Sketch s = sample();
  lazy(s, "a", std::make_shared<Broken>());
  EXPECT_TRUE(testing::thrown_by([&] { s.file(); }).names("weights are damaged"));
}

/// The file as it is written when the flatbuffer may have at most `limit` bytes.
std::vector<std::byte> file_within(const Sketch& s, int64_t limit) {
  const FileWriter writer(s.graph(), limit);
  std::vector<std::byte> file(static_cast<size_t>(writer.bytes()));
  writer.write(file);
  return file;
}

TEST(WriterLarge, ConstantsLieBehindTheFlatbuffer) {
  Sketch s = sample();
  const int a = lazy(s, "a", std::make_shared<Numbers>(5001));
  const int b = lazy(s, "b", std::make_shared<Numbers>(3000));
  s.graph().metadata.push_back({"notes", value(s, 1).data});
  const auto large = file_within(s, 4096);
  const auto back = read(ModelBytes::copy(large));
  EXPECT_EQ(ir::to_text(*back), ir::to_text(*read(ModelBytes::copy(s.file()))));
  const auto& values = back->subgraphs[0].values;
  EXPECT_TRUE(counts_up(values[static_cast<size_t>(a)].data, 5001));
  EXPECT_TRUE(counts_up(values[static_cast<size_t>(b)].data, 3000));
  EXPECT_TRUE(same_bytes(values[1].data, value(s, 1).data));
  EXPECT_TRUE(same_bytes(back->metadata[0].data, value(s, 1).data));
  for (const ir::Value& v : values) {
    if (!v.constant) continue;
    EXPECT_EQ((v.data.data() - back->bytes->span().data()) % 16, 0) << v.name;
  }
  const auto at = values[static_cast<size_t>(a)].data.data() - back->bytes->span().data();
  EXPECT_LT(at, 4096);  // the flatbuffer itself is small
  const std::vector<std::byte> truncated(large.begin(), large.end() - 1);
  EXPECT_TRUE(testing::thrown_by([&] { read(ModelBytes::copy(truncated)); }).names("truncated or damaged"));
}

TEST(WriterLarge, SmallFilesStayWhole) {
  const Sketch s = sample();
  EXPECT_EQ(file_within(s, static_cast<int64_t>(s.file().size())), s.file());
  EXPECT_NE(file_within(s, static_cast<int64_t>(s.file().size()) - 1), s.file());
}

TEST(Writer, RefusesDimensionsBeyondTheFormat) {
  Sketch s = sample();
  value(s, 0).shape = {int64_t{1} << 33};
  const auto thrown = testing::thrown_by([&] { s.file(); });
  EXPECT_EQ(thrown.code, ErrorCode::kUnsupported);
  EXPECT_TRUE(thrown.names("'x'") && thrown.names("8589934592")) << thrown.message;
}

}  // namespace
}  // namespace leadline::model
