// SPDX-License-Identifier: Apache-2.0
// Ops of users through the public API: shapes, memory, state, errors, registration.
#include "leadline/custom_op.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "io/flexbuffer_map_builder.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::get;
using testing::run;
using testing::set;
using testing::Sketch;
using testing::thrown_by;

constexpr DType kF32 = DType::kFloat32;
using Floats = std::vector<float>;

/// Registered for as long as it lives.
class Registered {
 public:
  Registered(std::string name, CustomOpFactory factory) : name_(std::move(name)) {
    register_op(name_, std::move(factory));
  }
  ~Registered() { unregister_op(name_); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  std::string name_;
};

/// An op from two functions.
CustomOpFactory op_of(const std::function<void(InferCall&)>& infer, const std::function<void(RunCall&)>& run) {
  struct Op final : CustomOp {
    void infer(InferCall& call) override { infer_(call); }
    void run(RunCall& call) override { run_(call); }
    std::function<void(InferCall&)> infer_;
    std::function<void(RunCall&)> run_;
  };
  return [=](const OpNode&) {
    auto op = std::make_unique<Op>();
    op->infer_ = infer;
    op->run_ = run;
    return op;
  };
}

void same_shape(InferCall& call) { call.set_output_shape(0, call.input(0).shape); }

void double_it(RunCall& call) {
  const auto x = call.input(0).values<float>();
  const auto y = call.output(0).memory<float>();
  for (size_t i = 0; i < x.size(); ++i) y[i] = 2.0F * x[i];
}

/// y = -MyOp(|x|)
Sketch model_with(const std::string& op, const Shape& shape = {4}) {
  Sketch s;
  const int x = s.input("x", kF32, shape);
  const int a = s.compute("ABS", {x}, "a", kF32, shape);
  const int b = s.compute(op, {a}, "b", kF32, shape);
  s.outputs({s.compute("NEG", {b}, "y", kF32, shape)});
  return s;
}

void set_options(Sketch& s, size_t node, const std::vector<std::byte>& bytes) {
  s.graph().storage.push_back(std::make_shared<const std::vector<std::byte>>(bytes));
  s.subgraph().nodes[node].custom_options = *s.graph().storage.back();
}

TEST(CustomOp, RunsInAPlanThatCountsItsMemory) {
  const Registered op("MyOp", op_of(
                                  [](InferCall& call) {
                                    same_shape(call);
                                    call.request_scratch(1000);
                                    call.request_persistent(100);
                                  },
                                  [](RunCall& call) {
                                    EXPECT_EQ(call.scratch().size(), 1000U);
                                    EXPECT_EQ(call.kept().size(), 100U);
                                    EXPECT_EQ(reinterpret_cast<uintptr_t>(call.scratch().data()) % 64, 0U);
                                    std::fill(call.scratch().begin(), call.scratch().end(), std::byte{0xFF});
                                    double_it(call);
                                  }));
  Interpreter interpreter(model_with("MyOp").load());
  const Plan plan = interpreter.plan();
  ASSERT_EQ(plan.steps.size(), 3U);
  EXPECT_EQ(plan.steps[1].op, "MyOp");
  EXPECT_EQ(plan.steps[1].scratch_bytes, 1000);
  EXPECT_EQ(plan.steps[1].persistent_bytes, 128) << "rounded as it is allocated";
  EXPECT_EQ(run(interpreter, Floats{1, -2, 3, -4}), (Floats{-2, -4, -6, -8}));
  EXPECT_EQ(plan.peak_bytes, interpreter.counted_peak_bytes());
  EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
}

TEST(CustomOp, FollowsNewInputShapes) {
  const Registered op("MyOp", op_of(same_shape, double_it));
  Interpreter interpreter(model_with("MyOp").load());
  interpreter.resize_input(0, Shape{2});
  EXPECT_EQ(run(interpreter, Floats{1, 2}), (Floats{-2, -4}));
  EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
}

TEST(CustomOp, IsHeldToTheBudget) {
  int64_t scratch = 0;
  const Registered op("MyOp", op_of(
                                  [&](InferCall& call) {
                                    same_shape(call);
                                    call.request_scratch(scratch);
                                  },
                                  double_it));
  const Model model = model_with("MyOp").load();
  InterpreterOptions options;
  options.budget = Budget::with_limit(1 << 20);
  Interpreter fits(model, options);
  fits.allocate();
  scratch = 1 << 20;
  Interpreter too_large(model, options);
  EXPECT_EQ(thrown_by([&] { too_large.allocate(); }).code, ErrorCode::kBudget);
  scratch = int64_t{1} << 50;
  EXPECT_TRUE(thrown_by([&] { Interpreter i(model, options); }).names("MyOp #1 'b': its workspace"));
  scratch = -1;
  EXPECT_EQ(thrown_by([&] { Interpreter i(model, options); }).code, ErrorCode::kInvalidArgument);
}

TEST(CustomOp, ShapesMayDependOnData) {
  // The first input[0] values; its scratch depends on data too.
  const Registered op("Take", op_of(
                                  [](InferCall& call) {
                                    if (!call.input(0).known) return call.defer();
                                    const auto count = static_cast<int64_t>(call.input(0).values<float>()[0]);
                                    call.require(count >= 0 && count <= 4, "count is out of range");
                                    call.set_output_shape(0, Shape{count});
                                    call.request_scratch(100 * count);
                                    call.request_persistent(64);
                                  },
                                  [](RunCall& call) {
                                    call.kept()[0] = static_cast<std::byte>(std::to_integer<int>(call.kept()[0]) + 1);
                                    const auto y = call.output(0).memory<float>();
                                    std::fill(y.begin(), y.end(), static_cast<float>(call.kept()[0]));
                                  }));
  Interpreter interpreter(model_with("Take").load());
  EXPECT_FALSE(interpreter.plan().complete);
  EXPECT_EQ(run(interpreter, Floats{3, 0, 0, 0}), (Floats{-1, -1, -1}));
  EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
  EXPECT_EQ(run(interpreter, Floats{1, 0, 0, 0}), (Floats{-2})) << "kept memory survives planning again in the run";
  EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
  const auto thrown = thrown_by([&] { run(interpreter, Floats{9, 0, 0, 0}); });
  EXPECT_EQ(thrown.message, "Take #1 'b': count is out of range");
  EXPECT_EQ(run(interpreter, Floats{0, 0, 0, 0}), Floats{});
}

TEST(CustomOp, WaitingForDataThatIsThereIsAnError) {
  const Registered op("MyOp", op_of([](InferCall& call) { call.defer(); }, double_it));
  Interpreter interpreter(model_with("MyOp").load());
  EXPECT_TRUE(thrown_by([&] { interpreter.invoke(); }).names("MyOp #1 'b': the op waits for data"));
}

/// Adds what it has seen so far.
class Accumulate final : public CustomOp {
 public:
  void infer(InferCall& call) override { same_shape(call); }
  void run(RunCall& call) override {
    const auto x = call.input(0).values<float>();
    total_ = std::accumulate(x.begin(), x.end(), total_);
    for (float& y : call.output(0).memory<float>()) y = total_;
  }
  void reset() override { total_ = 0; }

 private:
  float total_ = 0;
};

TEST(CustomOp, ObjectsKeepStatePerNodeAndInterpreter) {
  register_op<Accumulate>("Accumulate");
  const Model model = model_with("Accumulate", {1}).load();
  Interpreter first(model);
  Interpreter second(model);
  EXPECT_EQ(run(first, Floats{1}), Floats{-1});
  EXPECT_EQ(run(first, Floats{2}), Floats{-3});
  EXPECT_EQ(run(second, Floats{5}), Floats{-5});
  first.reset_variables();
  EXPECT_EQ(run(first, Floats{4}), Floats{-4});
  EXPECT_TRUE(unregister_op("Accumulate"));
  EXPECT_FALSE(unregister_op("Accumulate"));
  EXPECT_EQ(run(first, Floats{4}), Floats{-8}) << "an interpreter keeps the op it was made with";
  EXPECT_EQ(thrown_by([&] { Interpreter i(model); }).code, ErrorCode::kUnsupported);
}

TEST(CustomOp, KeptMemoryIsClearedByReset) {
  const Registered op("MyOp", op_of(
                                  [](InferCall& call) {
                                    same_shape(call);
                                    call.request_persistent(1);
                                  },
                                  [](RunCall& call) {
                                    call.kept()[0] = static_cast<std::byte>(std::to_integer<int>(call.kept()[0]) + 1);
                                    call.output(0).memory<float>()[0] = static_cast<float>(call.kept()[0]);
                                  }));
  Interpreter interpreter(model_with("MyOp", {1}).load());
  EXPECT_EQ(run(interpreter, Floats{0}), Floats{-1});
  EXPECT_EQ(run(interpreter, Floats{0}), Floats{-2});
  interpreter.reset_variables();
  EXPECT_EQ(run(interpreter, Floats{0}), Floats{-1});
}

TEST(CustomOp, ExceptionsNameTheNodeAndTheInterpreterGoesOn) {
  int mode = 0;
  const Registered op("MyOp", op_of(same_shape, [&](RunCall& call) {
                        if (mode == 1) throw Error(ErrorCode::kCancelled, "enough");
                        if (mode == 2) throw std::out_of_range("too far");
                        if (mode == 3) throw 7;
                        if (mode == 4) call.input(1);
                        if (mode == 5) call.output(0).memory<double>();
                        double_it(call);
                      }));
  Interpreter interpreter(model_with("MyOp", {1}).load());
  const auto failing = [&](int value) {
    mode = value;
    return thrown_by([&] { interpreter.invoke(); });
  };
  EXPECT_EQ(failing(1).code, ErrorCode::kCancelled);
  EXPECT_EQ(failing(1).message, "MyOp #1 'b': enough");
  EXPECT_EQ(failing(2).code, ErrorCode::kRuntime);
  EXPECT_EQ(failing(2).message, "MyOp #1 'b': too far");
  EXPECT_EQ(failing(3).code, ErrorCode::kRuntime);
  EXPECT_EQ(failing(4).message, "MyOp #1 'b': the op needs input 1, the node has 1 inputs");
  EXPECT_TRUE(failing(5).names("float32"));
  mode = 2;
  try {
    interpreter.invoke();
  } catch (const Error& error) {
    EXPECT_THROW(std::rethrow_if_nested(error), std::out_of_range);
  }
  mode = 0;
  EXPECT_EQ(run(interpreter, Floats{1}), Floats{-2});
  EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
}

TEST(CustomOp, ShapesAreChecked) {
  const Registered none("MyOp", op_of([](InferCall&) {}, double_it));
  const Model model = model_with("MyOp").load();
  EXPECT_TRUE(thrown_by([&] { Interpreter i(model); }).names("MyOp #1 'b': the op returned no shape for output 0 'b'"));
  const Registered huge(
      "MyOp",
      op_of([](InferCall& call) { call.set_output_shape(0, Shape{int64_t{1} << 40, int64_t{1} << 40}); }, double_it));
  EXPECT_TRUE(thrown_by([&] { Interpreter i(model); }).names("does not fit into memory"));
  const Registered wrong("MyOp", op_of([](InferCall& call) { call.set_output_shape(1, Shape{}); }, double_it));
  EXPECT_TRUE(thrown_by([&] { Interpreter i(model); }).names("the op needs output 1, the node has 1"));
  const Registered null("MyOp", [](const OpNode&) { return nullptr; });
  EXPECT_TRUE(thrown_by([&] { Interpreter i(model); }).names("MyOp #1 'b': the factory"));
}

TEST(CustomOp, OptionsAreReadByName) {
  Sketch s = model_with("Scale", {1});
  set_options(s, 1, build_flex_map({{"count", 3}, {"factor", 2.5F}}));
  const Registered op("Scale", [](const OpNode& node) {
    EXPECT_EQ(node.op, "Scale");
    EXPECT_EQ(node.name, "b");
    EXPECT_EQ(node.options.integer("count", 0), 3);
    EXPECT_EQ(node.options.integer("other", 7), 7);
    EXPECT_TRUE(node.options.flag("count", false));
    EXPECT_EQ(node.options.text("other", "none"), "none");
    EXPECT_THROW(node.options.text("count", ""), Error);
    EXPECT_THROW(node.options.integer("factor", 0), Error);
    const auto factor = static_cast<float>(node.options.number("factor", 1.0));
    return op_of(same_shape, [factor](RunCall& call) {
      call.output(0).memory<float>()[0] = factor * call.input(0).values<float>()[0];
    })(node);
  });
  Interpreter interpreter(s.load());
  EXPECT_EQ(run(interpreter, Floats{2}), Floats{-5});
}

TEST(CustomOp, DamagedOptionsAreNoOptions) {
  const std::vector<std::byte> good = build_flex_map({{"count", 3}, {"factor", 2.5F}});
  ASSERT_TRUE(decode_options(good));
  for (size_t size = 0; size < good.size(); ++size) decode_options(std::span(good).first(size));
  for (size_t i = 0; i < good.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::vector<std::byte> bad = good;
      bad[i] = static_cast<std::byte>(value);
      decode_options(bad);  // must end, inside the bytes
    }
  }
  EXPECT_TRUE(OpOptions().map().empty());
}

TEST(CustomOp, StringsGoInAndOut) {
  const Registered op("Shout", op_of(
                                   [](InferCall& call) {
                                     if (!call.input(0).known) return call.defer();
                                     std::vector<std::string> words;
                                     for (const auto word : call.input(0).strings())
                                       words.push_back(std::string(word) + "!");
                                     call.set_output_shape(0, call.input(0).shape);
                                     call.set_output_bytes(0, string_tensor_size(words));
                                   },
                                   [](RunCall& call) {
                                     std::vector<std::string> words;
                                     for (const auto word : call.input(0).strings())
                                       words.push_back(std::string(word) + "!");
                                     call.output(0).write_strings(words);
                                   }));
  Sketch s;
  const int x = s.input("x", DType::kString, {1});
  s.outputs({s.compute("Shout", {x}, "y", DType::kString, {1})});
  Interpreter interpreter(s.load());
  set<int32_t>(interpreter, 0, {1, 12, 16, 'a' | 'b' << 8 | 'c' << 16 | 'd' << 24});
  interpreter.invoke();
  const auto bytes = get<char>(interpreter, 1);
  EXPECT_EQ(std::string(bytes.begin() + 12, bytes.end()), "abcd!");
  EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
}

TEST(CustomOp, CannotCallTheInterpreterThatRunsIt) {
  Interpreter* self = nullptr;
  const Registered op("MyOp", op_of(same_shape, [&](RunCall&) { self->invoke(); }));
  Interpreter interpreter(model_with("MyOp").load());
  self = &interpreter;
  EXPECT_TRUE(thrown_by([&] { interpreter.invoke(); }).names("called the interpreter that is running it"));
}

TEST(CustomOp, HeldMemoryOutlivesTheInterpreterAndMayBeLeftToItsHolder) {
  std::shared_ptr<const void> held;
  const float* seen = nullptr;
  bool leave = true;
  const Registered op("MyOp", op_of(same_shape, [&](RunCall& call) {
                        double_it(call);
                        seen = call.input(0).values<float>().data();
                        held = call.hold_memory(leave);
                        if (leave) throw std::runtime_error("a view was kept");
                      }));
  {
    Interpreter interpreter(model_with("MyOp").load());
    EXPECT_THROW(run(interpreter, Floats{1, 2, 3, 4}), Error);
    const float* first = seen;
    const auto first_held = held;  // keeps it: NOLINT(performance-unnecessary-copy-initialization)
    leave = false;
    EXPECT_EQ(run(interpreter, Floats{5, 6, 7, 8}), (Floats{-10, -12, -14, -16}));
    EXPECT_EQ(first[0], 1.0F) << "nothing else uses the memory that was left";
    EXPECT_NE(first, seen);
  }
  EXPECT_EQ(seen[0], 5.0F);
}

TEST(CustomOp, RunsInsideLoopsOfFixedAndOfGrowingShapes) {
  // while (i < 3) { i += 1; x = MyOp(x) }, where MyOp counts its runs in kept memory and may lengthen x by one.
  for (const int64_t growth : {0, 1}) {
    const Registered op("MyOp", op_of(
                                    [growth](InferCall& call) {
                                      call.set_output_shape(0, Shape{call.input(0).shape[0] + growth});
                                      call.request_scratch(256);
                                      call.request_persistent(4);
                                    },
                                    [](RunCall& call) {
                                      auto& runs = *reinterpret_cast<float*>(call.kept().data());
                                      runs += 1;
                                      for (float& y : call.output(0).memory<float>()) y = runs;
                                    }));
    Sketch s;
    const int i = s.input("i", DType::kInt32, {});
    const int x = s.input("x", kF32, {2});
    const std::vector<int> ends = {s.value("i_end", DType::kInt32, {}), s.value("x_end", kF32, {2})};
    s.node("WHILE", {i, x}, ends, {{"cond_subgraph_index", int64_t{1}}, {"body_subgraph_index", int64_t{2}}});
    s.outputs({ends[1]});
    s.next_subgraph("cond");
    const int ci = s.input("i", DType::kInt32, {});
    s.input("x", kF32, {2});
    const int limit = s.constant<int32_t>("limit", DType::kInt32, {}, {3});
    s.outputs({s.compute("LESS", {ci, limit}, "more", DType::kBool, {})});
    s.next_subgraph("body");
    const int bi = s.input("i", DType::kInt32, {});
    const int bx = s.input("x", kF32, {2});
    const int one = s.constant<int32_t>("one", DType::kInt32, {}, {1});
    const int next = s.compute("ADD", {bi, one}, "next", DType::kInt32, {});
    s.outputs({next, s.compute("MyOp", {bx}, "longer", kF32, {2})});
    Interpreter interpreter(s.load());
    for (int run = 1; run <= 2; ++run) {
      set<int32_t>(interpreter, i, {0});
      interpreter.invoke();
      const Floats result = get<float>(interpreter, ends[1]);
      EXPECT_EQ(result.size(), static_cast<size_t>(2 + 3 * growth));
      if (growth == 0) {
        EXPECT_EQ(result[0], static_cast<float>(3 * run)) << "kept from round to round and run to run";
      }
      EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes()) << "growth " << growth;
    }
  }
}

TEST(CustomOp, RunsInThreadsWhileOthersRegister) {
  const Registered op("MyOp", op_of(same_shape, double_it));
  const Model model = model_with("MyOp", {1}).load();
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        register_op("Other", op_of(same_shape, double_it));
        Interpreter interpreter(model);
        right += run(interpreter, Floats{3}) == Floats{-6} ? 1 : 0;
        unregister_op("Other");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
}

TEST(CustomOp, NamesMustNotBeEmpty) {
  EXPECT_THROW(register_op("", op_of(same_shape, double_it)), Error);
  EXPECT_THROW(register_op("MyOp", CustomOpFactory()), Error);
  EXPECT_TRUE(registered_ops().empty());
  const Registered op("MyOp", op_of(same_shape, double_it));
  EXPECT_EQ(registered_ops(), std::vector<std::string>{"MyOp"});
}

TEST(MissingOps, FlexOpsAreListedWithWhatToDo) {
  Sketch s;
  const int x = s.input("x", kF32, {4});
  const int a = s.compute("FlexDecodeJpeg", {x}, "a", kF32, {4});
  const int b = s.compute("FlexDecodeJpeg", {a}, "b", kF32, {4});
  const int c = s.compute("FlexSentencepieceOp", {b}, "c", kF32, {4});
  s.outputs({s.compute("Mine", {c}, "y", kF32, {4})});
  const Model model = s.load();
  const auto thrown = thrown_by([&] { Interpreter i(model); });
  EXPECT_EQ(thrown.code, ErrorCode::kUnsupported);
  for (const char* part : {"'FlexDecodeJpeg' (2 nodes)", "'FlexSentencepieceOp'", "custom op 'Mine'", "TensorFlow ops",
                           "TFLITE_BUILTINS", "leadline.register_op(\"FlexDecodeJpeg\"", "leadline/custom_op.h"}) {
    EXPECT_TRUE(thrown.names(part)) << part << " is not in: " << thrown.message;
  }
  const std::vector<MissingOp> missing = model.missing_ops();
  ASSERT_EQ(missing.size(), 3U);
  EXPECT_EQ(missing[0].name, "FlexDecodeJpeg");
  EXPECT_EQ(missing[0].kind, MissingOp::Kind::kFlex);
  EXPECT_EQ(missing[0].nodes, 2);
  EXPECT_EQ(missing[2].kind, MissingOp::Kind::kCustom);

  const Registered registered("FlexDecodeJpeg", op_of(same_shape, double_it));
  EXPECT_EQ(model.missing_ops().size(), 2U);
  EXPECT_FALSE(thrown_by([&] { Interpreter i(model); }).names("FlexDecodeJpeg"));
}

TEST(MissingOps, CanBePlannedAround) {
  InterpreterOptions options;
  options.plan_only = true;
  Interpreter interpreter(model_with("FlexDecodeJpeg").load(), options);
  const Plan plan = interpreter.plan();
  EXPECT_EQ(plan.missing_ops, std::vector<std::string>{"FlexDecodeJpeg"});
  EXPECT_EQ(plan.steps.size(), 3U);
  EXPECT_NE(plan.to_text().find("Planned without FlexDecodeJpeg"), std::string::npos);
  EXPECT_EQ(thrown_by([&] { interpreter.allocate(); }).code, ErrorCode::kUnsupported);
  EXPECT_EQ(thrown_by([&] { interpreter.invoke(); }).code, ErrorCode::kUnsupported);
  EXPECT_EQ(thrown_by([&] { interpreter.tensor(0); }).code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace leadline
