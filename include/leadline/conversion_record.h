// SPDX-License-Identifier: Apache-2.0
// What a .tflite file says of its making: its metadata entry CONVERSION_METADATA, which TensorFlow's converter and
// Leadline's write.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace leadline {

/// What a model was converted from. Numbers of the format; files may have others.
enum class ModelSource : int32_t {
  kUnknown = 0,
  kSavedModel = 1,
  kKerasModel = 2,
  kConcreteFunctions = 3,
  kGraphDef = 4,
  kSession = 5,
  kJax = 6,
  kPyTorch = 7,
};

/// What was done to make a model smaller. Numbers of the format; files may have others.
enum class ModelOptimization : int32_t {
  kFloat16 = 1001,
  kDynamicRange = 1002,
  kFullInteger = 1003,
  kInt16 = 1004,
  kQuantizationAwareTraining = 2000,
  kRandomSparsity = 3001,
  kBlockSparsity = 3002,
  kStructuredSparsity = 3003,
};

struct ConversionRecord {
  std::string tensorflow_version = {};  ///< that the model was saved or converted with; empty: none
  uint32_t api_version = 2;             ///< of tf.lite's converter
  ModelSource source = ModelSource::kUnknown;
  uint64_t model_hash = 0;
  std::vector<ModelOptimization> optimizations = {};
  bool allow_custom_ops = false;
  bool select_tf_ops = false;       ///< ops of TensorFlow were allowed where the format has none
  bool only_select_tf_ops = false;  ///< and used for all
  std::vector<std::vector<uint32_t>> sparsity_block_sizes = {};

  friend bool operator==(const ConversionRecord&, const ConversionRecord&) = default;
};

/// "saved_model", "keras_model", ... and "full_integer", "float16", ...; numbers that are not listed as such.
std::string source_name(ModelSource source);
std::string optimization_name(ModelOptimization optimization);

}  // namespace leadline
