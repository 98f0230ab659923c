// SPDX-License-Identifier: Apache-2.0
// Layers that the user registered. Looked up before Leadline's own; thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "import/keras/layer.h"

namespace leadline::keras {

/// Emits one call of a layer and returns its outputs.
using CustomLayer = std::function<std::vector<int>(Call&)>;

void register_custom_layer(const std::string& name, CustomLayer layer);
bool unregister_custom_layer(std::string_view name);
std::vector<std::string> custom_layers();
/// By the name the class was registered with in Keras, then by that of the class; null when there is none.
std::shared_ptr<const CustomLayer> find_custom_layer(const Layer& layer);

}  // namespace leadline::keras
