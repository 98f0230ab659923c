// SPDX-License-Identifier: Apache-2.0
// Interpreter::bind: tensors in memory of the caller, which is neither copied, nor counted, nor written without right.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <utility>
#include <vector>

#include "leadline/interpreter.h"
#include "tests/cpp/sketch.h"

namespace leadline {
namespace {

using testing::get;
using testing::set;
using testing::Sketch;
using testing::thrown_by;

constexpr DType kF32 = DType::kFloat32;
constexpr DType kI32 = DType::kInt32;

template <typename T>
TensorMemory memory_of(std::vector<T>& values, const Shape& shape, DType dtype = kF32) {
  return {.owner = nullptr,
          .data = reinterpret_cast<std::byte*>(values.data()),
          .bytes = static_cast<int64_t>(values.size() * sizeof(T)),
          .dtype = dtype,
          .shape = shape};
}

/// Memory that ends where the next byte may not be touched; protect() makes it read-only.
class GuardedMemory {
 public:
  GuardedMemory(const Shape& shape, DType dtype) : shape_(shape), dtype_(dtype) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    bytes_ = static_cast<size_t>(*storage_bytes(dtype, shape));
    writable_ = (bytes_ + page - 1) / page * page;
    size_ = writable_ + page;
    base_ = static_cast<std::byte*>(mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(base_, writable_, PROT_READ | PROT_WRITE), 0);
  }
  ~GuardedMemory() { munmap(base_, size_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* data() const { return base_ + writable_ - bytes_; }
  float* floats() const { return reinterpret_cast<float*>(data()); }
  void protect() {
    EXPECT_EQ(mprotect(base_, writable_, PROT_READ), 0);
    read_only_ = true;
  }
  TensorMemory memory() const {
    return {.owner = nullptr,
            .data = data(),
            .bytes = static_cast<int64_t>(bytes_),
            .dtype = dtype_,
            .shape = shape_,
            .read_only = read_only_};
  }

 private:
  Shape shape_;
  DType dtype_;
  std::byte* base_;
  size_t bytes_, writable_, size_;
  bool read_only_ = false;
};

void expect_planned_equals_counted(const Interpreter& interpreter) {
  EXPECT_EQ(interpreter.plan().peak_bytes, interpreter.counted_peak_bytes());
}

int64_t bytes_of(const Plan& plan, MemoryCategory category) {
  for (const CategoryBytes& c : plan.categories) {
    if (c.category == category) return c.bytes;
  }
  return 0;
}

/// y = -|x|, of any length.
Sketch chain(int64_t length) {
  Sketch s;
  const int x = s.input("x", kF32, {length});
  s.subgraph().values[0].signature = std::vector<int32_t>{-1};
  const int a = s.compute("ABS", {x}, "a", kF32, {length});
  s.outputs({s.compute("NEG", {a}, "y", kF32, {length})});
  return s;
}
constexpr int kX = 0, kY = 2;  // of chain()

TEST(BoundMemory, IsReadAndWrittenInPlaceAndNotCounted) {
  std::vector<float> x{1, -2, 3};
  std::vector<float> y(3, 9.0F);
  Interpreter interpreter(chain(3).load());
  const int64_t before = interpreter.plan().peak_bytes;
  interpreter.bind(kX, memory_of(x, {3}));
  interpreter.bind(kY, memory_of(y, {3}));
  const Plan plan = interpreter.plan();
  EXPECT_EQ(bytes_of(plan, MemoryCategory::kInputsOutputs), 0);
  EXPECT_EQ(plan.peak_bytes, before - 2 * 64);
  EXPECT_EQ(plan.bound_bytes, 24);
  EXPECT_TRUE(plan.tensors[kX].bound && plan.tensors[kY].bound && !plan.tensors[1].bound);
  EXPECT_NE(plan.to_text().find("Memory of the caller, not counted: 24 B"), std::string::npos) << plan.to_text();
  interpreter.invoke();
  EXPECT_EQ(y, (std::vector<float>{-1, -2, -3}));
  EXPECT_EQ(x, (std::vector<float>{1, -2, 3}));
  EXPECT_EQ(interpreter.counted_peak_bytes(), plan.peak_bytes);
  EXPECT_EQ(interpreter.tensor(kY).data, reinterpret_cast<std::byte*>(y.data()));
}

TEST(BoundMemory, LargeTensorsRunInASmallBudget) {
  constexpr int64_t kLength = 1 << 20;
  std::vector<float> x(kLength, 2.0F);
  std::vector<float> y(kLength);
  InterpreterOptions options;
  options.budget = Budget::with_limit(5 << 20);  // the arena's 4 MiB and a bit, not the 8 MiB of x and y
  Interpreter interpreter(chain(kLength).load(), options);
  EXPECT_THROW(interpreter.allocate(), BudgetError);
  interpreter.bind(kX, memory_of(x, {kLength}));
  interpreter.bind(kY, memory_of(y, {kLength}));
  interpreter.invoke();
  EXPECT_EQ(y.back(), -2.0F);
  expect_planned_equals_counted(interpreter);
  interpreter.unbind(kY);
  EXPECT_THROW(interpreter.invoke(), BudgetError);
  interpreter.bind(kY, memory_of(y, {kLength}));
  x.back() = 5.0F;
  interpreter.invoke();
  EXPECT_EQ(y.back(), -5.0F);
}

TEST(BoundMemory, CanChangeBetweenRunsAndBack) {
  std::vector<float> a{1, 2}, b{0, 0};
  Interpreter interpreter(chain(2).load());
  set<float>(interpreter, kX, {7, 8});
  interpreter.invoke();
  for (int round = 0; round < 4; ++round) {
    // Each run reads what the last one wrote: the two take turns.
    interpreter.bind(kX, memory_of(round % 2 == 0 ? a : b, {2}));
    interpreter.bind(kY, memory_of(round % 2 == 0 ? b : a, {2}));
    interpreter.invoke();
    expect_planned_equals_counted(interpreter);
  }
  EXPECT_EQ(a, (std::vector<float>{-1, -2}));
  interpreter.unbind(kX);
  interpreter.unbind(kY);
  interpreter.unbind(kY);
  set<float>(interpreter, kX, {5, -6});
  interpreter.invoke();
  EXPECT_EQ(get<float>(interpreter, kY), (std::vector<float>{-5, -6}));
  EXPECT_EQ(a, (std::vector<float>{-1, -2}));
  EXPECT_EQ(interpreter.plan().bound_bytes, 0);
  expect_planned_equals_counted(interpreter);
}

TEST(BoundMemory, ReadOnlyInputsAreNeverWritten) {
  GuardedMemory x({5}, kF32);
  for (int i = 0; i < 5; ++i) x.floats()[i] = static_cast<float>(i);
  x.protect();
  Sketch s;
  const int in = s.input("x", kF32, {5});
  const int flat = s.compute("RESHAPE", {in, s.constant<int32_t>("shape", kI32, {2}, {5, 1})}, "flat", kF32, {5, 1});
  const int neg = s.compute("NEG", {flat}, "neg", kF32, {5, 1});  // the last to read x, through a view
  s.outputs({s.compute("NEG", {neg}, "y", kF32, {5, 1})});
  Interpreter interpreter(s.load());
  interpreter.bind(in, x.memory());
  interpreter.invoke();
  EXPECT_EQ(get<float>(interpreter, interpreter.outputs()[0]), (std::vector<float>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(interpreter.tensor(in).read_only);
  EXPECT_TRUE(thrown_by([&] { set<float>(interpreter, in, std::vector<float>(5)); }).names("bound to memory"));
}

TEST(BoundMemory, TakesOutputsThatAreViewsInputsOrConstants) {
  Sketch s;
  const int x = s.input("x", kF32, {4});
  const int view = s.compute("RESHAPE", {x, s.constant<int32_t>("shape", kI32, {2}, {2, 2})}, "view", kF32, {2, 2});
  const int fixed = s.constant<float>("fixed", kF32, {2}, {8, 9});
  const int after = s.compute("NEG", {view}, "after", kF32, {2, 2});
  s.outputs({view, x, fixed, after});
  Interpreter interpreter(s.load());
  std::vector<float> input{1, 2, 3, 4}, viewed(4), constant(2), negated(4);
  interpreter.bind(x, memory_of(input, {4}));
  interpreter.bind(view, memory_of(viewed, {2, 2}));
  interpreter.bind(fixed, memory_of(constant, {2}));
  interpreter.bind(after, memory_of(negated, {2, 2}));
  interpreter.invoke();
  EXPECT_EQ(viewed, input);
  EXPECT_EQ(constant, (std::vector<float>{8, 9}));
  EXPECT_EQ(negated, (std::vector<float>{-1, -2, -3, -4}));
  EXPECT_EQ(get<float>(interpreter, x), input);
  expect_planned_equals_counted(interpreter);
  TensorMemory read_only = memory_of(constant, {2});
  read_only.read_only = true;
  EXPECT_TRUE(thrown_by([&] { interpreter.bind(fixed, read_only); }).names("read-only"));
}

TEST(BoundMemory, HoldsTheStateOfVariables) {
  Sketch s;
  const int x = s.input("x", kF32, {2});
  const int sum = s.variable("sum", kF32, {2});
  s.node("ABS", {s.compute("ADD", {x, sum}, "next", kF32, {2})}, {sum});
  s.outputs({s.compute("NEG", {sum}, "y", kF32, {2})});
  Interpreter interpreter(s.load());
  std::vector<float> state{10, 20};
  interpreter.bind(sum, memory_of(state, {2}));
  set<float>(interpreter, x, {1, 2});
  interpreter.invoke();
  interpreter.invoke();
  EXPECT_EQ(state, (std::vector<float>{12, 24}));
  expect_planned_equals_counted(interpreter);
  interpreter.reset_variables();
  EXPECT_EQ(state, (std::vector<float>{0, 0}));
  interpreter.unbind(sum);
  interpreter.invoke();
  EXPECT_EQ(get<float>(interpreter, sum), (std::vector<float>{1, 2}));
  expect_planned_equals_counted(interpreter);
}

TEST(BoundMemory, IsCheckedBeforeItIsTaken) {
  Interpreter interpreter(chain(2).load());
  std::vector<float> good{1, 2}, three(3);
  std::vector<int32_t> integers(2);
  interpreter.bind(kX, memory_of(good, {2}));
  EXPECT_TRUE(thrown_by([&] { interpreter.bind(kX, memory_of(three, {3})); }).names("has shape [2]"));
  EXPECT_TRUE(thrown_by([&] { interpreter.bind(kX, memory_of(three, {2})); }).names("12 bytes"));
  EXPECT_TRUE(thrown_by([&] { interpreter.bind(kX, memory_of(good, {1, 2})); }).names("has shape [2]"));
  EXPECT_TRUE(thrown_by([&] { interpreter.bind(kX, memory_of(integers, {2}, kI32)); }).names("int32"));
  EXPECT_TRUE(thrown_by([&] { interpreter.bind(1, memory_of(good, {2})); }).names("cannot be bound"));
  EXPECT_TRUE(thrown_by([&] { interpreter.bind(9, memory_of(good, {2})); }).names("tensor 9"));
  TensorMemory odd = memory_of(three, {2});
  odd.bytes = 8;
  odd.data += 2;
  EXPECT_TRUE(thrown_by([&] { interpreter.bind(kX, odd); }).names("not aligned to 4"));
  odd.data = nullptr;
  EXPECT_TRUE(thrown_by([&] { interpreter.bind(kX, odd); }).names("null"));
  TensorMemory read_only = memory_of(good, {2});
  read_only.read_only = true;
  EXPECT_TRUE(thrown_by([&] { interpreter.bind(kY, read_only); }).names("read-only"));
  interpreter.invoke();
  EXPECT_EQ(get<float>(interpreter, kY), (std::vector<float>{-1, -2})) << "what was bound before is still used";

  Sketch s;
  s.outputs({s.input("texts", DType::kString, {2})});
  Interpreter texts(s.load());
  EXPECT_EQ(thrown_by([&] { texts.bind(0, memory_of(good, {2}, DType::kString)); }).code, ErrorCode::kUnsupported);
}

TEST(BoundMemory, MayNotOverlapWhatIsWritten) {
  Interpreter interpreter(chain(4).load());
  std::vector<float> values(6, 1.0F);
  TensorMemory low = memory_of(values, {4}), high = low;
  low.bytes = high.bytes = 16;
  high.data += 8;
  interpreter.bind(kX, low);
  interpreter.bind(kY, high);
  const auto thrown = thrown_by([&] { interpreter.invoke(); });
  EXPECT_TRUE(thrown.names("overlaps")) << thrown.message;
  interpreter.unbind(kY);
  interpreter.invoke();
  // The memory of its own output as its input.
  interpreter.bind(kX, interpreter.tensor(kY));
  EXPECT_TRUE(thrown_by([&] { interpreter.invoke(); }).names("overlaps"));
  interpreter.unbind(kX);
  interpreter.invoke();
}

TEST(BoundMemory, OfOneInterpreterFeedsAnother) {
  const Model model = chain(4).load();
  Interpreter first(model), second(model);
  second.bind(kX, first.tensor(kY));
  set<float>(first, kX, {1, 2, 3, -4});
  first.invoke();
  second.invoke();
  EXPECT_EQ(get<float>(second, kY), (std::vector<float>{-1, -2, -3, -4}));
  expect_planned_equals_counted(second);
}

TEST(BoundMemory, MustFitAfterAResize) {
  std::vector<float> x{1, 2}, y(2), x3{1, 2, 3}, y3(3);
  Interpreter interpreter(chain(2).load());
  interpreter.bind(kX, memory_of(x, {2}));
  interpreter.bind(kY, memory_of(y, {2}));
  interpreter.invoke();
  interpreter.resize_input(kX, {3});
  EXPECT_TRUE(thrown_by([&] { interpreter.invoke(); }).names("has shape [3]"));
  interpreter.bind(kX, memory_of(x3, {3}));
  EXPECT_TRUE(thrown_by([&] { interpreter.invoke(); }).names("tensor 2 'y' has shape [3]"));
  interpreter.bind(kY, memory_of(y3, {3}));
  interpreter.invoke();
  EXPECT_EQ(y3, (std::vector<float>{-1, -2, -3}));
  expect_planned_equals_counted(interpreter);
  interpreter.resize_input(kX, {2});
  interpreter.unbind(kX);
  interpreter.unbind(kY);
  set<float>(interpreter, kX, {4, 5});
  interpreter.invoke();
  EXPECT_EQ(get<float>(interpreter, kY), (std::vector<float>{-4, -5}));
  expect_planned_equals_counted(interpreter);
}

TEST(BoundMemory, TakesOutputsWhoseShapeDependsOnData) {
  Sketch s;
  const int x = s.input("x", kF32, {6});
  const int shape = s.input("shape", kI32, {2});
  const int reshaped = s.compute("RESHAPE", {x, shape}, "reshaped", kF32, {});
  const int y = s.compute("NEG", {reshaped}, "y", kF32, {});
  s.outputs({y});
  Interpreter interpreter(s.load());
  std::vector<float> input{1, 2, 3, 4, 5, 6}, output(6);
  interpreter.bind(x, memory_of(input, {6}));
  const auto run = [&](const std::vector<int32_t>& dims) {
    set(interpreter, shape, dims);
    interpreter.invoke();
    expect_planned_equals_counted(interpreter);
  };
  interpreter.bind(y, memory_of(output, {2, 3}));
  run({2, 3});
  EXPECT_EQ(output[5], -6.0F);
  EXPECT_TRUE(thrown_by([&] { run({3, 2}); }).names("has shape [3, 2]"));
  interpreter.bind(y, memory_of(output, {3, 2}));
  input[5] = 7.0F;
  run({3, 2});
  EXPECT_EQ(output[5], -7.0F);
  EXPECT_EQ(interpreter.tensor(y).shape, (Shape{3, 2}));
  interpreter.unbind(y);
  run({1, 6});
  EXPECT_EQ(get<float>(interpreter, y)[5], -7.0F);
}

TEST(BoundMemory, IsHeldAsLongAsItIsBound) {
  auto values = std::make_shared<std::vector<float>>(2, 3.0F);
  const auto memory = [&] {
    TensorMemory result = memory_of(*values, {2});
    result.owner = values;
    return result;
  };
  {
    Interpreter interpreter(chain(2).load());
    interpreter.bind(kX, memory());
    EXPECT_EQ(values.use_count(), 2);
    interpreter.bind(kX, memory());
    EXPECT_EQ(values.use_count(), 2);
    interpreter.unbind(kX);
    EXPECT_EQ(values.use_count(), 1);
    interpreter.bind(kX, memory());
    interpreter.invoke();
  }
  EXPECT_EQ(values.use_count(), 1);
}

TEST(LargeProducts, TakeLittleBesideTheirOperands) {
  constexpr int64_t kSize = 20'000;
  InterpreterOptions options;
  options.num_threads = 4;
  for (const bool adjoint : {false, true}) {
    for (const DType rhs : {kF32, DType::kInt8}) {
      Sketch s;
      const int x = s.input("x", kF32, {2, kSize, kSize});
      const int y = s.input("y", rhs, {kSize, kSize});
      if (rhs == DType::kInt8) {
        s.subgraph().value(y).quantization.scale = {0.5F};
        s.subgraph().value(y).quantization.zero_point = {0};
      }
      s.outputs({s.compute("BATCH_MATMUL", {x, y}, "z", kF32, {2, kSize, kSize},
                           {{"adj_x", int64_t{adjoint}}, {"adj_y", int64_t{adjoint}}})});
      const Plan plan = Interpreter(s.load(), options).plan();
      EXPECT_LT(plan.steps[0].scratch_bytes, 16 << 20) << adjoint << dtype_name(rhs);
    }
  }
}

TEST(BoundMemory, IsNotTouchedPastItsEnd) {
  for (const int64_t n : {1, 2, 3, 5, 7, 8, 9, 15, 17, 31, 33, 63, 65}) {
    Sketch s;
    const int x = s.input("x", kF32, {3, n});
    const int w = s.input("w", kF32, {n, n});
    const int product = s.compute("BATCH_MATMUL", {x, w}, "product", kF32, {3, n});
    const int soft = s.compute("SOFTMAX", {x}, "soft", kF32, {3, n});
    const int sum = s.compute("ADD", {x, product}, "sum", kF32, {3, n});
    s.outputs({product, soft, sum});
    Interpreter interpreter(s.load());
    std::vector<std::unique_ptr<GuardedMemory>> memories;
    for (const int index : {x, w, product, soft, sum}) {
      const Shape shape = index == w ? Shape{n, n} : Shape{3, n};
      memories.push_back(std::make_unique<GuardedMemory>(shape, kF32));
      for (int64_t i = 0; i < shape.elements(); ++i) memories.back()->floats()[i] = 1.0F;
      interpreter.bind(index, memories.back()->memory());
    }
    interpreter.invoke();
    EXPECT_EQ(memories.back()->floats()[3 * n - 1], static_cast<float>(n + 1));
  }
}

}  // namespace
}  // namespace leadline
