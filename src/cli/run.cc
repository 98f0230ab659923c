// SPDX-License-Identifier: Apache-2.0
// `leadline run`: runs a model on data from files or on random data.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/opened_model.h"
#include "cli/printing.h"
#include "cli/profile.h"
#include "cli/summary.h"
#include "cli/tensor_io.h"
#include "core/join.h"
#include "io/npy.h"
#include "leadline/error.h"

namespace leadline::cli {
namespace {

constexpr const char* kRunExamples =
    "  leadline run model.tflite                          random inputs\n"
    "  leadline run model.tflite --input image=cat.npy --output result.npz\n"
    "  leadline run model.tflite --input inputs.npz       arrays named like the inputs\n"
    "  leadline run model.tflite --runs 50 --threads 2 --profile\n"
    "  leadline run model.tflite --memory 200MB --timeout 10 --json";

/// Whether the model leaves every size open in which `shape` differs from the input's.
bool may_become(const TensorInfo& info, const Shape& shape) {
  if (info.shape_signature.size() != static_cast<size_t>(shape.rank())) return false;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int32_t size = info.shape_signature[static_cast<size_t>(axis)];
    if (size >= 0 && size != shape[axis]) return false;
  }
  return true;
}

struct Timing {
  double load_ms = 0;
  double allocate_ms = 0;
  std::vector<double> runs_ms;

  double first() const { return runs_ms.front(); }
  double fastest() const { return *std::min_element(runs_ms.begin(), runs_ms.end()); }
  double slowest() const { return *std::max_element(runs_ms.begin(), runs_ms.end()); }
  double mean() const {
    return std::accumulate(runs_ms.begin(), runs_ms.end(), 0.0) / static_cast<double>(runs_ms.size());
  }
  double median() const {
    std::vector<double> sorted = runs_ms;
    std::sort(sorted.begin(), sorted.end());
    const size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }
};

class Run final : public Command {
 public:
  explicit Run(CLI::App& program)
      : Command(program, "run", "Run a model on data from files or on random data", kRunExamples) {
    options_.add_to(*this);
    add_timeout();
    add_option("--input", input_files_, "Data of an input, by name or position: x=x.npy; or one FILE.npz with all")
        .placeholder("INPUT=FILE")
        .repeatable();
    add_flag("--random", random_, "Fill inputs that have no file with random values (default without --input)");
    add_option("--seed", seed_, "Seed of the random numbers").show_default().placeholder("N");
    add_option("--output", output_path_, "Write the outputs to this .npz (or, for one output, .npy) file")
        .placeholder("FILE");
    add_option("--runs", runs_, "How many times to run").range(1, 1'000'000).show_default().placeholder("N");
    add_flag("--profile", profile_, "Time per op and per node");
  }

  void run() override {
    Clock::time_point start = Clock::now();
    OpenedModel opened(options_, options_.budget());
    Interpreter& interpreter = opened.interpreter();
    open_inputs(opened);
    opened.plan();  // complains about shapes in the user's terms
    timing_.load_ms = milliseconds_since(start);
    start = Clock::now();
    interpreter.allocate();
    timing_.allocate_ms = milliseconds_since(start);
    fill_inputs(opened);
    if (profile_) interpreter.enable_profile(true);
    for (int i = 0; i < runs_; ++i) {
      start = Clock::now();
      interpreter.invoke();
      timing_.runs_ms.push_back(milliseconds_since(start));
    }
    if (!output_path_.empty()) save_tensors(output_path_, opened.outputs(), interpreter);
    if (json()) {
      print_json(document(opened));
    } else {
      print_text(opened);
    }
  }

 private:
  void open_inputs(OpenedModel& opened);
  void use_array(OpenedModel& opened, size_t input, std::unique_ptr<ArrayReader> array);
  void fill_inputs(OpenedModel& opened);
  Json document(OpenedModel& opened) const;
  void print_text(OpenedModel& opened) const;

  ModelOptions options_;
  std::vector<std::string> input_files_;
  bool random_ = false;
  uint64_t seed_ = 0;
  std::string output_path_;
  int runs_ = 1;
  bool profile_ = false;

  std::vector<std::unique_ptr<ArrayReader>> arrays_;  // one for each input; null: random
  Timing timing_;
};

/// Finds out which array belongs to which input, and resizes inputs whose shape the model leaves open.
void Run::open_inputs(OpenedModel& opened) {
  arrays_.resize(opened.inputs().size());
  for (const std::string& text : input_files_) {
    std::error_code ignored;
    const bool path_alone = text.find('=') == std::string::npos || std::filesystem::exists(text, ignored);
    std::optional<size_t> input;
    std::string path = text;
    if (!path_alone) {
      auto [found, file] = opened.split_assignment(text, "--input");
      input = found;
      path = file;
    }
    std::vector<NamedArray> arrays = open_arrays(path);
    if (input || (arrays.size() == 1 && arrays[0].name.empty())) {
      if (arrays.size() != 1) {
        throw Error(ErrorCode::kInvalidArgument, fmt::format("{} holds {} arrays; give it as --input {} and name them "
                                                             "like the inputs",
                                                             path, arrays.size(), path));
      }
      if (!input && opened.inputs().size() != 1) {
        throw Error(ErrorCode::kInvalidArgument,
                    fmt::format("the model has {} inputs; say which one {} is for: --input NAME={}",
                                opened.inputs().size(), path, path));
      }
      use_array(opened, input.value_or(0), std::move(arrays[0].array));
      continue;
    }
    for (NamedArray& array : arrays) {
      std::optional<size_t> found = opened.find_input(array.name);
      // numpy.savez names what it gets without a name arr_0, arr_1, ...
      if (!found && array.name.starts_with("arr_")) found = opened.find_input(array.name.substr(4));
      if (!found) opened.no_such_input(array.name);
      use_array(opened, *found, std::move(array.array));
    }
  }
  if (input_files_.empty() || random_) return;
  for (size_t i = 0; i < arrays_.size(); ++i) {
    if (arrays_[i]) continue;
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("no data for input '{}'; add --input '{}=FILE.npy', or --random", opened.inputs()[i].name,
                            opened.inputs()[i].name));
  }
}

void Run::use_array(OpenedModel& opened, size_t input, std::unique_ptr<ArrayReader> array) {
  const NamedTensor& named = opened.inputs()[input];
  const TensorInfo info = opened.interpreter().tensor_info(named.index);
  const Shape& shape = array->header().shape;
  if (arrays_[input]) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("input '{}' is given twice", named.name));
  }
  check_type(named, info, *array);
  if (!(shape == info.shape)) {
    if (!may_become(info, shape)) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("input '{}' has shape {}, the array of {} has {}; reshape it, or resize the input with "
                              "--shape '{}={}'",
                              named.name, shape_text(info), array->where(), shape.to_string(), named.name,
                              join(shape.dims(), ",")));
    }
    opened.resize(input, shape);
  }
  arrays_[input] = std::move(array);
}

void Run::fill_inputs(OpenedModel& opened) {
  std::mt19937_64 random(seed_);
  for (size_t i = 0; i < arrays_.size(); ++i) {
    const int index = opened.inputs()[i].index;
    if (opened.interpreter().tensor_info(index).constant) continue;
    if (arrays_[i]) {
      load_input(opened.interpreter(), index, *arrays_[i]);
    } else {
      fill_random(opened.interpreter(), index, random);
    }
  }
}

Json Run::document(OpenedModel& opened) const {
  const Interpreter& interpreter = opened.interpreter();
  const Plan plan = opened.plan();
  Json json = {{"model", options_.model_path}, {"threads", plan.threads}, {"runs", runs_}};
  json["device"] = interpreter.device().name;
  if (!interpreter.device().message.empty()) json["device_note"] = interpreter.device().message;
  json["load_ms"] = timing_.load_ms;
  json["allocate_ms"] = timing_.allocate_ms;
  json["first_ms"] = timing_.first();
  json["median_ms"] = timing_.median();
  json["mean_ms"] = timing_.mean();
  json["fastest_ms"] = timing_.fastest();
  json["slowest_ms"] = timing_.slowest();
  json["planned_peak_bytes"] = plan.peak_bytes;
  json["counted_peak_bytes"] = interpreter.counted_peak_bytes();
  json["inputs"] = Json::array();
  for (size_t i = 0; i < opened.inputs().size(); ++i) {
    Json input = tensor_json(interpreter.tensor_info(opened.inputs()[i].index));
    input["name"] = opened.inputs()[i].name;
    input["source"] = arrays_[i] ? arrays_[i]->where() : fmt::format("random, seed {}", seed_);
    json["inputs"].push_back(std::move(input));
  }
  json["outputs"] = Json::array();
  for (const NamedTensor& output : opened.outputs())
    json["outputs"].push_back(summary_json(summarize(output, interpreter)));
  if (!output_path_.empty()) json["output_file"] = output_path_;
  if (profile_) json["profile"] = profile_json(interpreter.profile());
  return json;
}

void Run::print_text(OpenedModel& opened) const {
  const Interpreter& interpreter = opened.interpreter();
  const Plan plan = opened.plan();
  fmt::print("{}\n\nInputs\n", printable(options_.model_path));
  Table inputs("lll");
  for (size_t i = 0; i < opened.inputs().size(); ++i) {
    const TensorInfo info = interpreter.tensor_info(opened.inputs()[i].index);
    inputs.add({fmt::format("'{}'", opened.inputs()[i].name),
                fmt::format("{} {}", dtype_name(info.dtype), info.shape.to_string()),
                arrays_[i] ? arrays_[i]->where() : fmt::format("random, seed {}", seed_)});
  }
  fmt::print("{}\nOutputs\n", inputs.text());
  for (const NamedTensor& output : opened.outputs()) fmt::print("{}", summary_text(summarize(output, interpreter)));
  if (!output_path_.empty()) fmt::print("  written to {}\n", printable(output_path_));

  Table facts("ll");
  facts.add({"load", fmt::format("{:.2f} ms, allocate {:.2f} ms", timing_.load_ms, timing_.allocate_ms)});
  const std::string threads = fmt::format("{} thread{}", plan.threads, plan.threads == 1 ? "" : "s");
  if (runs_ == 1) {
    facts.add({"run", fmt::format("{:.3f} ms with {}", timing_.first(), threads)});
  } else {
    facts.add(
        {"run", fmt::format("{:.3f} ms median of {} with {}; first {:.3f}, fastest {:.3f}, slowest {:.3f}",
                            timing_.median(), runs_, threads, timing_.first(), timing_.fastest(), timing_.slowest())});
  }
  facts.add({"memory", fmt::format("{} planned, {} counted at the peak", format_bytes(plan.peak_bytes, plan.units),
                                   format_bytes(interpreter.counted_peak_bytes(), plan.units))});
  fmt::print("\nTime and memory\n{}", facts.text());
  if (profile_) print_profile(interpreter.profile(), timing_.runs_ms.size());
}

}  // namespace

std::unique_ptr<Command> run_command(CLI::App& program) { return std::make_unique<Run>(program); }

}  // namespace leadline::cli
