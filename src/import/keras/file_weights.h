// SPDX-License-Identifier: Apache-2.0
// The weights of a saved Keras model, for the importer.
#pragma once

#include <utility>

#include "import/keras/weight_source.h"
#include "import/keras/weights.h"

namespace leadline::keras {

/// Finds layers by their path, or in legacy files by the names in the names of variables.
class FileWeights final : public WeightSource {
 public:
  explicit FileWeights(KerasFile file) : file_(std::move(file)) {}
  std::vector<Weight> weights(const LayerAddress& layer) const override;

 private:
  KerasFile file_;
};

/// Those of the variables of an outermost layer that belong to the layer inside it that `names` leads to.
std::vector<Variable> variables_inside(std::vector<Variable> variables, const std::vector<std::string>& names);

}  // namespace leadline::keras
