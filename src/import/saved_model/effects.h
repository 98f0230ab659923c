// SPDX-License-Identifier: Apache-2.0
// In which order a signature reads and writes the variables that it keeps between runs.
#pragma once

#include <string_view>
#include <vector>

#include "import/saved_model/resolver.h"

namespace leadline::saved_model {

/// Whether the op takes the handle of a variable to write to it in a way that has a conversion.
bool is_assignment(std::string_view op);

/// What to use in place of an op that writes without a conversion; ends a sentence.
inline constexpr std::string_view kAssignments =
    "use assign(), assign_add(), assign_sub(), or scatter_update(), scatter_add() and scatter_sub()";

/// Nodes that read or write kept variables, and control flow whose functions do, in an order that respects data and
/// control dependencies. TensorFlow adds the latter wherever the order matters.
class Effects {
 public:
  explicit Effects(Resolver& resolver) : resolver_(resolver) {}

  /// Of the main graph, as far as these tensors need it, and of the functions it calls.
  std::vector<Ref> of_outputs(const std::vector<Ref>& outputs);
  /// Of a function, which runs as a whole.
  std::vector<Ref> of_frame(int frame);

 private:
  void collect(int frame, const std::vector<int>& starts, std::vector<Ref>& found);
  void look_at(int frame, int node, std::vector<Ref>& found);
  bool touches_kept(int frame, int node);

  Resolver& resolver_;
};

}  // namespace leadline::saved_model
