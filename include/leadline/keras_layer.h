// SPDX-License-Identifier: Apache-2.0
// Keras layers of your own: say what they compute in ops of the .tflite format, and models that have them convert.
//
//   leadline::register_keras_layer("Scale", [](leadline::KerasLayer& layer) {
//     const int gamma = layer.add_constant("gamma", layer.weights().at(0));
//     return layer.add_node({.op = "MUL", .inputs = {layer.inputs().at(0), gamma}});
//   });
//   auto converter = leadline::Converter::from_keras("model.keras");
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leadline/model_builder.h"
#include "leadline/types.h"

namespace leadline {

/// A variable of a layer, or something made from one. Nothing is read before read() is called or the converted model is
/// written. Cheap to copy (a handle). Thread-safe.
class KerasWeight {
 public:
  /// Reads all values, in C order and little-endian, into memory of exactly the right size. May throw.
  using Reader = std::function<void(std::span<std::byte> out)>;
  KerasWeight(std::string name, DType dtype, const Shape& shape, Reader reader);

  const std::string& name() const;  ///< empty where the file has none (.keras)
  DType dtype() const;
  const Shape& shape() const;
  int64_t bytes() const;
  /// `out` has exactly bytes() bytes. Throws Error.
  void read(std::span<std::byte> out) const;

  /// Axis i of the result is axis permutation[i]. Throws Error(kInvalidArgument), as the others.
  KerasWeight transposed(const std::vector<int>& permutation) const;
  KerasWeight reshaped(const Shape& shape) const;
  KerasWeight converted(DType dtype) const;

  struct Data;
  explicit KerasWeight(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  const Data& data() const { return *data_; }

 private:
  std::shared_ptr<const Data> data_;
};

/// A tensor of the model that is being converted.
struct KerasTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> dims;  ///< -1 where a size is not known before a run
};

/// A node of the model that is being converted. Shapes are inferred.
struct KerasNode {
  std::string op;                               ///< "CONV_2D"; a name the format does not know is a custom op
  std::vector<int> inputs;                      ///< tensor numbers; -1: absent
  std::string name = {};                        ///< of the outputs; empty: the op's
  int outputs = 1;                              ///< how many
  std::vector<DType> dtypes = {};               ///< of each output; empty: bool for comparisons, else the first input's
  std::vector<std::vector<int64_t>> dims = {};  ///< custom ops: of each output, -1 for unknown
  std::map<std::string, AttributeValue> attributes = {};  ///< by their names in the format; others keep their defaults
  std::vector<std::byte> custom_options = {};
  int version = 0;  ///< 0: the oldest that LiteRT knows
};

/// One call of a layer in the model, and the means to write what it computes. Valid during the call of the function it
/// is given to. Its functions throw Error(kInvalidArgument) for tensors and parts that do not exist, and what the
/// checks of an op find.
class KerasLayer {
 public:
  virtual ~KerasLayer() = default;

  virtual const std::string& name() const = 0;
  virtual const std::string& class_name() const = 0;
  /// In the weights of the file: "layers/my_layer".
  virtual const std::string& path() const = 0;
  /// What get_config() returned, as JSON.
  virtual std::string config() const = 0;
  /// Tensors among the arguments of the call.
  virtual const std::vector<int>& inputs() const = 0;
  /// The mask [batch, time] that comes with the first input; -1: none. It is not passed on.
  virtual int mask() const = 0;
  /// The layer's own variables, in the order in which it made them, trainable ones first. `part` is a layer inside it,
  /// by the attribute that holds it ("dense", "blocks/dense_1" in a list).
  virtual std::vector<KerasWeight> weights(const std::string& part = "") = 0;

  virtual KerasTensor tensor(int index) const = 0;
  /// A constant with the contents of a variable, which are not read yet.
  virtual int add_constant(const std::string& name, const KerasWeight& weight) = 0;
  /// A constant; the bytes are copied.
  virtual int add_constant(const std::string& name, DType dtype, const Shape& shape,
                           std::span<const std::byte> data) = 0;
  /// The outputs.
  virtual std::vector<int> add_node(const KerasNode& node) = 0;
  /// What a layer inside this one makes of `inputs`: one that Leadline knows or that is registered. `description` is
  /// JSON of its class_name and config; its weights are those of `part`.
  virtual std::vector<int> add_layer(const std::string& part, const std::string& description,
                                     const std::vector<int>& inputs) = 0;
};

/// Returns the tensors that the layer computes.
using KerasLayerFunction = std::function<std::vector<int>(KerasLayer& layer)>;

/// Registers (or replaces) what layers of a class compute, for conversions that begin from now on. `name` is the name
/// of the class, or the one it was registered with in Keras ("package>Class"), which comes first; both come before
/// Leadline's own layers. What the function throws ends the conversion as an Error that names the layer, with the
/// original nested in it (std::nested_exception). Thread-safe. Throws Error(kInvalidArgument) for an empty name or
/// function.
void register_keras_layer(const std::string& name, KerasLayerFunction function);
/// False when nothing was registered under this name. Thread-safe.
bool unregister_keras_layer(std::string_view name);
/// Names of all registered layers, sorted. Thread-safe.
std::vector<std::string> registered_keras_layers();

}  // namespace leadline
