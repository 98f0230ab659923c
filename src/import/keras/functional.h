// SPDX-License-Identifier: Apache-2.0
// The graph of layers that a Functional model's configuration describes, in an order in which it can be computed.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "import/keras/layer.h"

namespace leadline::keras {

/// The layers of a model, each with its place in files by path.
std::vector<Layer> describe_layers(const Config& list, const LayerAddress& model);

class Functional {
 public:
  /// Reads the configuration. Throws Error for references to what does not exist and for cycles.
  explicit Functional(const Layer& model);

  const std::vector<Layer>& layers() const { return layers_; }
  const std::vector<Arguments>& calls(size_t layer) const { return calls_[layer]; }
  /// Layers that are the inputs, in the order of a caller's arguments.
  const std::vector<size_t>& inputs() const { return inputs_; }
  const std::vector<std::pair<std::string, TensorReference>>& outputs() const { return outputs_; }
  /// Layer and number of its call.
  std::pair<size_t, size_t> locate(const TensorReference& reference) const;
  /// All calls but those of inputs, each after what it needs.
  const std::vector<std::pair<size_t, size_t>>& order() const { return order_; }

 private:
  void find_first_nodes();
  void sort();

  std::vector<Layer> layers_;
  std::vector<std::vector<Arguments>> calls_;
  std::vector<size_t> inputs_;
  std::vector<std::pair<std::string, TensorReference>> outputs_;
  std::vector<std::pair<size_t, size_t>> order_;
  std::unordered_map<std::string, size_t> by_name_;
  std::vector<int64_t> first_node_;  // number of a layer's first call in references
};

/// Puts tensors in the place of references.
void resolve(Arguments& arguments, const std::function<int(const TensorReference&)>& tensor_of);

}  // namespace leadline::keras
