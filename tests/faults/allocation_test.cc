// SPDX-License-Identifier: Apache-2.0
// Every allocation of every job refused in turn: an Error each time, nothing lost, and the next try succeeds.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "import/saved_model/files_testing.h"
#include "leadline/converter.h"
#include "leadline/custom_op.h"
#include "leadline/debugger.h"
#include "leadline/interpreter.h"
#include "leadline/model_builder.h"
#include "leadline/quantizer.h"
#include "ops/string_testing.h"
#include "tests/faults/models.h"
#include "tests/faults/sweep.h"

namespace leadline::faults {
namespace {

using saved_model::testing::TempDirectory;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

template <typename T>
std::string pack(std::initializer_list<T> values) {
  std::string text(values.size() * sizeof(T), '\0');
  std::memcpy(text.data(), std::data(values), text.size());
  return text;
}

std::string ramp(size_t count) {
  std::string text(count * sizeof(float), '\0');
  for (size_t i = 0; i < count; ++i) {
    const float value = static_cast<float>(i % 13) / 6.0F - 1.0F;
    std::memcpy(text.data() + i * sizeof(float), &value, sizeof(float));
  }
  return text;
}

void set(Interpreter& interpreter, int tensor, const std::string& values) {
  attempt("set_tensor", [&] { interpreter.set_tensor(tensor, bytes_of(values)); });
}

std::string get(const Interpreter& interpreter, int tensor) {
  const TensorMemory memory = attempt("tensor", [&] { return interpreter.tensor(tensor); });
  return own(
      [&] { return std::string(reinterpret_cast<const char*>(memory.data), static_cast<size_t>(memory.bytes)); });
}

void invoke(Interpreter& interpreter) {
  attempt("invoke", [&] { interpreter.invoke(); });
}

Model from(const Bytes& file) {
  return attempt("from_bytes", [&] { return Model::from_bytes(file); });
}

Interpreter interpreter_of(const Model& model, int threads = 1) {
  InterpreterOptions options;
  options.num_threads = threads;
  return attempt("Interpreter", [&] { return Interpreter(model, options); });
}

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string all;
  for (const std::string_view part : parts) all += part;
  return all;
}

TEST(AllocationFaults, LoadInspectPlanAllocateRunResizeSave) {
  const TempDirectory folder;
  const std::string path = folder.path() + "/a model with a long name.tflite";
  const Bytes file = float_model();
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(file.data()), std::ssize(file));
  const std::string x = ramp(72);
  const std::string two = ramp(144);
  sweep_allocations("load, inspect, plan, run, resize, save", [&] {
    const Model model = attempt("load", [&] { return Model::load(path); });
    const SubgraphInfo inspected = attempt("subgraph", [&] { return model.subgraph(0); });
    attempt("signatures", [&] { return model.signatures(); });
    attempt("metadata", [&] { return model.metadata(); });
    attempt("missing_ops", [&] { return model.missing_ops(); });
    const std::string text = attempt("to_text", [&] { return model.to_text(); });
    Interpreter interpreter = interpreter_of(model);
    const Plan plan = attempt("plan", [&] { return interpreter.plan(); });
    attempt("allocate", [&] { interpreter.allocate(); });
    attempt("enable_profile", [&] { interpreter.enable_profile(true); });
    attempt("tensor_info", [&] { return interpreter.tensor_info(0); });
    set(interpreter, interpreter.inputs()[0], x);
    invoke(interpreter);
    const std::string first = get(interpreter, interpreter.outputs()[0]);
    attempt("profile", [&] { return interpreter.profile(); });
    attempt("resize", [&] { interpreter.resize_input(interpreter.inputs()[0], {2, 6, 6, 2}); });
    const Plan larger = attempt("plan", [&] { return interpreter.plan(); });
    set(interpreter, interpreter.inputs()[0], two);
    invoke(interpreter);
    EXPECT_EQ(interpreter.counted_peak_bytes(), larger.peak_bytes);
    const std::string second = get(interpreter, interpreter.outputs()[0]);
    const Bytes saved = attempt("to_tflite", [&] { return model.to_tflite(); });
    return own([&] {
      return joined({text, first, second, std::to_string(plan.peak_bytes + larger.peak_bytes),
                     std::string_view(reinterpret_cast<const char*>(saved.data()), saved.size())});
    });
  });
}

TEST(AllocationFaults, Reports) {
  const Bytes file = float_model();
  const Model model = Model::from_bytes(file);
  const Plan plan = Interpreter(model).plan();
  sweep_allocations("reports of a plan", [&] {
    const std::string text = attempt_value([&] { return plan.to_text(); });
    const std::string json = attempt_value([&] { return plan.to_json(); });
    const std::string html = attempt_value([&] { return plan.to_html("model"); });
    return own([&] { return text + json + html; });
  });
}

TEST(AllocationFaults, SeveralThreads) {
  const Bytes file = wide_model();
  const std::string x = ramp(24 * 24 * 16);
  sweep_allocations("two threads", [&] {
    const Model model = from(file);
    Interpreter interpreter = interpreter_of(model, 2);
    set(interpreter, interpreter.inputs()[0], x);
    invoke(interpreter);
    return get(interpreter, interpreter.outputs()[0]);
  });
}

TEST(AllocationFaults, StringsAndTables) {
  const Bytes file = string_model();
  const std::string x = pack<int64_t>({2, 7});
  const std::string other = pack<int64_t>({1, 2});
  const auto texts = ops::string_buffer({"a", "another text that is too long for a small one"});
  const std::string text(reinterpret_cast<const char*>(texts.data()), texts.size());
  sweep_allocations("strings and tables", [&] {
    const Model model = from(file);
    Interpreter interpreter = interpreter_of(model);
    set(interpreter, interpreter.inputs()[0], x);
    set(interpreter, interpreter.inputs()[1], text);
    invoke(interpreter);
    const std::string first = get(interpreter, interpreter.outputs()[0]);
    const std::string sliced = get(interpreter, interpreter.outputs()[1]);
    attempt("reset_variables", [&] { interpreter.reset_variables(); });
    set(interpreter, interpreter.inputs()[0], other);
    invoke(interpreter);
    const std::string second = get(interpreter, interpreter.outputs()[0]);
    return own([&] { return first + sliced + second; });
  });
}

TEST(AllocationFaults, ControlFlow) {
  const Bytes file = control_flow_model();
  const std::string one = pack<int32_t>({1});
  const std::string x = pack<float>({-1, 2});
  const std::string yes(1, '\1');
  const std::string no(1, '\0');
  sweep_allocations("IF and WHILE", [&] {
    const Model model = from(file);
    Interpreter interpreter = interpreter_of(model);
    set(interpreter, 0, one);
    set(interpreter, 1, x);
    set(interpreter, 2, yes);
    invoke(interpreter);
    const std::string first = get(interpreter, interpreter.outputs()[0]);
    set(interpreter, 2, no);
    invoke(interpreter);
    const std::string second = get(interpreter, interpreter.outputs()[0]);
    EXPECT_EQ(interpreter.counted_peak_bytes(), attempt("plan", [&] { return interpreter.plan(); }).peak_bytes);
    return own([&] { return first + second; });
  });
}

TEST(AllocationFaults, ShapesThatOnlyARunTells) {
  const Bytes file = data_dependent_model();
  const std::string three("\1\0\1\1", 4);
  const std::string one("\0\0\1\0", 4);
  sweep_allocations("shapes from data", [&] {
    const Model model = from(file);
    Interpreter interpreter = interpreter_of(model);
    set(interpreter, interpreter.inputs()[0], three);
    invoke(interpreter);
    const std::string first = get(interpreter, interpreter.outputs()[0]);
    set(interpreter, interpreter.inputs()[0], one);
    invoke(interpreter);
    const std::string second = get(interpreter, interpreter.outputs()[0]);
    return own([&] { return first + second; });
  });
}

TEST(AllocationFaults, Variables) {
  const Bytes file = stateful_model();
  const std::string x = pack<float>({1, 10});
  sweep_allocations("variables", [&] {
    const Model model = from(file);
    Interpreter interpreter = interpreter_of(model);
    set(interpreter, interpreter.inputs()[0], x);
    // A run that fails may have assigned before: the state is set again.
    const auto twice = [&] {
      interpreter.invoke();
      interpreter.invoke();
    };
    attempt("invoke", twice, [&] { interpreter.reset_variables(); });
    return get(interpreter, interpreter.outputs()[0]);
  });
}

class Twice final : public CustomOp {
 public:
  void infer(InferCall& call) override {
    call.set_output_shape(0, call.input(0).shape);
    call.request_scratch(256);
    call.request_persistent(64);
  }
  void run(RunCall& call) override {
    const std::vector<float> copy(call.input(0).values<float>().begin(), call.input(0).values<float>().end());
    const auto y = call.output(0).memory<float>();
    for (size_t i = 0; i < copy.size(); ++i) y[i] = 2.0F * copy[i];
  }
};

TEST(AllocationFaults, OpsOfUsers) {
  const Bytes file = custom_model();
  const std::string x = pack<float>({1, -2, 3, -4});
  const std::string name = "Twice";
  sweep_allocations("ops of users", [&] {
    attempt("register_op", [&] { register_op<Twice>(name); });
    const Model model = from(file);
    Interpreter interpreter = interpreter_of(model);
    set(interpreter, interpreter.inputs()[0], x);
    invoke(interpreter);
    std::string result = get(interpreter, interpreter.outputs()[0]);
    unregister_op(name);
    return result;
  });
}

std::string converted(const Converter& converter, const std::string& target) {
  attempt("Converter::plan", [&] { return converter.plan(); });
  const Bytes file = attempt("convert", [&] { return converter.convert(); });
  const Model model = attempt("convert_to_model", [&] { return converter.convert_to_model(); });
  attempt("convert_to", [&] { converter.convert_to(target); });
  const std::string text = attempt("to_text", [&] { return model.to_text(); });
  return own([&] { return text + std::string(reinterpret_cast<const char*>(file.data()), file.size()); });
}

void sweep_keras(const char* name, const std::string& file_name, const std::string& contents) {
  const TempDirectory folder;
  folder.write(file_name, contents);
  const std::string path = folder.path() + "/" + file_name;
  const std::string target = folder.path() + "/converted to something.tflite";
  sweep_allocations(
      name,
      [&] {
        const Converter converter = attempt("from_keras", [&] { return Converter::from_keras(path); });
        return converted(converter, target);
      },
      folder.path());
}

TEST(AllocationFaults, ConvertKeras) { sweep_keras("convert .keras", "a_model.keras", keras_file(false)); }
TEST(AllocationFaults, ConvertDeflatedKeras) {
  sweep_keras("convert .keras, deflated", "a_model.keras", keras_file(true));
}
TEST(AllocationFaults, ConvertH5) { sweep_keras("convert .h5", "a_model.h5", keras_h5_file()); }

TEST(AllocationFaults, ConvertSavedModel) {
  const TempDirectory folder;
  const std::string path = folder.path() + "/saved model in a folder";
  write_saved_model(path);
  const std::string target = folder.path() + "/converted to something.tflite";
  sweep_allocations(
      "convert SavedModel",
      [&] {
        const Converter converter = attempt("from_saved_model", [&] { return Converter::from_saved_model(path); });
        return converted(converter, target);
      },
      folder.path());
}

TEST(AllocationFaults, Calibrate) {
  const Bytes file = float_model();
  const std::string x = ramp(72);
  sweep_allocations("calibrate", [&] {
    const Model model = from(file);
    Calibrator calibrator = attempt("Calibrator", [&] { return Calibrator(model); });
    for (int i = 0; i < 2; ++i) {
      Interpreter& interpreter = *attempt("interpreter", [&] { return &calibrator.interpreter(); });
      set(interpreter, interpreter.inputs()[0], x);
      attempt("add_sample", [&] { calibrator.add_sample(); });
    }
    Calibration calibration = attempt("calibration", [&] { return calibrator.calibration(); });
    const Bytes stored = attempt("to_bytes", [&] { return calibration.to_bytes(); });
    const Calibration again = attempt("from_bytes", [&] { return Calibration::from_bytes(stored); });
    attempt("merge", [&] { calibration.merge(again); });
    const Bytes merged = attempt("to_bytes", [&] { return calibration.to_bytes(); });
    return own([&] { return std::string(reinterpret_cast<const char*>(merged.data()), merged.size()); });
  });
}

struct Samples {
  Bytes file = float_model();
  std::string x = ramp(72);
  Model model = Model::from_bytes(file);
  Calibration calibration = [&] {
    Calibrator calibrator(model);
    calibrator.interpreter().set_tensor(model.subgraph(0).inputs[0], bytes_of(x));
    calibrator.add_sample();
    return calibrator.calibration();
  }();
};

void sweep_quantizer(const char* name, QuantizationMode mode) {
  const Samples samples;
  const bool integers = mode == QuantizationMode::kInt8 || mode == QuantizationMode::kInt16x8;
  QuantizeOptions options;
  options.mode = mode;
  options.min_weight_elements = 1;
  options.equalize = mode == QuantizationMode::kInt8;
  const Quantizer rehearsal(samples.model, options);
  Calibrator calibrator(rehearsal.model());
  calibrator.interpreter().set_tensor(samples.model.subgraph(0).inputs[0], bytes_of(samples.x));
  calibrator.add_sample();
  const Calibration calibration = calibrator.calibration();
  const Calibration* const given = integers ? &calibration : nullptr;
  sweep_allocations(name, [&] {
    const Quantizer quantizer = attempt("Quantizer", [&] { return Quantizer(samples.model, options); });
    attempt("nodes", [&] { return quantizer.nodes(); });
    attempt("plan", [&] { return quantizer.plan(given); });
    const Bytes file = attempt("quantize", [&] { return quantizer.quantize(given); });
    const Model model = attempt("quantize_to_model", [&] { return quantizer.quantize_to_model(given); });
    Interpreter interpreter = interpreter_of(model);
    set(interpreter, interpreter.inputs()[0], samples.x);
    invoke(interpreter);
    const std::string result = get(interpreter, interpreter.outputs()[0]);
    return own([&] { return result + std::string(reinterpret_cast<const char*>(file.data()), file.size()); });
  });
}

TEST(AllocationFaults, QuantizeDynamicRange) { sweep_quantizer("dynamic range", QuantizationMode::kDynamicRange); }
TEST(AllocationFaults, QuantizeFloat16) { sweep_quantizer("float16", QuantizationMode::kFloat16); }
TEST(AllocationFaults, QuantizeInt8) { sweep_quantizer("int8", QuantizationMode::kInt8); }
TEST(AllocationFaults, QuantizeInt16x8) { sweep_quantizer("16x8", QuantizationMode::kInt16x8); }

TEST(AllocationFaults, Debug) {
  const Samples samples;
  QuantizeOptions options;
  options.mode = QuantizationMode::kInt8;
  const Quantizer quantizer(samples.model, options);
  const Model quantized = quantizer.quantize_to_model(&samples.calibration);
  sweep_allocations("debug", [&] {
    QuantizationDebugger debugger =
        attempt("QuantizationDebugger", [&] { return QuantizationDebugger(samples.model, quantized); });
    Interpreter& interpreter = debugger.interpreter();
    set(interpreter, interpreter.inputs()[0], samples.x);
    attempt("add_sample", [&] { debugger.add_sample(); }, [&] { debugger.clear(); });
    const DebugResult result = attempt("result", [&] { return debugger.result(); });
    return attempt_value([&] { return result.to_text(); });
  });
  QuantizationDebugger debugger(samples.model, quantized);
  debugger.interpreter().set_tensor(debugger.interpreter().inputs()[0], bytes_of(samples.x));
  debugger.add_sample();
  const DebugResult result = debugger.result();
  sweep_allocations("reports of debugging", [&] {
    const std::string json = attempt_value([&] { return result.to_json(); });
    const std::string csv = attempt_value([&] { return result.to_csv(); });
    return own([&] { return json + csv; });
  });
}

TEST(AllocationFaults, BuildModels) {
  const std::string weights = ramp(8);
  TensorInfo x;
  x.name = "a name that is not short at all";
  x.shape = {1, 4};
  TensorInfo w;
  w.name = "weights with a name that is not short";
  w.shape = {2, 4};
  TensorInfo y;
  y.name = "y";
  y.shape = {1, 2};
  NodeSpec spec{.op = "FULLY_CONNECTED", .inputs = {0, 1}, .outputs = {2}};
  sweep_allocations("build a model", [&] {
    ModelBuilder builder = attempt("ModelBuilder", [&] { return ModelBuilder(); });
    attempt("add_tensor", [&] { return builder.add_tensor(0, x); });
    attempt("add_constant", [&] { return builder.add_constant(0, w, bytes_of(weights)); });
    attempt("add_tensor", [&] { return builder.add_tensor(0, y); });
    attempt("add_node", [&] { builder.add_node(0, spec); });
    attempt_value([&] { builder.set_inputs(0, {0}); });
    attempt_value([&] { builder.set_outputs(0, {2}); });
    const Bytes file = attempt("to_tflite", [&] { return builder.to_tflite(); });
    return own([&] { return std::string(reinterpret_cast<const char*>(file.data()), file.size()); });
  });
}

}  // namespace
}  // namespace leadline::faults
