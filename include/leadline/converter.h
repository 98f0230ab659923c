// SPDX-License-Identifier: Apache-2.0
// Keras models and SavedModels -> .tflite, without TensorFlow.
//
//   const auto converter = leadline::Converter::from_keras("model.keras");
//   std::cout << converter.plan().peak_bytes << " bytes at most\n";
//   converter.convert_to("model.tflite");
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "leadline/budget.h"
#include "leadline/conversion_record.h"
#include "leadline/error.h"
#include "leadline/job_plan.h"
#include "leadline/keras_layer.h"
#include "leadline/model.h"
#include "leadline/progress.h"

namespace leadline {

/// What a conversion makes and needs, known before weights are read.
struct ConversionPlan {
  int64_t result_bytes = 0;     ///< of the .tflite file, exactly
  int64_t peak_bytes = 0;       ///< of memory while convert() works: the graph, the file, a tensor on its way into it
  int64_t file_peak_bytes = 0;  ///< the same of convert_to(), which does not hold the file
  int nodes = 0;
  int tensors = 0;
};

struct ConversionOptions {
  /// Ops of TensorFlow that Leadline has no conversion for become custom ops of the same name, with their attributes as
  /// options (a FlexBuffers map), as tf.lite does it. To run the model, register kernels for them.
  bool allow_custom_ops = false;
  /// Ops of TensorFlow that Leadline has no conversion for stay TensorFlow's own ("Flex"), as with tf.lite's
  /// SELECT_TF_OPS; so do FLOOR_DIV and POW of int64, which other runtimes have no kernels for. Leadline runs many
  /// of them itself (docs/flex.md); other runtimes need TensorFlow's ops in them.
  bool select_tf_ops = false;
  /// Passes over the graph that are not made, by name (passes.h), or "all". Unknown names are Error(kInvalidArgument).
  std::vector<std::string> disabled_passes;
  /// What the file will say of its making (record()): where the model comes from, unless that is plain; the version of
  /// TensorFlow that is used beside Leadline, where a SavedModel does not say one.
  ModelSource source = ModelSource::kUnknown;
  std::string tensorflow_version = {};
  /// Of a SavedModel with one signature: its inputs and outputs in this order, each by its name in the signature with
  /// the name its tensor gets, as TensorFlow names and orders those of bare functions.
  std::vector<std::pair<std::string, std::string>> plain_inputs = {};
  std::vector<std::pair<std::string, std::string>> plain_outputs = {};
};

/// Where a converted model is written: a file takes no memory but that of the tensor on its way.
enum class ConvertTarget { kFile, kMemory };

/// A model that was read and simplified, ready to be written. Its weights stay in the file it came from, which must not
/// change meanwhile. Cheap to copy (a handle). Thread-safe.
class Converter {
 public:
  /// A Keras model file: `.keras` of Keras 3 or tf_keras, or a whole-model `.h5`. `budget` is charged for what has to
  /// be unpacked and for the result; null means Budget::machine_default(). The model gets the signature serving_default
  /// with the names of Keras; its batch dimension may change. BatchNormalization, activations and paddings are merged
  /// into the layers before them where that keeps the result.
  /// Throws Error: kIo, kInvalidModel, kUnsupported (naming the layer and its path); BudgetError.
  static Converter from_keras(const std::string& path, std::shared_ptr<Budget> budget = nullptr,
                              const ConversionOptions& options = {});

  /// A Keras model in memory. `config` is what model.to_json() returns; `weights` returns the variables of the layer at
  /// a path ("layers/dense/cell"), as .keras files have them, none where there are none. Throws as from_keras().
  using KerasWeights = std::function<std::vector<KerasWeight>(const std::string& path)>;
  static Converter from_keras_config(const std::string& config, const KerasWeights& weights,
                                     std::shared_ptr<Budget> budget = nullptr, const ConversionOptions& options = {});

  /// A SavedModel directory (saved_model.pb and variables/). `signature_keys` chooses signatures; empty means all, and
  /// of a Keras export serving_default. `tags` chooses the graph; empty means "serve". Each signature becomes a
  /// subgraph with a signature of the same name; functions are written out; variables become constants, or state when
  /// the model changes and reads them. Throws Error:
  /// kIo, kInvalidModel, kInvalidArgument (no such signature or tags), kUnsupported (naming the node and its op);
  /// BudgetError.
  static Converter from_saved_model(const std::string& path, const std::vector<std::string>& signature_keys = {},
                                    const std::vector<std::string>& tags = {}, std::shared_ptr<Budget> budget = nullptr,
                                    const ConversionOptions& options = {});

  /// What the file says of its making; Leadline writes it into every file.
  std::optional<ConversionRecord> record() const;
  /// The same conversion with another record, or none.
  Converter with_record(const std::optional<ConversionRecord>& record) const;

  /// The same conversion with FILL nodes in place of large constants that have one value everywhere, where no weights.
  Converter with_unfolded_constants() const;
  /// The same conversion with TensorFlow's own ops where ConversionOptions::select_tf_ops replaces builtin ones.
  Converter with_select_tf_ops() const;
  /// The same conversion of a model without signatures, as TensorFlow makes one of a frozen graph.
  Converter without_signatures() const;

  /// The same conversion with the largest finite numbers in place of infinite constants, as TensorFlow writes them.
  Converter with_finite_constants() const;

  ConversionPlan plan() const;
  /// What convert_to() (kFile) or the others (kMemory) take, phase by phase: "read" was taken already.
  JobPlan job_plan(ConvertTarget target = ConvertTarget::kFile) const;
  /// Throws BudgetError with that plan when it does not fit the budget; every conversion begins with it.
  void admit(ConvertTarget target) const;
  /// The most that was charged at a time, here and for what was read.
  int64_t counted_peak_bytes() const;
  /// The .tflite file. Throws BudgetError before anything is read when it does not fit. `progress` counts bytes.
  std::vector<std::byte> convert(const Progress& progress = {}) const;
  /// The same into memory of exactly plan().result_bytes.
  void convert_into(std::span<std::byte> out, const Progress& progress = {}) const;
  /// The same as a model to run, in memory of its own that is charged to `budget`; null: the converter's.
  Model convert_to_model(const Progress& progress = {}, std::shared_ptr<Budget> budget = nullptr) const;
  /// The same into a file, which appears whole or not at all. Weights stream into it, one tensor at a time. Throws
  /// Error(kIo) too.
  void convert_to(const std::string& path, const Progress& progress = {}) const;
  /// One line per node, to be read.
  std::string to_text() const;

 private:
  struct Data;
  void refuse_beyond(const Budget& budget, int64_t bytes, ConvertTarget target) const;
  explicit Converter(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

}  // namespace leadline
