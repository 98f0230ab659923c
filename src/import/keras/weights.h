// SPDX-License-Identifier: Apache-2.0
// The files that Keras saves: .keras archives (Keras 3 and tf_keras), whole-model .h5, and weights alone. Returns the
// configuration as text and the variables of each layer as sources that read the file when they are asked to.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/mapped_file.h"
#include "ir/constant_source.h"
#include "leadline/budget.h"
#include "leadline/types.h"

namespace leadline::keras {

/// A variable of a layer. `source` keeps the file open and reads the elements in C order, little-endian.
struct Variable {
  std::string name;  ///< its place in the file: "layers/dense/vars/0", or the name Keras gave it: "dense/kernel:0"
  DType dtype = DType::kFloat32;
  Shape shape;
  std::shared_ptr<const ir::ConstantSource> source;
};

enum class Layout {
  kByPath,  ///< .keras and .weights.h5: a layer is a path of attributes, "layers/bidirectional/forward_layer/cell"
  kByName,  ///< legacy .h5: a layer of the outermost model is its name, and has the variables of all inside it
};

/// A saved model. Everything in the file is untrusted. Thread-safe.
class KerasFile {
 public:
  /// Maps the file. What has to be unpacked is charged to `budget`. Throws Error(kIo), Error(kInvalidModel).
  static KerasFile open(const std::string& path, std::shared_ptr<Budget> budget);
  /// The same for bytes in memory; `name` is for messages.
  static KerasFile from_bytes(const std::string& name, std::shared_ptr<const ModelBytes> bytes,
                              std::shared_ptr<Budget> budget);

  Layout layout() const;
  /// JSON text of the model; empty when the file has weights alone.
  const std::string& config() const;
  /// "3.15.1"; empty when the file does not say.
  const std::string& keras_version() const;
  /// A text in the assets of an archive ("assets/layers/text_vectorization/..."); nothing when there is none.
  std::optional<std::string> asset(std::string_view name) const;

  /// Every layer that the file has something about. By name: in the order of the model. By path: outer before inner.
  std::vector<std::string> layers() const;
  bool has_layer(std::string_view layer) const;
  /// What a layer by path has inside, without "vars": "cell", "layers", "query_dense". Empty by name.
  std::vector<std::string> parts(std::string_view layer) const;
  /// The name that the layer had when it was saved by path (newer versions of Keras 3 record it); nothing otherwise.
  std::optional<std::string> saved_name(std::string_view layer) const;
  /// The layer's own variables, in the order of Keras; empty when it has none or the file does not know it. By path, ""
  /// is the model itself; by name, it is what belongs to no layer.
  std::vector<Variable> variables(std::string_view layer) const;

 private:
  struct State;
  explicit KerasFile(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// "SeparableConv2D" -> "separable_conv2d", as Keras does it.
std::string snake_case(std::string_view class_name);
/// The names that a list of objects gets in a file by path, from the names of their classes: "dense", "dense_1".
std::vector<std::string> container_names(std::span<const std::string> class_names);

}  // namespace leadline::keras
