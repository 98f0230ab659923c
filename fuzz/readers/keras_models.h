// SPDX-License-Identifier: Apache-2.0
// Descriptions of small Keras models, with the shapes of their weights.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leadline::fuzz {

struct KerasModel {
  std::string config;
  std::vector<std::pair<std::string, std::string>> weights;  ///< path of a layer, shape ("2,3")
};

inline constexpr std::string_view kWeightsMark = "\n%%\n";

/// One for each kind of layer and operation.
std::vector<KerasModel> keras_models();
/// A Sequential model of an input and one layer, which is given as the members of its object.
std::string sequential_config(const std::string& shape, const std::string& layer);
/// Names that descriptions use.
std::vector<std::string> keras_words();

}  // namespace leadline::fuzz
