// SPDX-License-Identifier: Apache-2.0
// What `plan` and `run` share: the options about threads, memory, signatures and shapes, and inputs found by name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "leadline/interpreter.h"
#include "leadline/model.h"

namespace leadline::cli {

/// An input or output as users may call it.
struct NamedTensor {
  int index = 0;     ///< number in the file
  std::string name;  ///< in the signature where there is one, else of the tensor
  std::string tensor_name;
};

struct ModelOptions {
  std::string model_path;
  int threads = -1;
  std::string memory;
  std::string signature;
  std::vector<std::string> shapes;
  std::string device;
  std::string on_missing = "error";
  std::vector<std::string> disabled_passes;

  void add_to(Command& command);
  /// --memory as a Budget; null when it is not given. Throws Error(kInvalidArgument).
  std::shared_ptr<Budget> budget() const;
};

/// A model with an interpreter of the signature asked for, resized as --shape says.
class OpenedModel {
 public:
  /// `budget` null: what the machine leaves. With `plan_only` ops that cannot run are planned around.
  OpenedModel(const ModelOptions& options, std::shared_ptr<Budget> budget, bool plan_only = false);

  const Model& model() const { return model_; }
  Interpreter& interpreter() { return interpreter_; }
  /// Sets the shape of input `input` of inputs().
  void resize(size_t input, const Shape& shape);
  /// The plan for the current shapes. Shapes given by the user that an op cannot take are Error(kInvalidArgument).
  Plan plan() const;
  const std::vector<NamedTensor>& inputs() const { return inputs_; }
  const std::vector<NamedTensor>& outputs() const { return outputs_; }

  /// Position in inputs() of the input that `text` means: a name, or a position counted from 0.
  std::optional<size_t> find_input(std::string_view text) const;
  /// Throws Error(kInvalidArgument) with the names of all inputs.
  [[noreturn]] void no_such_input(std::string_view text) const;
  /// Splits "NAME=VALUE" where NAME is an input; names may contain '='. Throws Error(kInvalidArgument).
  std::pair<size_t, std::string> split_assignment(const std::string& text, const char* option) const;

 private:
  Model model_;
  const std::optional<SignatureInfo> signature_;
  Interpreter interpreter_;
  std::vector<NamedTensor> inputs_;
  std::vector<NamedTensor> outputs_;
  bool resized_ = false;
};

}  // namespace leadline::cli
