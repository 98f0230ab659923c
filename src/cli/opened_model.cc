// SPDX-License-Identifier: Apache-2.0
#include "cli/opened_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "leadline/error.h"

namespace leadline::cli {
namespace {

template <typename... Args>
[[noreturn]] void bad_argument(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "1,224,224,3", also with brackets or 'x' between the sizes; "" is a scalar.
Shape parse_shape(std::string_view text) {
  const std::string_view whole = text;
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  Shape shape;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(",x"), text.size());
    std::string_view part = text.substr(0, end);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    const std::optional<int64_t> size = parse_number<int64_t>(part);
    if (!size || *size < 0 || (end + 1 == text.size())) {
      bad_argument("--shape: '{}' is not a list of sizes like 1,224,224,3", whole);
    }
    shape.push_back(*size);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return shape;
}

std::optional<SignatureInfo> choose_signature(const Model& model, const std::string& key) {
  const std::vector<SignatureInfo> signatures = model.signatures();
  for (const SignatureInfo& s : signatures) {
    if (key.empty() ? s.subgraph == 0 : s.key == key) return s;
  }
  if (key.empty()) return std::nullopt;
  std::string known;
  for (const SignatureInfo& s : signatures) known += fmt::format("{}'{}'", known.empty() ? "" : ", ", s.key);
  bad_argument("the model has no signature '{}'; it has {}", key, known.empty() ? "none" : known);
}

Interpreter make_interpreter(const Model& model, const ModelOptions& options,
                             const std::optional<SignatureInfo>& signature, bool plan_only) {
  InterpreterOptions chosen;
  chosen.num_threads = options.threads;
  chosen.subgraph = signature ? signature->subgraph : 0;
  chosen.plan_only = plan_only;
  chosen.device = options.device;
  chosen.on_missing = options.on_missing == "fallback" ? MissingDevice::kFallback : MissingDevice::kError;
  chosen.disabled_passes = options.disabled_passes;
  try {
    return Interpreter(model, chosen);
  } catch (const Error& error) {
    const std::vector<MissingOp> missing = model.missing_ops();
    const bool custom = std::any_of(missing.begin(), missing.end(),
                                    [](const MissingOp& op) { return op.kind != MissingOp::Kind::kBuiltin; });
    if (error.code() != ErrorCode::kUnsupported || !custom) throw;
    throw Error(error.code(), fmt::format("{}\nThe leadline program has only Leadline's own ops: such a model runs "
                                          "from Python or C++ only.",
                                          error.what()));
  }
}

/// With the names of the signature where it lists the tensor.
std::vector<NamedTensor> name_tensors(const Interpreter& interpreter, const std::vector<int>& indices,
                                      const std::vector<std::pair<std::string, int>>* signature) {
  std::vector<NamedTensor> result;
  for (const int index : indices) {
    NamedTensor tensor{index, {}, interpreter.tensor_info(index).name};
    tensor.name = tensor.tensor_name;
    if (signature != nullptr) {
      const auto found =
          std::find_if(signature->begin(), signature->end(), [&](const auto& s) { return s.second == index; });
      if (found != signature->end()) tensor.name = found->first;
    }
    result.push_back(std::move(tensor));
  }
  return result;
}

}  // namespace

void ModelOptions::add_to(Command& command) {
  command.add_option("MODEL", model_path, "The .tflite file").required().placeholder("");
  command.add_option("--threads", threads, "Threads for one run; -1: all CPUs").show_default().placeholder("N");
  command.add_option("--memory", memory, "Memory limit of the job: 200MB, 1.5GiB, 50% (default: 90% of what is free)")
      .placeholder("SIZE");
  command.add_option("--signature", signature, "Which signature of the model (default: the main one)")
      .placeholder("KEY");
  command
      .add_option("--shape", shapes, "Another shape for an input, given by name or position (0, 1, ...): x=1,224,224,3")
      .placeholder("INPUT=SIZES")
      .repeatable();
  command.add_option("--device", device, "Where to run: /CPU:0, /GPU:0, ... (see leadline devices; default: /CPU:0)")
      .placeholder("NAME");
  command
      .add_option("--on-missing", on_missing,
                  "When that device is missing or has no kernels yet: error, fallback (to /CPU:0)")
      .one_of({"error", "fallback"})
      .show_default()
      .placeholder("POLICY");
  command.add_option("--without-pass", disabled_passes, "Skip this pass, or all (an unknown name lists them)")
      .placeholder("NAME")
      .repeatable();
}

std::shared_ptr<Budget> ModelOptions::budget() const { return memory.empty() ? nullptr : Budget::with_limit(memory); }

OpenedModel::OpenedModel(const ModelOptions& options, std::shared_ptr<Budget> budget, bool plan_only)
    : model_(Model::load(options.model_path, std::move(budget))),
      signature_(choose_signature(model_, options.signature)),
      interpreter_(make_interpreter(model_, options, signature_, plan_only)),
      inputs_(name_tensors(interpreter_, interpreter_.inputs(), signature_ ? &signature_->inputs : nullptr)),
      outputs_(name_tensors(interpreter_, interpreter_.outputs(), signature_ ? &signature_->outputs : nullptr)) {
  if (!interpreter_.device().message.empty()) fmt::print(stderr, "note: {}\n", interpreter_.device().message);
  for (const std::string& text : options.shapes) {
    const auto [input, sizes] = split_assignment(text, "--shape");
    resize(input, parse_shape(sizes));
  }
}

void OpenedModel::resize(size_t input, const Shape& shape) {
  interpreter_.resize_input(inputs_[input].index, shape);
  resized_ = true;
}

Plan OpenedModel::plan() const {
  try {
    return interpreter_.plan();
  } catch (const Error& error) {
    if (!resized_ || error.code() != ErrorCode::kInvalidModel) throw;
    bad_argument("the model cannot take the shapes given for its inputs: {}", error.what());
  }
}

std::optional<size_t> OpenedModel::find_input(std::string_view text) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].name == text) return i;
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].tensor_name == text) return i;
  }
  const std::optional<size_t> position = parse_number<size_t>(text);
  return position && *position < inputs_.size() ? position : std::nullopt;
}

void OpenedModel::no_such_input(std::string_view text) const {
  std::string known;
  for (const NamedTensor& input : inputs_) known += fmt::format("{}'{}'", known.empty() ? "" : ", ", input.name);
  bad_argument("the model has no input '{}'; it has {}", text, known.empty() ? "none" : known);
}

std::pair<size_t, std::string> OpenedModel::split_assignment(const std::string& text, const char* option) const {
  if (text.find('=') == std::string::npos) bad_argument("{}: expected INPUT=VALUE, got '{}'", option, text);
  for (size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1)) {
    if (const auto input = find_input(std::string_view(text).substr(0, at))) return {*input, text.substr(at + 1)};
  }
  no_such_input(std::string_view(text).substr(0, text.rfind('=')));
}

}  // namespace leadline::cli
