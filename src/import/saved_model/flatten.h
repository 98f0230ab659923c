// SPDX-License-Identifier: Apache-2.0
// Turns signatures of a resolved program into flat functions.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "import/saved_model/bundle.h"
#include "import/saved_model/program.h"
#include "import/saved_model/saved_model.h"
#include "import/saved_model/tables.h"
#include "import/saved_model/variables.h"

namespace leadline::saved_model {

/// Collects the constants of all functions of a model: each once.
class ConstantPool {
 public:
  /// `bundle` may be null when the model has no variables.
  ConstantPool(FlatModel& model, Program& program, std::shared_ptr<Bundle> bundle, std::string directory)
      : model_(model), program_(program), bundle_(std::move(bundle)), directory_(std::move(directory)) {
    if (bundle_) places_ = find_variables(program_, *bundle_);
  }

  int constant(const NodeDef& node);
  int variable(const NodeDef& node, std::string_view name);
  /// The number of the table that `node` (HashTableV2) makes.
  int table(const NodeDef& node, std::string_view name);

 private:
  FlatModel& model_;
  Program& program_;
  std::shared_ptr<Bundle> bundle_;
  std::unordered_map<std::string, VariablePlace> places_;
  std::unordered_map<const NodeDef*, int> constants_;
  std::unordered_map<std::string, int> variables_;
  std::string directory_;
  std::optional<std::unordered_map<std::string, TableContents>> contents_;  // found when a table is used
  std::unordered_map<std::string, int> tables_;
};

/// Variables that some signature changes, each with a node that does.
using ChangedVariables = std::unordered_map<std::string, const NodeDef*>;
void find_changed(Program& program, const SignatureDef& signature, ChangedVariables& changed);

/// Adds the function of a signature, and those of its control flow, to the model. Variables in `kept` are read and
/// written as the function runs; when one in `changed` is read that is not among them it is added, and all signatures
/// have to be flattened again.
void flatten_signature(FlatModel& model, Program& program, ConstantPool& pool, const SignatureDef& signature,
                       const ChangedVariables& changed, std::set<std::string>& kept);

}  // namespace leadline::saved_model
