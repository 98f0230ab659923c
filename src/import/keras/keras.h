// SPDX-License-Identifier: Apache-2.0
// Keras models (Keras 3, and Keras 2 or tf_keras) -> Graph.
#pragma once

#include <memory>
#include <string_view>

#include "import/keras/weight_source.h"
#include "ir/graph.h"

namespace leadline::keras {

/// The graph of the model that `config_json` describes (config.json of a .keras file, model_config of an .h5 file, or
/// model.to_json()). Large weights stay sources. The signature serving_default has the Keras names of inputs and
/// outputs. Throws Error: kInvalidModel for what is wrong, kUnsupported for layers that cannot be converted; messages
/// begin with the path of the layer in the model.
std::shared_ptr<ir::Graph> import_keras(std::string_view config_json, const WeightSource& weights);

}  // namespace leadline::keras
