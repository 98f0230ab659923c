// SPDX-License-Identifier: Apache-2.0
// Walks the layers of a Keras model and lets each say what it computes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "import/keras/layer.h"

namespace leadline::keras {

/// A layer from its description; `parent` is what it is in, `part` its place there ("layers/dense").
Layer describe_layer(const Config& description, const LayerAddress& parent, const std::string& part);

class Importer {
 public:
  explicit Importer(const WeightSource& weights, ops::SizeChoices sizes = {}) : weights_(weights), emitter_(builder_) {
    builder_.choose_sizes(std::move(sizes));
  }
  /// Which sizes a failed import() stumbled over.
  const std::optional<ops::SizeConflict>& conflict() const { return builder_.conflict(); }

  /// The whole model.
  std::shared_ptr<ir::Graph> import(const Config& model);

  /// Calls a layer, which may be a model.
  std::vector<int> call(const Layer& layer, const Arguments& arguments);
  std::vector<int> call(const Layer& layer, const std::vector<int>& inputs);

  /// Which steps of a sequence count, as a bool tensor [batch, time]; -1 when all do.
  int mask_of(int tensor) const;
  void set_mask(int tensor, int mask);
  void drop_mask(int tensor) { masks_.erase(tensor); }

  Emitter& emitter() { return emitter_; }
  /// Whether the model is of Keras 2 (tf_keras), where a few layers compute something else.
  bool is_keras_2() const { return keras_2_; }
  void set_keras_2(bool value) { keras_2_ = value; }
  const WeightSource& weights() const { return weights_; }
  /// The same source whenever the same is asked for, so that shared layers share their bytes.
  ir::Source shared_source(const std::string& key, const std::function<ir::Source()>& make);

 private:
  std::vector<int> call_class(const Layer& layer, const Arguments& arguments);
  std::vector<int> call_model(const Layer& layer, const std::vector<int>& inputs);
  std::vector<int> run_sequential(const Layer& model, std::vector<int> inputs);
  std::vector<int> run_functional(const Layer& model, const std::vector<int>& inputs);
  int model_input(const Layer& layer);
  int merged_mask(const std::vector<int>& inputs);

  const WeightSource& weights_;
  ops::GraphBuilder builder_;
  Emitter emitter_;
  std::map<std::string, ir::Source> sources_;
  std::map<int, int> masks_;  // by the tensor they belong to
  int depth_ = 0;
  int calls_ = 0;
  std::vector<std::string> path_;  // layers whose calls are under way
  bool located_ = false;           // the error under way names its path
  bool outermost_ = true;
  bool keras_2_ = false;
  ops::SignatureNames input_names_;
  std::vector<std::string> output_names_;
};

}  // namespace leadline::keras
