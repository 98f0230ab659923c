// SPDX-License-Identifier: Apache-2.0
// Every system call of the file layer refused, cut short or interrupted in turn, and threads that cannot be started.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "core/cgroup.h"
#include "core/thread_pool.h"
#include "import/saved_model/files_testing.h"
#include "io/output_file.h"
#include "io/zip.h"
#include "leadline/budget.h"
#include "leadline/converter.h"
#include "leadline/interpreter.h"
#include "leadline/recipe.h"
#include "tests/faults/models.h"
#include "tests/faults/sweep.h"

namespace leadline::faults {
namespace {

using saved_model::testing::TempDirectory;

std::string text_of(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

TEST(SystemFaults, LoadAndRun) {
  const TempDirectory folder;
  folder.write("model.tflite", text_of(float_model()));
  const std::string path = folder.path() + "/model.tflite";
  const auto budget = Budget::with_limit(1 << 26);
  sweep_system(
      "load and run",
      [&] {
        const Model model = attempt("load", [&] { return Model::load(path, budget); });
        // Whatever else the system refuses (threads, advice about pages) must not matter.
        InterpreterOptions options;
        options.num_threads = 3;
        Interpreter interpreter(model, options);
        interpreter.invoke();
        const TensorMemory memory = interpreter.tensor(interpreter.outputs()[0]);
        return std::string(reinterpret_cast<const char*>(memory.data), static_cast<size_t>(memory.bytes));
      },
      folder.path(), path);
}

/// Without the limits of the machine a budget is only larger.
TEST(SystemFaults, LimitsThatCannotBeReadAreNone) {
  const TempDirectory folder;
  sweep_system(
      "limits of the machine",
      [&] {
        const MemoryLimits limits = read_memory_limits();
        EXPECT_GE(limits.available(), 0);
        EXPECT_GE(usable_cpus(), 1);
        EXPECT_GT(Budget::machine_default()->limit(), 0);
        return std::string("always");
      },
      folder.path(), "");
}

TEST(SystemFaults, OutputFilesAppearWholeOrNotAtAll) {
  const TempDirectory folder;
  const std::string path = folder.path() + "/result.bin";
  const std::string piece(100'000, 'x');
  sweep_system(
      "write a file",
      [&] {
        attempt("OutputFile", [&] {
          OutputFile file(path);
          for (int i = 0; i < 3; ++i) file.write(piece);
          file.finish();
        });
        return std::string();
      },
      folder.path(), path);
}

TEST(SystemFaults, InputFiles) {
  const TempDirectory folder;
  folder.write("some bytes", "0123456789");
  const std::string path = folder.path() + "/some bytes";
  sweep_system(
      "read a file",
      [&] {
        return attempt("InputFile", [&] {
          const InputFile file(path);
          std::string text(8, '\0');
          file.read_at(2, std::as_writable_bytes(std::span(text)));
          return text;
        });
      },
      folder.path(), path);
}

TEST(SystemFaults, ConvertKeras) {
  const TempDirectory folder;
  folder.write("model.keras", keras_file(true));
  const std::string target = folder.path() + "/model.tflite";
  const auto budget = Budget::with_limit(1 << 26);
  sweep_system(
      "convert .keras",
      [&] {
        const Converter converter =
            attempt("from_keras", [&] { return Converter::from_keras(folder.path() + "/model.keras", budget); });
        attempt("convert_to", [&] { converter.convert_to(target); });
        return attempt("load", [&] { return text_of(Model::load(target, budget).to_tflite()); });
      },
      folder.path(), folder.path() + "/model.");
}

TEST(SystemFaults, ConvertSavedModel) {
  const TempDirectory folder;
  const std::string path = folder.path() + "/saved";
  write_saved_model(path);
  const std::string target = folder.path() + "/saved.tflite";
  const auto budget = Budget::with_limit(1 << 26);
  sweep_system(
      "convert SavedModel",
      [&] {
        const Converter converter =
            attempt("from_saved_model", [&] { return Converter::from_saved_model(path, {}, {}, budget); });
        attempt("convert_to", [&] { converter.convert_to(target); });
        return converter.to_text();
      },
      folder.path(), path);
}

TEST(SystemFaults, Recipes) {
  const TempDirectory folder;
  folder.write("recipe.json", R"([{"op": "CONV_2D", "mode": "int8"}])");
  const std::string path = folder.path() + "/recipe.json";
  sweep_system(
      "load a recipe",
      [&] { return std::to_string(attempt("load_recipe", [&] { return load_recipe(path); }).rules.size()); },
      folder.path(), path);
}

/// The split into parts is the caller's; who runs them is not.
TEST(SystemFaults, FewerThreadsGiveTheSameResult) {
  for (int64_t refused = 1; refused <= 3; ++refused) {
    arm_system(refused, Extent::kOnwards, SystemFault::kRefuse);
    ThreadPool pool(4);
    disarm_system();
    std::vector<int> parts(1000, 0);
    pool.for_pieces(1000, kWholePiece, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) parts[static_cast<size_t>(i)] = static_cast<int>(end - begin);
    });
    EXPECT_EQ(parts, std::vector<int>(1000, 250)) << refused;
  }
}

}  // namespace
}  // namespace leadline::faults
