// SPDX-License-Identifier: Apache-2.0
// Files that are cut off while they are mapped: reading what is gone raises SIGBUS. The process lives on, and no result
// comes from a file that was not whole.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "import/saved_model/files_testing.h"
#include "leadline/converter.h"
#include "leadline/interpreter.h"
#include "leadline/quantizer.h"
#include "tests/faults/models.h"
#include "tests/faults/sweep.h"

namespace leadline::faults {
namespace {

using leadline::testing::Sketch;
using leadline::testing::thrown_by;
using saved_model::testing::TempDirectory;

/// Twenty pages of weights that kernels read where they are (ADD) and twenty that are packed (FULLY_CONNECTED); texts.
Bytes many_pages() {
  constexpr int64_t kSize = 20'000;
  Sketch s;
  std::vector<float> values(kSize);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97);
  const int x = s.input("x", DType::kFloat32, {1, kSize});
  const int added = s.constant<float>("added", DType::kFloat32, {1, kSize}, values);
  const int weights = s.constant<float>("weights", DType::kFloat32, {1, kSize}, values);
  const int sum = s.compute("ADD", {x, added}, "sum", DType::kFloat32, {1, kSize});
  s.outputs({s.compute("FULLY_CONNECTED", {sum, weights}, "y", DType::kFloat32, {1, 1})});
  return s.file();
}

class CutOff : public ::testing::Test {
 protected:
  CutOff() { restore(); }

  /// A new file under the old name: what is mapped stays as it is.
  void restore() {
    const std::string fresh = path_ + ".new";
    std::ofstream(fresh, std::ios::binary).write(reinterpret_cast<const char*>(file_.data()), std::ssize(file_));
    std::filesystem::rename(fresh, path_);
  }
  void cut(int64_t bytes) const { ASSERT_EQ(truncate(path_.c_str(), bytes), 0); }

  static std::string run(Interpreter& interpreter) {
    interpreter.invoke();
    const TensorMemory memory = interpreter.tensor(interpreter.outputs()[0]);
    return {reinterpret_cast<const char*>(memory.data), static_cast<size_t>(memory.bytes)};
  }
  void expect_change_told(const std::function<void()>& body) const {
    const auto thrown = thrown_by(body);
    EXPECT_EQ(thrown.code == ErrorCode::kIo, true) << thrown.message;
    EXPECT_TRUE(thrown.names(path_) && thrown.names("changed")) << thrown.message;
  }

  TempDirectory folder_;
  std::string path_ = folder_.path() + "/model.tflite";
  Bytes file_ = many_pages();
};

TEST_F(CutOff, BeforeMemoryIsTaken) {
  for (const int64_t size : {int64_t{0}, int64_t{4096}, int64_t{70'000}, std::ssize(file_) - 100}) {
    const Model model = Model::load(path_);
    Interpreter interpreter(model);
    cut(size);
    expect_change_told([&] { interpreter.allocate(); });
    expect_change_told([&] { interpreter.invoke(); });
    expect_change_told([&] { model.to_tflite(); });
    expect_change_told([&] { Interpreter another(model); });
    EXPECT_NE(thrown_by([&] { Model::load(path_); }).code, std::nullopt);
    restore();
    Interpreter whole(Model::load(path_));
    whole.invoke();
  }
}

TEST_F(CutOff, BetweenRuns) {
  const Model model = Model::load(path_);
  Interpreter interpreter(model);
  interpreter.invoke();
  cut(4096);
  expect_change_told([&] { interpreter.invoke(); });
  expect_change_told([&] { interpreter.invoke(); });
  QuantizeOptions options;
  options.mode = QuantizationMode::kFloat16;
  expect_change_told([&] { Quantizer(model, options).quantize(); });
}

TEST_F(CutOff, OverwrittenInPlace) {
  const Model model = Model::load(path_);
  Interpreter interpreter(model);
  interpreter.invoke();
  usleep(20'000);  // beyond the resolution of file times
  std::ofstream(path_, std::ios::binary | std::ios::in).write("something else", 14);
  expect_change_told([&] { interpreter.allocate(), model.to_tflite(); });
}

TEST_F(CutOff, ReplacedByRenaming) {
  const Model model = Model::load(path_);
  Interpreter interpreter(model);
  const std::string before = run(interpreter);
  restore();
  cut(100);  // of the new one
  EXPECT_EQ(run(interpreter), before);
}

std::string* path_to_cut = nullptr;
int64_t bytes_to_leave = 0;
void cut_now() { [[maybe_unused]] const int ignored = truncate(path_to_cut->c_str(), bytes_to_leave); }

/// At every allocation of loading, planning and running, so between any two of their reads that allocate.
TEST_F(CutOff, AtAnyMoment) {
  Interpreter whole(Model::load(path_));
  const std::string expected = run(whole);
  path_to_cut = &path_;
  instead_of_refusal = cut_now;
  int64_t moments = 0;
  int64_t told = 0;
  for (const int64_t size : {int64_t{0}, int64_t{4096}, int64_t{90'000}}) {
    bytes_to_leave = size;
    for (int64_t n = 1;; ++n) {
      std::string result;
      arm_allocator(n, Extent::kOnce);
      try {
        const Model model = Model::load(path_);
        Interpreter interpreter(model);
        result = run(interpreter);
      } catch (const Error&) {
        ++told;
      }
      disarm_allocator();
      if (!allocation_refused()) break;
      ++moments;
      if (!result.empty()) {
        EXPECT_EQ(result == expected, true) << "cut to " << size << " at allocation " << n;
      }
      restore();
    }
  }
  instead_of_refusal = nullptr;
  EXPECT_GT(told, moments / 2);
  RecordProperty("moments", static_cast<int>(moments));
  std::printf("a file cut off while it is loaded and run: %ld moments, %ld errors\n", static_cast<long>(moments),
              static_cast<long>(told));
}

TEST_F(CutOff, KerasFiles) {
  folder_.write("model.keras", keras_file(false));
  const std::string path = folder_.path() + "/model.keras";
  const Converter converter = Converter::from_keras(path);
  ASSERT_EQ(truncate(path.c_str(), 0), 0);
  for (int i = 0; i < 2; ++i) {
    const auto thrown = thrown_by([&] { converter.convert(); });
    EXPECT_EQ(thrown.code == ErrorCode::kIo, true) << thrown.message;
    EXPECT_TRUE(thrown.names(path)) << thrown.message;
  }
}

TEST_F(CutOff, SavedModels) {
  const std::string path = folder_.path() + "/saved";
  write_saved_model(path);
  const Converter converter = Converter::from_saved_model(path);
  ASSERT_EQ(truncate((path + "/variables/variables.data-00000-of-00001").c_str(), 0), 0);
  const auto thrown = thrown_by([&] { converter.convert(); });
  EXPECT_EQ(thrown.code == ErrorCode::kIo, true) << thrown.message;
}

using CutOffDeathTest = CutOff;

/// What is not ours is passed to the earlier handler of the signal.
TEST_F(CutOffDeathTest, MappingsOfOthersAreNotTouched) {
  const Model model = Model::load(path_);
  const std::string other = folder_.path() + "/other";
  std::ofstream(other) << std::string(10'000, 'x');
  // By the signal, or by a sanitizer that reports it; reading zeros would end it with 0.
  EXPECT_EXIT(
      {
        const int file = open(other.c_str(), O_RDONLY);
        const auto* data = static_cast<const volatile char*>(mmap(nullptr, 10'000, PROT_READ, MAP_PRIVATE, file, 0));
        if (truncate(other.c_str(), 0) == 0) std::exit(data[9'000] == '?' ? 1 : 0);
      },
      [](int status) { return status != 0; }, "");
}

}  // namespace
}  // namespace leadline::faults
