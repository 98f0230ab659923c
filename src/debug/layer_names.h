// SPDX-License-Identifier: Apache-2.0
// From tensor names back to Keras layers: "model/block1_conv/Conv2D;model/block1_bn/..." -> "block1_conv".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leadline::debug {

class LayerNames {
 public:
  /// `names` are all tensor names of the model: they show which endings its exporter added to every layer.
  explicit LayerNames(const std::vector<std::string_view>& names);
  /// The layer that `name`, an output of a node, leads back to; the name itself when it has no scopes. `contraction`:
  /// the node multiplies and sums up, so that of several names the one of such an op counts.
  std::string layer(std::string_view name, bool contraction) const;

 private:
  std::string suffix_;  // "_1" when every layer inside the model's scope ends with the scope's own number
};

}  // namespace leadline::debug
