// SPDX-License-Identifier: Apache-2.0
// Where the importer of Keras models gets the variables of a layer: a file, a live model, a test.
#pragma once

#include <string>
#include <vector>

#include "ir/sources.h"
#include "leadline/types.h"

namespace leadline::keras {

/// A variable of a layer, in Keras's own layout.
struct Weight {
  DType dtype = DType::kFloat32;
  Shape shape;
  ir::Source source;
  std::string name = {};  ///< "kernel"; empty where the file does not say
};

/// The ways in which a layer is called in what Keras saves.
struct LayerAddress {
  std::string path;                ///< in .keras and .weights.h5: "layers/bidirectional/forward_layer/cell"
  std::vector<std::string> names;  ///< names of the layers from the outermost to this one, without the model's
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// The layer's own variables, without those of layers inside it: the trainable ones in the order in which Keras
  /// makes them, then the others. Empty when there are none. Throws Error when they cannot be had.
  virtual std::vector<Weight> weights(const LayerAddress& layer) const = 0;
};

}  // namespace leadline::keras
