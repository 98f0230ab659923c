// SPDX-License-Identifier: Apache-2.0
#include "import/keras/file_weights.h"

#include <algorithm>

namespace leadline::keras {
namespace {

/// Whether "a/b/c:0" has the part `name`, or with `numbered` one like "name_12".
bool has_part(std::string_view path, std::string_view name, bool numbered) {
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    if (part == name) return true;
    if (numbered && part.size() > name.size() + 1 && part.starts_with(name) && part[name.size()] == '_') {
      const std::string_view number = part.substr(name.size() + 1);
      if (std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; })) return true;
    }
    path = end == path.size() ? std::string_view() : path.substr(end + 1);
  }
  return false;
}

}  // namespace

std::vector<Variable> variables_inside(std::vector<Variable> variables, const std::vector<std::string>& names) {
  for (size_t i = 1; i < names.size(); ++i) {
    const auto only = [&](bool numbered) {
      std::vector<Variable> found;
      for (const Variable& v : variables) {
        if (has_part(v.name, names[i], numbered)) found.push_back(v);
      }
      return found;
    };
    std::vector<Variable> found = only(false);
    if (found.empty()) found = only(true);
    // Old files leave the cell out of the names of a recurrent layer's variables.
    if (found.empty() && names[i].ends_with("_cell")) continue;
    variables = std::move(found);
  }
  return variables;
}

std::vector<Weight> FileWeights::weights(const LayerAddress& layer) const {
  std::vector<Variable> variables;
  if (file_.layout() == Layout::kByPath) {
    variables = file_.variables(layer.path);
  } else if (!layer.names.empty()) {
    variables = variables_inside(file_.variables(layer.names[0]), layer.names);
  }
  std::vector<Weight> result;
  for (Variable& v : variables) {
    result.push_back({v.dtype, v.shape, std::move(v.source)});
    // By path they are numbered; by name they are called "layer/kernel:0".
    if (file_.layout() == Layout::kByPath) continue;
    std::string& name = result.back().name = v.name.substr(v.name.rfind('/') + 1);
    name.resize(std::min(name.find(':'), name.size()));
  }
  return result;
}

}  // namespace leadline::keras
