// SPDX-License-Identifier: Apache-2.0
// What a layer's function gets to see: the layer, the arguments of one call of it, its weights, and the words to say
// what it computes. A layer class is one function and one line in layers.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "import/emitter.h"
#include "import/keras/config.h"
#include "import/keras/weight_source.h"

namespace leadline::keras {

using importing::Emitter;
using ops::Dims;

class Importer;

/// A layer of a model, or an operation of keras.ops in a functional one.
struct Layer {
  std::string class_name;
  std::string name;
  Config config;
  LayerAddress address;
  bool is_operation = false;    // of keras.ops
  std::string registered_name;  // "package>Class" of a class that is not Keras's own
  bool foreign = false;         // a class that is not Keras's, but may be called like one of Keras's
};

/// An output of a call of a layer.
struct TensorReference {
  std::string layer;
  int64_t node = 0;
  int64_t output = 0;
};

/// An argument of a call: a tensor, a list of arguments, or something constant.
struct Argument {
  std::optional<TensorReference> reference;
  int tensor = -1;  // once it is known
  bool is_list = false;
  std::vector<Argument> list;
  std::optional<Config> constant;
};

struct Arguments {
  std::vector<Argument> positional;
  std::vector<std::pair<std::string, Argument>> named;

  /// The argument at a position or with a name, unless it is missing or null.
  const Argument* find(size_t position, std::string_view name) const;
};

/// All tensors of arguments, in order.
void collect_tensors(const Argument& argument, std::vector<int>& out);

/// One call of a layer.
class Call {
 public:
  Call(Importer& importer_in, Emitter& emitter, const Layer& layer_in, const Arguments& arguments_in);

  Importer& importer;
  Emitter& e;
  const Layer& layer;
  const Config& config;
  const Arguments& arguments;
  std::vector<int> inputs;  // all tensors among the arguments, but the mask

  /// The first tensor; throws when there is none.
  int x() const;
  int input(size_t index) const;
  /// The mask [batch, time] that is given or belongs to the first tensor; -1 when there is none.
  int mask() const;

  /// A variable of the layer, which must have sizes `expected` (-1: any).
  const Weight& weight(size_t index, std::string_view name, const Dims& expected);
  size_t weight_count();
  /// Axes of a variable; 0 when there is none.
  size_t weight_rank(size_t index);
  /// A float32 constant with the contents of a variable, axes permuted, then the shape `target`.
  int constant(size_t index, std::string_view name, const Dims& expected, const std::vector<int>& permutation = {},
               const Dims& target = {});
  const std::vector<Weight>& weights();
  /// The contents of a variable with few elements.
  std::vector<float> values(size_t index, std::string_view name, const Dims& expected);

  /// A layer inside this one, at `part` of its path.
  Layer inner(const Config& description, const std::string& part) const;
  /// A part of this layer that has weights and no configuration of its own.
  Layer part(const std::string& part, const std::string& name) const;

  [[noreturn]] void unsupported(std::string_view what) const;
  void refuse_if(bool condition, std::string_view what) const {
    if (condition) unsupported(what);
  }

 private:
  void load();
  std::optional<std::vector<Weight>> weights_;
};

/// What becomes of masks (which steps of a sequence count).
enum class Mask {
  kPass,   // the result has the mask of the input
  kStop,   // the result has none, and the layer does not look at it
  kUse,    // the layer looks at it, and says what its result has
  kMerge,  // the result has a mask if all inputs have one
};

using LayerFunction = std::vector<int> (*)(Call&);

struct LayerClass {
  std::string_view name;
  LayerFunction emit;
  Mask mask = Mask::kPass;
};

/// The rows of all layers, of keras.ops, and of TensorFlow functions; null when there is none.
const LayerClass* find_layer(std::string_view class_name);
const LayerClass* find_operation(std::string_view class_name);
/// Why a class of Keras cannot be converted and what to do; empty for all others.
std::string_view refusal_of(std::string_view class_name);
/// Why an operation of keras.ops is not converted.
std::string_view operation_refusal(std::string_view class_name);

/// `x` through the activation that `description` (a name or an object with a configuration) names.
int activation(Call& call, int x, const Config& description);
int activation(Call& call, int x, std::string_view name, const Config* config = nullptr);
/// Through the one in member `key`, if there is one.
int activation_of(Call& call, int x, std::string_view key);

/// Throws unless the layer's data_format is channels_last.
bool channels_first(const Call& call);

}  // namespace leadline::keras
