// SPDX-License-Identifier: Apache-2.0
// Damaged, truncated and illegal files. Files that the writer would not make are built table by table.
#include "model/reader.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <limits>
#include <random>

#include "core/error.h"
#include "ops/string_testing.h"
#include "tests/cpp/sketch.h"
#include "tflite_generated.h"

namespace leadline::model {
namespace {

using testing::Sketch;
using testing::Thrown;
using testing::thrown_by;

std::shared_ptr<const ir::Graph> read_bytes(const std::vector<std::byte>& bytes) {
  return read(ModelBytes::copy(bytes));
}

/// y = x + w, with what is odd about it in a test. w is buffer 1.
struct RawModel {
  std::vector<uint8_t> data = std::vector<uint8_t>(12, 1);
  uint64_t offset = 0;  // of buffer 1, behind the flatbuffer
  uint64_t size = 0;
  uint32_t format_version = 3;
  int32_t op_code = 0;
  int32_t op_version = 1;
  uint32_t op_index = 0;
  const char* custom_name = nullptr;
  uint64_t options_offset = 0;
  uint64_t options_size = 0;
  int8_t options_kind = 0;
  uint32_t w_buffer = 1;
  uint32_t external_buffer = 0;
  int8_t w_type = 0;
  std::vector<int32_t> w_shape = {3};
  int metadata_buffer = -1;
  bool signature = false;
  const char* signature_key = "serve";
  uint32_t signature_tensor = 0;
  uint32_t signature_subgraph = 0;

  std::vector<std::byte> build() const {
    flatbuffers::FlatBufferBuilder b;
    const auto tensor = [&](const char* name, uint32_t buffer, const std::vector<int32_t>& shape, int8_t type) {
      const auto text = b.CreateString(name);
      const auto dims = b.CreateVector(shape);
      tfl::TensorBuilder t(b);
      t.add_shape(dims);
      t.add_type(type);
      t.add_buffer(buffer);
      t.add_name(text);
      t.add_external_buffer(buffer == 0 ? 0 : external_buffer);
      return t.Finish();
    };
    const auto x = tensor("x", 0, {3}, 0);
    const auto w = tensor("w", w_buffer, w_shape, w_type);
    const auto y = tensor("y", 0, {3}, 0);
    const auto tensors = b.CreateVector(std::vector{x, w, y});
    const auto inputs = b.CreateVector(std::vector<int32_t>{0, 1});
    const auto outputs = b.CreateVector(std::vector<int32_t>{2});
    tfl::OperatorBuilder o(b);
    o.add_opcode_index(op_index);
    o.add_inputs(inputs);
    o.add_outputs(outputs);
    o.add_builtin_options_type(static_cast<uint8_t>(options_kind));
    o.add_large_custom_options_offset(options_offset);
    o.add_large_custom_options_size(options_size);
    const auto nodes = b.CreateVector(std::vector{o.Finish()});
    const auto subgraph = tfl::CreateSubGraph(b, tensors, b.CreateVector(std::vector<int32_t>{0}), outputs, nodes);
    const auto subgraphs = b.CreateVector(std::vector{subgraph});
    const auto name = custom_name == nullptr ? 0 : b.CreateString(custom_name);
    const auto code =
        tfl::CreateOperatorCode(b, static_cast<int8_t>(std::clamp(op_code, 0, 127)), name, op_version, op_code);
    const auto codes = b.CreateVector(std::vector{code});
    flatbuffers::Offset<flatbuffers::Vector<uint8_t>> bytes;
    if (!data.empty()) bytes = b.CreateVector(data);
    const auto buffer0 = tfl::CreateBuffer(b);
    const auto buffer1 = tfl::CreateBuffer(b, bytes, offset, size);
    const auto buffers = b.CreateVector(std::vector{buffer0, buffer1});
    flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<tfl::Metadata>>> metadata;
    if (metadata_buffer >= 0) {
      const auto entry = tfl::CreateMetadata(b, b.CreateString("notes"), static_cast<uint32_t>(metadata_buffer));
      metadata = b.CreateVector(std::vector{entry});
    }
    flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<tfl::SignatureDef>>> signatures;
    if (signature) {
      const auto map = b.CreateVector(std::vector{tfl::CreateTensorMap(b, b.CreateString("in"), signature_tensor)});
      const auto key = signature_key == nullptr ? 0 : b.CreateString(signature_key);
      signatures = b.CreateVector(std::vector{tfl::CreateSignatureDef(b, map, 0, key, signature_subgraph)});
    }
    tfl::FinishModelBuffer(b,
                           tfl::CreateModel(b, format_version, codes, subgraphs, 0, buffers, 0, metadata, signatures));
    const auto* begin = reinterpret_cast<const std::byte*>(b.GetBufferPointer());
    return {begin, begin + b.GetSize()};
  }

  Thrown problem() const {
    return thrown_by([&] { read_bytes(build()); });
  }
};

void expect_problem(const RawModel& raw, ErrorCode code, std::initializer_list<const char*> words) {
  const Thrown thrown = raw.problem();
  EXPECT_EQ(thrown.code, code) << thrown.message;
  for (const char* word : words) EXPECT_TRUE(thrown.names(word)) << "no " << word << " in: " << thrown.message;
}

TEST(Reader, ReadsTheRawModel) {
  const auto graph = read_bytes(RawModel{}.build());
  ASSERT_EQ(graph->subgraphs.size(), 1U);
  EXPECT_EQ(graph->subgraphs[0].nodes[0].op.name(), "ADD");
  EXPECT_EQ(graph->subgraphs[0].values[1].data.size(), 12U);
}

TEST(Reader, EmptyAndTinyFilesAreTruncated) {
  for (const size_t size : {0, 1, 7, 15}) {
    const Thrown thrown = thrown_by([&] { read_bytes(std::vector<std::byte>(size)); });
    EXPECT_EQ(thrown.code, ErrorCode::kInvalidModel);
    EXPECT_TRUE(thrown.names("truncated")) << thrown.message;
    EXPECT_TRUE(thrown.names(std::to_string(size) + " bytes")) << thrown.message;
  }
}

TEST(Reader, OtherFilesHaveAnotherIdentifier) {
  std::vector<std::byte> bytes = RawModel{}.build();
  bytes[4] = std::byte{'X'};
  const Thrown thrown = thrown_by([&] { read_bytes(bytes); });
  EXPECT_EQ(thrown.code, ErrorCode::kInvalidModel);
  EXPECT_TRUE(thrown.names("not a .tflite file") && thrown.names("TFL3")) << thrown.message;
}

TEST(Reader, FormatVersionMustBeKnown) {
  expect_problem({.format_version = 4}, ErrorCode::kInvalidModel, {"version 4", "expected 3"});
}

TEST(Reader, UnknownOpsAndVersionsAreNamed) {
  expect_problem({.op_code = 9999, .op_version = 7}, ErrorCode::kUnsupported, {"node 0", "op code 9999", "version 7"});
  expect_problem({.op_version = 99}, ErrorCode::kUnsupported, {"ADD #0", "version 99"});
  expect_problem({.op_version = 0}, ErrorCode::kUnsupported, {"ADD #0", "version 0"});
}

TEST(Reader, OperatorCodesAreInRange) {
  expect_problem({.op_index = 1}, ErrorCode::kInvalidModel, {"node 0", "operator code 1", "lists 1"});
}

TEST(Reader, CustomOpsHaveNames) {
  expect_problem({.op_code = ir::kCustomOp}, ErrorCode::kInvalidModel, {"custom", "no name"});
}

TEST(Reader, OptionsAreOfTheOpsKind) {
  expect_problem({.options_kind = 1}, ErrorCode::kInvalidModel, {"ADD #0", "kind 1"});
}

TEST(Reader, BuffersAreInRange) {
  expect_problem({.w_buffer = 2}, ErrorCode::kInvalidModel, {"tensor 1 'w'", "buffer 2", "has 2"});
  expect_problem({.w_buffer = 0xFFFFFFFF}, ErrorCode::kInvalidModel, {"tensor 1 'w'", "buffer 4294967295"});
}

TEST(Reader, BuffersBehindTheFlatbufferLieInTheFile) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  const uint64_t end = RawModel{.offset = 2, .size = 12}.build().size();
  const std::vector<std::pair<uint64_t, uint64_t>> places = {
      {end, 12}, {end - 11, 12}, {end + 1, 0}, {kMax, 12}, {kMax - 3, 12}, {16, kMax}, {16, kMax - 15}, {kMax, kMax}};
  for (const auto& [offset, size] : places) {
    expect_problem({.offset = offset, .size = size}, ErrorCode::kInvalidModel,
                   {"tensor 1 'w'", std::to_string(offset).c_str(), std::to_string(size).c_str()});
  }
}

TEST(Reader, BuffersBehindTheFlatbufferAreRead) {
  std::vector<std::byte> bytes = RawModel{.data = {}, .offset = 2, .size = 12}.build();
  const uint64_t end = (bytes.size() + 15) / 16 * 16;
  bytes = RawModel{.data = {}, .offset = end, .size = 12}.build();
  bytes.resize(end);
  for (int i = 0; i < 12; ++i) bytes.push_back(static_cast<std::byte>(i));
  const auto graph = read_bytes(bytes);
  const auto data = graph->subgraphs[0].values[1].data;
  ASSERT_EQ(data.size(), 12U);
  EXPECT_EQ(data[11], std::byte{11});
  EXPECT_EQ(data.data(), graph->bytes->span().data() + end) << "an aligned constant needs no copy";
}

TEST(Reader, MisalignedConstantsAreCopied) {
  std::vector<std::byte> bytes = RawModel{.data = {}, .offset = 2, .size = 12}.build();
  const uint64_t odd = bytes.size() / 2 * 2 + 3;
  bytes = RawModel{.data = {}, .offset = odd, .size = 12}.build();
  bytes.resize(odd);
  for (int i = 0; i < 12; ++i) bytes.push_back(static_cast<std::byte>(i));
  const auto graph = read_bytes(bytes);
  const auto data = graph->subgraphs[0].values[1].data;
  ASSERT_EQ(data.size(), 12U);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data.data()) % alignof(float), 0U);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(data[static_cast<size_t>(i)], static_cast<std::byte>(i));
}

TEST(Reader, FilesBeyondTwoGiBKeepConstantsBehindTheFlatbuffer) {
  constexpr size_t kSize = (size_t{1} << 31) + 4096;
  constexpr size_t kPlace = (size_t{1} << 31) + 64;
  void* const block = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) GTEST_SKIP() << "no address space for a large file";
  const std::shared_ptr<void> owner(block, [](void* p) { munmap(p, kSize); });
  auto* const file = static_cast<std::byte*>(block);
  const std::vector<std::byte> head = RawModel{.data = {}, .offset = kPlace, .size = 12}.build();
  std::memcpy(file, head.data(), head.size());
  file[kPlace + 11] = std::byte{42};
  const auto graph = read(ModelBytes::borrow({file, kSize}, owner));
  EXPECT_EQ(graph->subgraphs[0].values[1].data[11], std::byte{42});
}

TEST(Reader, CustomOptionsBehindTheFlatbufferLieInTheFile) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  for (const auto& [offset, size] : std::vector<std::pair<uint64_t, uint64_t>>{{kMax, 2}, {16, kMax}, {1 << 20, 1}}) {
    RawModel raw;
    raw.op_code = ir::kCustomOp;
    raw.custom_name = "Mine";
    raw.options_offset = offset;
    raw.options_size = size;
    expect_problem(raw, ErrorCode::kInvalidModel, {"Mine #0", std::to_string(offset).c_str()});
  }
}

TEST(Reader, TypesAndRanksMustBeKnown) {
  expect_problem({.w_type = 100}, ErrorCode::kUnsupported, {"tensor 1 'w'", "type 100"});
  expect_problem({.w_type = -1}, ErrorCode::kUnsupported, {"tensor 1 'w'", "type -1"});
  expect_problem({.w_shape = std::vector<int32_t>(9, 1)}, ErrorCode::kUnsupported, {"tensor 1 'w'", "rank 9"});
  expect_problem({.w_shape = {3, -1}}, ErrorCode::kInvalidModel, {"tensor 1 'w'", "dimension 1", "-1"});
}

TEST(Reader, DataOutsideTheFileIsUnsupported) {
  expect_problem({.external_buffer = 1}, ErrorCode::kUnsupported, {"tensor 1 'w'", "outside the file"});
}

TEST(Reader, MetadataBuffersAreInRange) {
  EXPECT_EQ(read_bytes(RawModel{.metadata_buffer = 1}.build())->metadata[0].data.size(), 12U);
  expect_problem({.metadata_buffer = 2}, ErrorCode::kInvalidModel, {"metadata 'notes'", "buffer 2"});
}

TEST(Reader, SignaturesAreComplete) {
  EXPECT_EQ(read_bytes(RawModel{.signature = true}.build())->signatures[0].key, "serve");
  expect_problem({.signature = true, .signature_key = nullptr}, ErrorCode::kInvalidModel, {"signature", "no key"});
  expect_problem({.signature = true, .signature_subgraph = 1}, ErrorCode::kInvalidModel, {"'serve'", "subgraph 1"});
  expect_problem({.signature = true, .signature_tensor = 0xFFFFFFFF}, ErrorCode::kInvalidModel,
                 {"'serve'", "4294967295"});
  expect_problem({.signature = true, .signature_tensor = 2}, ErrorCode::kInvalidModel, {"'serve'", "tensor 2"});
}

/// Thousands of tensors that are one and the same table, with a long name.
TEST(Reader, ASmallFileDoesNotBecomeALargeGraph) {
  flatbuffers::FlatBufferBuilder b;
  const auto name = b.CreateString(std::string(100'000, 'n'));
  tfl::TensorBuilder t(b);
  t.add_name(name);
  const std::vector<flatbuffers::Offset<tfl::Tensor>> tensors(50'000, t.Finish());
  const auto subgraphs = b.CreateVector(std::vector{tfl::CreateSubGraph(b, b.CreateVector(tensors))});
  tfl::FinishModelBuffer(b, tfl::CreateModel(b, 3, 0, subgraphs));
  const auto* begin = reinterpret_cast<const std::byte*>(b.GetBufferPointer());
  const Thrown thrown = thrown_by([&] { read_bytes({begin, begin + b.GetSize()}); });
  EXPECT_EQ(thrown.code, ErrorCode::kInvalidModel);
  EXPECT_TRUE(thrown.names("describe a graph")) << thrown.message;
}

/// Some writers align vectors of 64-bit integers to 4 bytes.
TEST(Reader, TakesZeroPointsThatAreNotAligned) {
  int misaligned = 0;
  for (const size_t padding : {0, 1}) {
    flatbuffers::FlatBufferBuilder b;
    b.CreateVector(std::vector<int32_t>(padding));
    const auto halves = b.CreateVector(std::vector<int32_t>{7, 0});
    const flatbuffers::Offset<flatbuffers::Vector<int64_t>> zero_point(halves.o);
    const auto scale = b.CreateVector(std::vector{0.5F});
    const auto quantization = tfl::CreateQuantizationParameters(b, 0, 0, scale, zero_point);
    const auto shape = b.CreateVector(std::vector<int32_t>{3});
    constexpr int8_t kInt8 = 9;
    const auto tensors =
        b.CreateVector(std::vector{tfl::CreateTensor(b, shape, kInt8, 0, b.CreateString("x"), quantization)});
    const auto ends = b.CreateVector(std::vector<int32_t>{0});
    const auto subgraphs = b.CreateVector(std::vector{tfl::CreateSubGraph(b, tensors, ends, ends)});
    const auto buffers = b.CreateVector(std::vector{tfl::CreateBuffer(b)});
    tfl::FinishModelBuffer(b, tfl::CreateModel(b, 3, 0, subgraphs, 0, buffers));
    const uint8_t* begin = b.GetBufferPointer();
    const auto* made = tfl::GetModel(begin)->subgraphs()->Get(0)->tensors()->Get(0)->quantization()->zero_point();
    const auto place = static_cast<size_t>(reinterpret_cast<const uint8_t*>(made) - begin);
    misaligned += (place + sizeof(uint32_t)) % sizeof(int64_t) != 0 ? 1 : 0;
    std::vector<std::byte> bytes(b.GetSize());
    std::memcpy(bytes.data(), begin, bytes.size());
    bytes[place] = std::byte{1};  // one number, not two halves

    EXPECT_EQ(read_bytes(bytes)->subgraphs[0].values[0].quantization.zero_point, std::vector<int64_t>{7});
  }
  EXPECT_GT(misaligned, 0);
}

TEST(Reader, GivesResultsTheTypeThatLiteRtGivesThem) {
  Sketch s;
  Quantization scale;
  scale.scale = {0.5F};
  scale.zero_point = {3};
  const auto quantize = [&](int v) { s.subgraph().value(v).quantization = scale; };
  const int x = s.input("x", DType::kInt8, {4});
  const int sum = s.compute("ADD", {x, x}, "sum", DType::kFloat32, {4});
  const int product = s.compute("MUL", {sum, sum}, "product", DType::kFloat32, {4});
  for (const int v : {x, sum, product}) quantize(v);
  s.outputs({product});
  const auto graph = read_bytes(s.file());
  EXPECT_EQ(graph->subgraphs[0].value(sum).dtype, DType::kInt8);
  EXPECT_EQ(graph->subgraphs[0].value(sum).quantization, scale);
  EXPECT_EQ(graph->subgraphs[0].value(product).dtype, DType::kFloat32) << "MUL checks it";
}

// A model with a bit of everything, for cutting and flipping.

void add_loop(Sketch& s) {
  s.next_subgraph("cond");
  int i = s.input("i", DType::kInt32, {});
  s.input("state", DType::kFloat32, {2, 4});
  const int limit = s.constant<int32_t>("limit", DType::kInt32, {}, {3});
  s.outputs({s.compute("LESS", {i, limit}, "goes_on", DType::kBool, {})});
  s.next_subgraph("body");
  i = s.input("i", DType::kInt32, {});
  const int state = s.input("state", DType::kFloat32, {2, 4});
  const int one = s.constant<int32_t>("one", DType::kInt32, {}, {1});
  const int next = s.compute("ADD", {i, one}, "next", DType::kInt32, {});
  s.outputs({next, s.compute("TANH", {state}, "next_state", DType::kFloat32, {2, 4})});
}

std::vector<std::byte> rich_file() {
  Sketch s;
  const int x = s.input("x", DType::kFloat32, {2, 8});
  const int text = s.input("text", DType::kString, {2});
  const int w = s.constant<float>("w", DType::kFloat32, {4, 8}, std::vector<float>(32, 0.5F));
  const int bias = s.constant<float>("bias", DType::kFloat32, {4}, {1, 2, 3, 4});
  const int dense = s.compute("FULLY_CONNECTED", {x, w, bias}, "dense", DType::kFloat32, {2, 4});
  const int zero = s.constant<int32_t>("zero", DType::kInt32, {}, {0});
  const int steps = s.value("steps", DType::kInt32, {});
  const int looped = s.value("looped", DType::kFloat32, {2, 4});
  s.node("WHILE", {zero, dense}, {steps, looped}, {{"cond_subgraph_index", 1}, {"body_subgraph_index", 2}});
  const int q = s.compute("QUANTIZE", {looped}, "q", DType::kInt8, {2, 4});
  s.subgraph().value(q).quantization = {{0.1F}, {3}, 0, {-1}, {1}};
  const int shape = s.constant<int32_t>("shape", DType::kInt32, {2}, {4, 2});
  const int reshaped = s.compute("RESHAPE", {q, shape}, "reshaped", DType::kInt8, {4, 2});
  s.subgraph().value(reshaped).quantization = {{0.1F}, {3}, 0, {}, {}};
  const int begin = s.constant<int32_t>("begin", DType::kInt32, {1}, {1});
  const int count = s.constant<int32_t>("count", DType::kInt32, {1}, {1});
  const int second = s.compute("SLICE", {text, begin, count}, "second", DType::kString, {1});
  const int top = s.compute("SOFTMAX", {looped}, "top", DType::kFloat32, {2, 4}, {{"beta", 1}});
  s.outputs({reshaped, second, top});
  add_loop(s);
  s.graph().description = "a bit of everything";
  s.graph().signatures.push_back({"serve", 0, {{"x", x}, {"text", text}}, {{"top", top}}});
  s.graph().metadata.push_back({"notes", s.graph().subgraphs[0].value(bias).data});
  return s.file();
}

/// Loads, plans and runs; any leadline::Error is a fine answer, everything else is not.
bool survives(const std::vector<std::byte>& bytes) {
  try {
    const Model model = Model::from_bytes(bytes, nullptr, Budget::with_limit(int64_t{64} << 20));
    InterpreterOptions options;
    options.max_loop_rounds = 20;
    Interpreter interpreter(model, options);
    interpreter.plan();
    if (interpreter.inputs().size() == 2) {
      interpreter.set_tensor(interpreter.inputs()[1], ops::string_buffer({"one", "two"}));
    }
    interpreter.invoke();
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::kInternal) << error.what();
    EXPECT_STRNE(error.what(), "");
    return false;
  }
  return true;
}

TEST(Reader, TheRichModelRuns) { EXPECT_TRUE(survives(rich_file())); }

TEST(Reader, TruncatedFilesAreRefused) {
  const std::vector<std::byte> whole = rich_file();
  for (size_t size = 0; size < whole.size(); size += 64) {
    const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const Thrown thrown = thrown_by([&] { read_bytes(part); });
    EXPECT_EQ(thrown.code, ErrorCode::kInvalidModel) << size << " of " << whole.size() << ": " << thrown.message;
  }
}

TEST(Reader, FlippedBytesNeverCrash) {
  const std::vector<std::byte> whole = rich_file();
  std::mt19937 random(20240229);
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  constexpr int kMutations = 4000;
  int loaded = 0;
  for (int i = 0; i < kMutations; ++i) {
    std::vector<std::byte> bytes = whole;
    for (size_t k = 1 + below(3); k > 0; --k) bytes[8 + below(bytes.size() - 8)] = static_cast<std::byte>(below(256));
    loaded += survives(bytes) ? 1 : 0;
  }
  EXPECT_GT(loaded, kMutations / 20) << "too few mutations got past the verifier to test what comes after it";
}

TEST(Reader, HostileNumbersNeverCrash) {
  const std::vector<std::byte> whole = rich_file();
  const std::vector<int32_t> numbers = {
      0, 1, -1, -2, 127, 255, 65535, 1 << 20, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()};
  for (size_t at = 8; at + 4 <= whole.size(); at += 4) {
    std::vector<std::byte> bytes = whole;
    std::memcpy(bytes.data() + at, &numbers[(at / 4) % numbers.size()], 4);
    survives(bytes);
    std::memcpy(bytes.data() + at, &numbers[(at / 4 + 5) % numbers.size()], 4);
    survives(bytes);
  }
}

}  // namespace
}  // namespace leadline::model
