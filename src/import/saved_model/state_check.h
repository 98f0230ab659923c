// SPDX-License-Identifier: Apache-2.0
// Finds the variables that running a signature changes. Their saved value is not a constant.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "import/saved_model/resolver.h"

namespace leadline::saved_model {

/// Whether the op writes to the variable that is its first input.
bool changes_state(std::string_view op);

class StateCheck {
 public:
  explicit StateCheck(Resolver& resolver) : resolver_(resolver) {}

  /// Looks at what runs when these tensors of the main graph are asked for: what they depend on, control dependencies
  /// included, and every node of the functions called.
  void run(const std::vector<Ref>& outputs);
  /// The variables, each with a node that writes to it.
  const std::unordered_map<std::string, const NodeDef*>& changed() const { return changed_; }

 private:
  void look_at(int frame, int node);
  void add_frame(int frame);

  Resolver& resolver_;
  std::unordered_map<std::string, const NodeDef*> changed_;
  std::unordered_set<int> seen_;
  std::vector<int> todo_;
};

}  // namespace leadline::saved_model
