// SPDX-License-Identifier: Apache-2.0
#include "exercise.h"

#include <fmt/format.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "fill.h"
#include "guarded_heap.h"
#include "heap.h"
#include "leadline/calibration.h"
#include "leadline/debugger.h"
#include "leadline/interpreter.h"
#include "leadline/model.h"
#include "leadline/quantizer.h"
#include "leadline/work_limit.h"
#include "random.h"

namespace leadline::fuzz {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// What must not be: goes into the verdict.
struct Problem {
  std::string text;
};

template <typename T>
std::string first_float_difference(const TensorMemory& a, const TensorMemory& b) {
  for (int64_t at = 0; at + static_cast<int64_t>(sizeof(T)) <= a.bytes; at += sizeof(T)) {
    T x{};
    T y{};
    std::memcpy(&x, a.data + at, sizeof(T));
    std::memcpy(&y, b.data + at, sizeof(T));
    if (std::isnan(x) && std::isnan(y)) continue;
    if (std::memcmp(&x, &y, sizeof(T)) != 0) return fmt::format("byte {}: {} and {}", at, x, y);
  }
  return {};
}

/// Empty: the same bytes. A NaN is a NaN, whatever its payload: which operand it comes from is the CPU's choice.
std::string first_difference(const TensorMemory& a, const TensorMemory& b) {
  if (a.bytes == 0 || std::memcmp(a.data, b.data, static_cast<size_t>(a.bytes)) == 0) return {};
  if (a.dtype == DType::kFloat32 || a.dtype == DType::kComplex64) return first_float_difference<float>(a, b);
  if (a.dtype == DType::kFloat64 || a.dtype == DType::kComplex128) return first_float_difference<double>(a, b);
  const bool half = a.dtype == DType::kFloat16 || a.dtype == DType::kBFloat16;
  for (int64_t at = 0; at < a.bytes; ++at) {
    if (a.data[at] == b.data[at]) continue;
    const auto high = static_cast<int>(a.data[at | 1]) & static_cast<int>(b.data[at | 1]) & 0x7F;
    if (half && high >= (a.dtype == DType::kFloat16 ? 0x7C : 0x7F)) continue;
    return fmt::format("byte {}: {} and {}", at, static_cast<int>(a.data[at]), static_cast<int>(b.data[at]));
  }
  return {};
}

class Exercise {
 public:
  Exercise(std::span<const std::byte> file, uint64_t seed, const ExerciseOptions& options, volatile Stage& now)
      : file_(file), random_(seed, 0xE7E), options_(options), now_(now) {}

  Verdict run() {
    const int64_t accounted = accounted_bytes();
    auto budget = Budget::with_limit(options_.budget_bytes);
    reset_heap_peak();
    guarded([&] {
      const WorkLimit limit([this] { check_time(); });
      whole(budget);
    });
    if (!verdict_.problem.empty()) return verdict_;
    guarded([&] {
      enter(Stage::kRelease);
      if (budget->used() != 0) throw Problem{fmt::format("accounting: {} bytes are still charged", budget->used())};
      if (budget->peak() > options_.budget_bytes)
        throw Problem{fmt::format("budget: {} bytes were charged", budget->peak())};
      budget.reset();
      if (accounted_bytes() != accounted)
        throw Problem{fmt::format("accounting: accounted_bytes is {}, was {}", accounted_bytes(), accounted)};
      const int64_t heap = heap_peak();
      if (heap > options_.budget_bytes + options_.heap_bytes)
        throw Problem{fmt::format("memory: the heap grew by {} bytes", heap)};
      enter(Stage::kDone);
    });
    return verdict_;
  }

 private:
  void enter(Stage stage) {
    const double time = cpu_seconds();
    if (stage_ != Stage::kMutate && time - started_ > options_.slow_seconds && verdict_.problem.empty()) {
      verdict_.stage = stage_;
      verdict_.problem = fmt::format("slow: {:.1f} s in {}", time - started_, stage_name(stage_));
    }
    if (options_.verbose) {
      fmt::print("  {:8.3f} s  {}\n", time - (stage_ == Stage::kMutate ? time : started_), stage_name(stage));
      std::fflush(stdout);
    }
    stage_ = stage;
    started_ = time;
    now_ = stage;
  }

  /// Runs `body`; an Error is an answer, anything else a finding.
  template <typename Body>
  bool guarded(const Body& body) {
    try {
      body();
      return true;
    } catch (const Error& error) {
      if (options_.verbose) fmt::print("  Error: {}\n", error.what());
      if (error.code() == ErrorCode::kInternal) note(fmt::format("internal: {}", error.what()));
    } catch (const Problem& problem) {
      note(problem.text);
    } catch (const std::exception& error) {
      note(fmt::format("exception: {}", error.what()));
    } catch (...) {
      note("exception: not a std::exception");
    }
    enter(stage_);
    return false;
  }
  void note(const std::string& text) {
    if (!verdict_.problem.empty()) return;
    verdict_.problem = text;
    verdict_.stage = stage_;
  }

  /// Asked while the library works: every stage has its time.
  void check_time() const {
    if (cpu_seconds() - started_ > options_.run_seconds) {
      throw Error(ErrorCode::kCancelled, fmt::format("the time of this stage ({}) is over", stage_name(stage_)));
    }
  }

  /// Faults to be found.
  void plant() {
    if (options_.plant == 0 || !random_.once_in(static_cast<size_t>(options_.plant))) return;
    switch (random_.below(4)) {
      case 0:
        raise(SIGSEGV);
        break;
      case 1:
        throw 1;
      case 2:
        throw Error(ErrorCode::kInternal, "planted");
      default:
        for (volatile int i = 0;;) {
          i = i + 1;
        }
    }
  }

  void whole(const std::shared_ptr<Budget>& budget) {
    std::unique_ptr<Model> model;
    const bool loaded = guarded([&] {
      enter(Stage::kLoad);
      model = std::make_unique<Model>(
          Model::from_bytes(file_, std::shared_ptr<const void>(std::shared_ptr<void>(), file_.data()), budget));
    });
    if (!loaded) return refuse(Stage::kLoad);
    guarded([&] { describe(*model); });
    guarded([&] { plant(); });
    if (random_.once_in(8)) guarded([&] { save(*model, budget); });
    if (random_.once_in(8)) guarded([&] { plan_only(*model); });
    const bool ran = guarded([&] { use(*model); });
    if (!ran) refuse(stage_);
    if (!verdict_.problem.empty()) return;
    // What follows runs the model many times more.
    if (run_time_ > options_.run_seconds / 8) return;
    if (random_.once_in(12)) guarded([&] { quantize(*model, budget); });
  }
  void refuse(Stage stage) {
    if (verdict_.refused == Stage::kDone) verdict_.refused = stage;
  }

  void describe(const Model& model) {
    enter(Stage::kDescribe);
    size_t sum = model.description().size();
    for (int s = 0; s < model.subgraph_count(); ++s) {
      const SubgraphInfo info = model.subgraph(s);
      for (const NodeInfo& node : info.nodes) {
        sum += node.attributes.size();
        const std::string& op = node.op;
        for (const char* word : {"RANDOM", "MULTINOMIAL", "RNG"}) random_results_ |= op.find(word) != std::string::npos;
      }
      for (const TensorInfo& tensor : info.tensors) {
        if (!tensor.sparse) continue;
        const auto sparsity = model.sparsity(s, tensor.index);
        sum += sparsity ? sparsity->dimensions.size() : 0;
      }
    }
    sum += model.signatures().size() + model.metadata().size() + model.missing_ops().size();
    if (random_.once_in(4)) sum += model.to_text().size();
    seen_ = seen_ + sum;
  }

  /// What was loaded can be written, read again, and is then written the same way.
  void save(const Model& model, const std::shared_ptr<Budget>& budget) {
    enter(Stage::kSave);
    const std::vector<std::byte> first = model.to_tflite();
    try {
      const Model again = Model::from_bytes(first, nullptr, budget);
      if (again.to_tflite() != first) throw Problem{"roundtrip: a saved model is saved differently"};
    } catch (const BudgetError&) {
      throw;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kCancelled) throw;
      throw Problem{fmt::format("roundtrip: a saved model is refused: {}", error.what())};
    }
  }

  void plan_only(const Model& model) {
    enter(Stage::kPlan);
    InterpreterOptions options;
    options.plan_only = true;
    const Interpreter interpreter(model, options);
    report(interpreter.plan());
  }

  void report(const Plan& plan) {
    enter(Stage::kReport);
    for (const char c : plan.to_text()) {
      const auto byte = static_cast<unsigned char>(c);
      if ((byte < 0x20 && c != '\n') || byte == 0x7F)
        throw Problem{"output: the text of a plan has control characters"};
    }
    if (!nlohmann::json::accept(plan.to_json())) throw Problem{"output: the JSON of a plan is none"};
    for (const std::string& page : {plan.to_html("a & b"), plan.to_notebook_html("a & b")}) {
      if (page.find("<script>alert(1)") != std::string::npos || page.find("<img src=x") != std::string::npos) {
        throw Problem{"output: a name is part of the page's HTML"};
      }
    }
  }

  InterpreterOptions any_options(const Model& model) {
    InterpreterOptions options;
    if (model.subgraph_count() > 1 && random_.once_in(4))
      options.subgraph = static_cast<int>(random_.below(static_cast<size_t>(model.subgraph_count())));
    options.num_threads = random_.once_in(16) ? 2 : 1;
    options.preserve_all_tensors = random_.once_in(8);
    options.winograd = !random_.once_in(8);
    options.max_loop_rounds = random_.once_in(8) ? 100'000'000 : 1000;
    return options;
  }

  void use(const Model& model) {
    enter(Stage::kPlan);
    InterpreterOptions options = any_options(model);
    Interpreter interpreter(model, options);
    if (random_.once_in(8)) report(interpreter.plan());
    enter(Stage::kAllocate);
    interpreter.allocate();
    enter(Stage::kRun);
    const uint64_t inputs_seed = random_.next();
    fill_inputs(interpreter, Random(inputs_seed));
    const double start = cpu_seconds();
    interpreter.invoke();
    run_time_ = cpu_seconds() - start;
    read_outputs(interpreter);
    if (interpreter.counted_peak_bytes() != interpreter.plan().peak_bytes) {
      throw Problem{fmt::format("accounting: {} bytes were counted, {} planned", interpreter.counted_peak_bytes(),
                                interpreter.plan().peak_bytes)};
    }
    if (!random_results_ && random_.once_in(8)) compare(interpreter, model, options, inputs_seed);
    if (random_.once_in(4)) {
      enter(Stage::kRunAgain);
      if (random_.once_in(2)) interpreter.reset_variables();
      interpreter.enable_profile(random_.once_in(4));
      fill_inputs(interpreter, Random(random_.next()));
      guarded([&] {
        interpreter.invoke();
        read_outputs(interpreter);
      });
    }
    if (random_.once_in(3)) guarded([&] { resize(interpreter); });
  }

  void resize(Interpreter& interpreter) {
    enter(Stage::kResize);
    if (interpreter.inputs().empty()) return;
    const int index = random_.pick(interpreter.inputs());
    const Shape shape = odd_shape(interpreter.tensor_info(index).shape, random_);
    interpreter.resize_input(index, shape, random_.once_in(8));
    interpreter.allocate();
    fill_inputs(interpreter, Random(random_.next()));
    interpreter.invoke();
    read_outputs(interpreter);
  }

  void read_outputs(Interpreter& interpreter) {
    for (const int index : interpreter.outputs()) {
      const TensorMemory memory = interpreter.tensor(index);
      size_t sum = 0;
      for (int64_t i = 0; i < memory.bytes; ++i) sum += static_cast<size_t>(memory.data[i]);
      seen_ = seen_ + sum;
    }
    if (!interpreter.options().preserve_all_tensors) return;
    for (int i = 0; i < interpreter.tensor_count(); ++i) {
      try {
        const TensorMemory memory = interpreter.tensor(i);
        if (memory.bytes > 0)
          seen_ = seen_ + static_cast<size_t>(memory.data[0]) + static_cast<size_t>(memory.data[memory.bytes - 1]);
      } catch (const Error&) {
        seen_ = seen_ + 1;
      }
    }
  }

  /// Another interpreter, with another number of threads and its memory elsewhere, computes the same bytes. (Keeping
  /// all tensors may choose other kernels, whose sums round differently.)
  void compare(const Interpreter& first, const Model& model, InterpreterOptions options, uint64_t inputs_seed) {
    enter(Stage::kCompare);
    if (run_time_ > options_.run_seconds / 8) return;
    options.num_threads = options.num_threads == 1 ? 2 : 1;
    Interpreter second(model, options);
    try {
      second.allocate();
      fill_inputs(second, Random(inputs_seed));
      second.invoke();
    } catch (const BudgetError&) {
      return;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kCancelled) return;
      throw Problem{fmt::format("differs: the second run is refused: {}", error.what())};
    }
    for (size_t i = 0; i < first.outputs().size(); ++i) {
      const TensorMemory a = first.tensor(first.outputs()[i]);
      const TensorMemory b = second.tensor(second.outputs()[i]);
      if (a.bytes != b.bytes || a.shape != b.shape) throw Problem{"differs: a second run gives another shape"};
      const std::string difference = first_difference(a, b);
      if (difference.empty()) continue;
      throw Problem{fmt::format("differs: another interpreter computes other values: output {}, {} threads, {}", i,
                                options.num_threads, difference)};
    }
    verdict_.compared = true;
  }

  void quantize(const Model& model, const std::shared_ptr<Budget>& budget) {
    enter(Stage::kQuantize);
    QuantizeOptions options;
    options.mode = random_.pick({QuantizationMode::kDynamicRange, QuantizationMode::kDynamicRange,
                                 QuantizationMode::kInt8, QuantizationMode::kInt16x8, QuantizationMode::kFloat16,
                                 QuantizationMode::kWeightOnlyInt8, QuantizationMode::kWeightOnlyInt4});
    options.min_weight_elements = random_.once_in(2) ? 1 : 1024;
    options.equalize = random_.once_in(4);
    options.budget = budget;
    const Quantizer quantizer(model, options);
    Calibration calibration;
    const Calibration* used = nullptr;
    if (options.mode == QuantizationMode::kInt8 || options.mode == QuantizationMode::kInt16x8) {
      enter(Stage::kCalibrate);
      Calibrator calibrator(quantizer.model(), {.budget = budget});
      calibrator.interpreter().allocate();
      fill_inputs(calibrator.interpreter(), Random(random_.next()));
      calibrator.add_sample();
      calibration = calibrator.calibration();
      used = &calibration;
    }
    enter(Stage::kQuantize);
    const Model quantized = quantizer.quantize_to_model(used);
    verdict_.quantized = true;
    InterpreterOptions run_options;
    run_options.budget = budget;
    Interpreter interpreter(quantized, run_options);
    interpreter.allocate();
    fill_inputs(interpreter, Random(random_.next()));
    interpreter.invoke();
    read_outputs(interpreter);
    if (!random_.once_in(3)) return;
    enter(Stage::kDebug);
    QuantizationDebugger debugger(quantizer.model(), quantized, {.budget = budget});
    debugger.interpreter().allocate();
    fill_inputs(debugger.interpreter(), Random(random_.next()));
    debugger.add_sample();
    seen_ = seen_ + debugger.result().layers.size();
    verdict_.debugged = true;
  }

  std::span<const std::byte> file_;
  Random random_;
  const ExerciseOptions& options_;
  volatile Stage& now_;
  Stage stage_ = Stage::kMutate;
  double started_ = 0.0;
  double run_time_ = 0.0;
  bool random_results_ = false;
  volatile size_t seen_ = 0;
  Verdict verdict_;
};

}  // namespace

const char* stage_name(Stage stage) {
  static constexpr const char* kNames[] = {"mutate",    "load",  "describe",  "save",    "plan",   "report",
                                           "allocate",  "run",   "run again", "compare", "resize", "quantize",
                                           "calibrate", "debug", "release",   "done"};
  const auto index = static_cast<int>(stage);
  return index >= 0 && index < kStageCount ? kNames[index] : "unknown";
}

Verdict exercise(std::span<const std::byte> file, uint64_t seed, const ExerciseOptions& options, volatile Stage& now) {
  guard_heap(options.guard && seed % 3 == 0);  // it takes most of the time
  // A copy of exactly its size, guarded like all other memory.
  const std::vector<std::byte> own(file.begin(), file.end());
  const Verdict verdict = Exercise(own, seed, options, now).run();
  guard_heap(false);
  return verdict;
}

}  // namespace leadline::fuzz
