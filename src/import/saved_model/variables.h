// SPDX-License-Identifier: Apache-2.0
// Which tensor of the checkpoint each variable of the main graph is restored from.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "import/saved_model/bundle.h"
#include "import/saved_model/program.h"

namespace leadline::saved_model {

struct VariablePlace {
  std::string key;
  std::optional<Bundle::Slice> slice;  // only this part of the tensor
};

/// By Resolver::variable_name. Two sources are read: the ops that restore the variables when the model is loaded, and,
/// for what they do not have, the graph of saved objects. Variables that neither knows are left out.
std::unordered_map<std::string, VariablePlace> find_variables(Program& program, Bundle& bundle);

}  // namespace leadline::saved_model
