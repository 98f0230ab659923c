// SPDX-License-Identifier: Apache-2.0
// Everything at once: interpreters in parallel, shared weights, one budget, cancellation, registration, the watch,
// forks. Written for `make tsan`; without it these find deadlocks and wrong results.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "leadline/custom_op.h"
#include "leadline/guard/watch.h"
#include "leadline/work_limit.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::get;
using testing::run;
using testing::set;
using testing::Sketch;
using testing::Thrown;
using testing::thrown_by;

constexpr DType kF32 = DType::kFloat32;
constexpr DType kI32 = DType::kInt32;
constexpr int kThreads = 6;

/// Calls body(number) on several threads at the same time.
void in_parallel(int count, const std::function<void(int)>& body) {
  std::atomic<int> waiting{count};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      body(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Two layers with weights to pack, and an op of a user between them when it has a name.
Sketch dense_model(const std::string& custom = "") {
  Sketch s;
  const int x = s.input("x", kF32, {4, 32});
  std::vector<float> weights(32 * 32);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 13) - 6.0F;
  int y = x;
  for (const char* name : {"a", "b"}) {
    const int w = s.constant<float>(std::string("w") + name, kF32, {32, 32}, weights);
    y = s.compute("FULLY_CONNECTED", {y, w, -1}, name, kF32, {4, 32});
    if (!custom.empty() && name[0] == 'a') y = s.compute(custom, {y}, "custom", kF32, {4, 32});
  }
  s.outputs({y});
  return s;
}

/// Counts up for ever.
Sketch endless_model() {
  Sketch s;
  const int i = s.input("i", kI32, {1});
  const int last = s.value("last", kI32, {1});
  s.node("WHILE", {i}, {last}, {{"cond_subgraph_index", 1}, {"body_subgraph_index", 2}});
  s.outputs({last});
  s.next_subgraph("cond");
  const int c = s.input("c", kI32, {1});
  s.outputs({s.compute("EQUAL", {c, c}, "go", DType::kBool, {1})});
  s.next_subgraph("body");
  const int b = s.input("b", kI32, {1});
  const int one = s.constant<int32_t>("one", kI32, {1}, {1});
  s.outputs({s.compute("MAXIMUM", {b, one}, "next", kI32, {1})});
  return s;
}

std::vector<float> ramp(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), -3.0F);
  return values;
}

InterpreterOptions threads(int count) {
  InterpreterOptions options;
  options.num_threads = count;
  return options;
}

std::vector<float> expected_of(const Model& model) {
  Interpreter interpreter(model);
  return run(interpreter, ramp(128));
}

TEST(Concurrency, InterpretersOfOneModelPackItsWeightsOnceAndAgree) {
  for (int round = 0; round < 5; ++round) {
    const Model model = dense_model().load();
    std::atomic<int> right{0};
    const std::vector<float> expected = expected_of(model);
    in_parallel(kThreads, [&](int i) {
      for (int k = 0; k < 5; ++k) {
        Interpreter interpreter(model, threads(1 + i % 3));
        right += run(interpreter, ramp(128)) == expected && run(interpreter, ramp(128)) == expected ? 1 : 0;
      }
    });
    EXPECT_EQ(right, kThreads * 5);
  }
}

TEST(Concurrency, OneInterpreterTakesTurns) {
  const Model model = dense_model().load();
  const std::vector<float> expected = expected_of(model);
  Interpreter interpreter(model, threads(2));
  set(interpreter, interpreter.inputs()[0], ramp(128));
  std::atomic<int> done{0};
  in_parallel(kThreads, [&](int i) {
    for (int k = 0; k < 20; ++k) {
      interpreter.invoke();
      if (i == 0) interpreter.plan();
      if (i == 1) interpreter.memory_bytes();
      if (i == 2) interpreter.tensor_info(0);
      ++done;
    }
  });
  EXPECT_EQ(done, kThreads * 20);
  // Views of tensors take no turns: they may be read when nothing runs.
  EXPECT_EQ(get<float>(interpreter, interpreter.outputs()[0]), expected);
}

TEST(Concurrency, ModelsAreLoadedAndDroppedWhileOthersRun) {
  const std::vector<std::byte> file = dense_model().file();
  const std::vector<float> expected = expected_of(Model::from_bytes(file));
  std::atomic<int> right{0};
  in_parallel(kThreads, [&](int) {
    for (int k = 0; k < 10; ++k) {
      Interpreter interpreter(Model::from_bytes(file));  // which alone keeps the model
      right += run(interpreter, ramp(128)) == expected ? 1 : 0;
    }
  });
  EXPECT_EQ(right, kThreads * 10);
}

TEST(Concurrency, ABudgetSharedByThreadsIsNeverExceededAndReturnsToZero) {
  const std::vector<std::byte> file = dense_model().file();
  const auto one = Budget::with_limit(int64_t{1} << 30);
  {
    Interpreter interpreter(Model::from_bytes(file, nullptr, one));
    run(interpreter, ramp(128));
  }
  const int64_t limit = one->peak() * 3;  // for three of six
  const auto budget = Budget::with_limit(limit);
  std::atomic<int> done{0};
  in_parallel(kThreads, [&](int) {
    for (int k = 0; k < 10; ++k) {
      try {
        Interpreter interpreter(Model::from_bytes(file, nullptr, budget));
        run(interpreter, ramp(128));
        ++done;
      } catch (const BudgetError&) {
      }
    }
  });
  EXPECT_GT(done, 0);
  EXPECT_LE(budget->peak(), limit);
  EXPECT_EQ(budget->used(), 0);
}

TEST(Concurrency, ARunIsCancelledFromAnotherThread) {
  Interpreter interpreter(endless_model().load());
  std::atomic<bool> stop{false};
  std::atomic<bool> running{false};
  std::thread caller([&] {
    while (!running) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop = true;
  });
  const Thrown thrown = thrown_by([&] {
    interpreter.invoke([&] {
      running = true;
      if (stop) throw Error(ErrorCode::kCancelled, "enough");
    });
  });
  caller.join();
  EXPECT_EQ(thrown.message, "enough");
}

TEST(Concurrency, ATimeoutNamesTheNodeAndLeavesTheInterpreterUsable) {
  Interpreter interpreter(endless_model().load());
  for (int round = 0; round < 2; ++round) {
    const Thrown thrown = thrown_by([&] {
      const WorkLimit limit({}, 0.05);
      interpreter.invoke();
    });
    EXPECT_EQ(thrown.code, ErrorCode::kTimeout);
    EXPECT_TRUE(thrown.names("time limit of 0.05 s")) << thrown.message;
    EXPECT_TRUE(thrown.names("EQUAL") || thrown.names("MAXIMUM") || thrown.names("WHILE")) << thrown.message;
  }
}

TEST(Concurrency, WaitingForAnotherThreadsRunHasATimeoutToo) {
  Interpreter interpreter(endless_model().load());
  std::atomic<bool> stop{false};
  std::atomic<bool> running{false};
  std::thread runner([&] {
    thrown_by([&] {
      interpreter.invoke([&] {
        running = true;
        if (stop) throw Error(ErrorCode::kCancelled, "enough");
      });
    });
  });
  while (!running) std::this_thread::yield();
  const Thrown thrown = thrown_by([&] {
    const WorkLimit limit({}, 0.05);
    interpreter.plan();
  });
  EXPECT_EQ(thrown.code, ErrorCode::kTimeout);
  stop = true;
  runner.join();
}

TEST(Concurrency, OpsAreRegisteredWhileModelsRun) {
  struct Double final : CustomOp {
    void infer(InferCall& call) override { call.set_output_shape(0, call.input(0).shape); }
    void run(RunCall& call) override {
      const auto in = call.input(0).values<float>();
      const auto out = call.output(0).memory<float>();
      for (size_t i = 0; i < in.size(); ++i) out[i] = 2 * in[i];
    }
  };
  const CustomOpFactory factory = [](const OpNode&) { return std::make_unique<Double>(); };
  register_op("ConcurrencyDouble", factory);
  const Model model = dense_model("ConcurrencyDouble").load();
  const std::vector<float> expected = expected_of(model);
  std::atomic<int> right{0};
  in_parallel(kThreads, [&](int i) {
    for (int k = 0; k < 20; ++k) {
      if (i == 0) {
        const std::string name = "ConcurrencyOther" + std::to_string(k);
        register_op(name, factory);
        unregister_op(name);
        ++right;
      } else {
        Interpreter interpreter(model);
        right += run(interpreter, ramp(128)) == expected ? 1 : 0;
      }
    }
  });
  unregister_op("ConcurrencyDouble");
  EXPECT_EQ(right, kThreads * 20);
}

TEST(Concurrency, TheWatchLooksOnWhileModelsRun) {
  guard::WatchOptions options;
  options.folder = ::testing::TempDir();
  options.signals = false;
  guard::Watch watch(options);
  const Model model = dense_model().load();
  const std::vector<float> expected = expected_of(model);
  std::atomic<int> right{0};
  in_parallel(kThreads, [&](int i) {
    for (int k = 0; k < 20; ++k) {
      if (i == 0) {
        watch.begin_cell(k, "cell");
        watch.samples();
        watch.cells();
        ++right;
      } else {
        Interpreter interpreter(model);
        right += run(interpreter, ramp(128)) == expected ? 1 : 0;
      }
    }
  });
  watch.stop();
  EXPECT_EQ(right, kThreads * 20);
}

#if !defined(__SANITIZE_THREAD__)  // which forbids threads after a fork of a process with threads

/// Runs `body` in a forked process; true when it returns true in time.
bool holds_in_fork(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    bool holds = false;
    try {
      holds = body();
    } catch (...) {
    }
    _exit(holds ? 0 : 1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Concurrency, AnIdleInterpreterWorksInAForkedProcess) {
  const Model model = dense_model().load();
  const std::vector<float> expected = expected_of(model);
  Interpreter interpreter(model, threads(3));
  EXPECT_EQ(run(interpreter, ramp(128)), expected);
  EXPECT_TRUE(holds_in_fork([&] {
    Interpreter fresh(model, threads(3));
    return run(interpreter, ramp(128)) == expected && run(fresh, ramp(128)) == expected;
  }));
  EXPECT_EQ(run(interpreter, ramp(128)), expected);
}

TEST(Concurrency, AForkWhileARunGoesOnGivesAnErrorInTheChild) {
  const Model model = endless_model().load();
  Interpreter interpreter(model);
  std::atomic<bool> stop{false};
  std::atomic<bool> running{false};
  std::thread runner([&] {
    thrown_by([&] {
      interpreter.invoke([&] {
        running = true;
        if (stop) throw Error(ErrorCode::kCancelled, "enough");
      });
    });
  });
  while (!running) std::this_thread::yield();
  EXPECT_TRUE(holds_in_fork([&] {
    const Thrown thrown = thrown_by([&] { interpreter.invoke(); });
    return thrown.code == ErrorCode::kRuntime && thrown.names("forked");
  }));
  EXPECT_TRUE(holds_in_fork([&] {
    InterpreterOptions options;
    options.max_loop_rounds = 10;
    Interpreter fresh(model, options);
    return thrown_by([&] { fresh.invoke(); }).code == ErrorCode::kCancelled;
  })) << "a new interpreter of the same model works there";
  stop = true;
  runner.join();
}

#endif

}  // namespace
}  // namespace leadline
