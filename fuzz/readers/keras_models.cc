// SPDX-License-Identifier: Apache-2.0
#include "readers/keras_models.h"

#include <fmt/format.h>

#include <string_view>

namespace leadline::fuzz {
namespace {

/// A layer alone in a model. `weights`: "part shape" for each, separated by ';'; the part is below the layer's path.
struct LayerRow {
  std::string_view name;
  std::string_view path;
  std::string_view input;
  std::string_view config;
  std::string_view weights;
};

constexpr LayerRow kLayers[] = {
    {"Dense", "dense", "[null, 4]", R"("units": 3, "activation": "relu")", " 4,3; 3"},
    {"EinsumDense", "einsum_dense", "[null, 2, 4]",
     R"("equation": "abc,cd->abd", "output_shape": [null, 3], "bias_axes": "d")", " 4,3; 3"},
    {"Embedding", "embedding", "[null, 3]", R"("input_dim": 5, "output_dim": 2, "mask_zero": true)", " 5,2"},
    {"Conv1D", "conv1d", "[null, 6, 2]",
     R"("filters": 3, "kernel_size": [3], "padding": "causal", "dilation_rate": [2])", " 3,2,3; 3"},
    {"Conv2D", "conv2d", "[null, 6, 6, 2]",
     R"("filters": 4, "kernel_size": [3, 3], "strides": [2, 2], "padding": "same", "groups": 2, "activation": "gelu")",
     " 3,3,1,4; 4"},
    {"Conv3D", "conv3d", "[null, 4, 4, 4, 1]", R"("filters": 2, "kernel_size": [2, 2, 2])", " 2,2,2,1,2; 2"},
    {"DepthwiseConv2D", "depthwise_conv2d", "[null, 5, 5, 2]", R"("kernel_size": [3, 3], "depth_multiplier": 2)",
     " 3,3,2,2; 4"},
    {"SeparableConv2D", "separable_conv2d", "[null, 5, 5, 2]", R"("filters": 3, "kernel_size": [3, 3])",
     " 3,3,2,1; 1,1,2,3; 3"},
    {"Conv2DTranspose", "conv2d_transpose", "[null, 4, 4, 2]",
     R"("filters": 3, "kernel_size": [3, 3], "strides": [2, 2], "output_padding": [1, 1])", " 3,3,3,2; 3"},
    {"Conv1DTranspose", "conv1d_transpose", "[null, 4, 2]", R"("filters": 3, "kernel_size": [3], "padding": "same")",
     " 3,3,2; 3"},
    {"MaxPooling2D", "max_pooling2d", "[null, 6, 6, 2]", R"("pool_size": [3, 3], "strides": [2, 2], "padding": "same")",
     ""},
    {"AveragePooling1D", "average_pooling1d", "[null, 6, 2]", R"("pool_size": 2, "data_format": "channels_last")", ""},
    {"AveragePooling3D", "average_pooling3d", "[null, 4, 4, 4, 2]", R"("pool_size": [2, 2, 2])", ""},
    {"AdaptiveAveragePooling2D", "adaptive_average_pooling2d", "[null, 6, 6, 2]", R"("output_size": [2, 3])", ""},
    {"GlobalAveragePooling2D", "global_average_pooling2d", "[null, 6, 6, 2]", R"("keepdims": true)", ""},
    {"GlobalMaxPooling1D", "global_max_pooling1d", "[null, 6, 2]", R"("keepdims": false)", ""},
    {"ZeroPadding2D", "zero_padding2d", "[null, 4, 4, 2]", R"("padding": [[1, 2], [0, 1]])", ""},
    {"Cropping2D", "cropping2d", "[null, 6, 6, 2]", R"("cropping": [[1, 2], [0, 1]])", ""},
    {"UpSampling2D", "up_sampling2d", "[null, 3, 3, 2]", R"("size": [2, 2], "interpolation": "bilinear")", ""},
    {"UpSampling3D", "up_sampling3d", "[null, 2, 2, 2, 1]", R"("size": [2, 1, 2])", ""},
    {"Resizing", "resizing", "[null, 8, 6, 3]",
     R"("height": 4, "width": 4, "interpolation": "bilinear", "crop_to_aspect_ratio": true)", ""},
    {"CenterCrop", "center_crop", "[null, 8, 6, 3]", R"("height": 4, "width": 4)", ""},
    {"Rescaling", "rescaling", "[null, 4]", R"("scale": [1.0, 0.5, 2.0, 1.0], "offset": -1.0)", ""},
    {"Normalization", "normalization", "[null, 2]", R"("axis": [-1], "mean": [1.0, 2.0], "variance": [1.0, 4.0])", ""},
    {"Reshape", "reshape", "[null, 12]", R"("target_shape": [3, -1])", ""},
    {"Permute", "permute", "[null, 2, 3, 4]", R"("dims": [3, 1, 2])", ""},
    {"Flatten", "flatten", "[null, 2, 3]", R"("data_format": "channels_last")", ""},
    {"RepeatVector", "repeat_vector", "[null, 3]", R"("n": 4)", ""},
    {"BatchNormalization", "batch_normalization", "[null, 3]", R"("axis": -1, "epsilon": 0.001)", " 3; 3; 3; 3"},
    {"LayerNormalization", "layer_normalization", "[null, 3]", R"("axis": [-1], "rms_scaling": false)", " 3; 3"},
    {"GroupNormalization", "group_normalization", "[null, 4, 4]", R"("groups": 2, "axis": -1)", " 4; 4"},
    {"UnitNormalization", "unit_normalization", "[null, 4]", R"("axis": [1])", ""},
    {"RMSNormalization", "rms_normalization", "[null, 4]", R"("axis": -1)", " 4"},
    {"Activation", "activation", "[null, 4]", R"("activation": "hard_silu")", ""},
    {"ReLU", "re_lu", "[null, 4]", R"("max_value": 6.0, "negative_slope": 0.1, "threshold": 1.0)", ""},
    {"LeakyReLU", "leaky_re_lu", "[null, 4]", R"("negative_slope": 0.3)", ""},
    {"PReLU", "p_re_lu", "[null, 3, 4]", R"("shared_axes": [1])", " 1,4"},
    {"Softmax", "softmax", "[null, 3, 4]", R"("axis": [-1, 1])", ""},
    {"LSTM", "lstm", "[null, 3, 2]", R"("units": 2, "return_sequences": true, "go_backwards": true)",
     "/cell 2,8;/cell 2,8;/cell 8"},
    {"GRU", "gru", "[null, 3, 2]", R"("units": 2, "reset_after": true)", "/cell 2,6;/cell 2,6;/cell 2,6"},
    {"SimpleRNN", "simple_rnn", "[null, 3, 2]", R"("units": 2, "unroll": true)", "/cell 2,2;/cell 2,2;/cell 2"},
    {"ConvLSTM1D", "conv_lstm1d", "[null, 2, 4, 1]", R"("filters": 1, "kernel_size": [2], "padding": "same")",
     "/cell 2,1,4;/cell 2,1,4;/cell 4"},
    {"Bidirectional", "bidirectional", "[null, 3, 2]",
     R"("merge_mode": "concat", "layer": {"class_name": "SimpleRNN", "config": {"name": "r", "units": 2}},
        "backward_layer": {"class_name": "SimpleRNN", "config": {"name": "b", "units": 2, "go_backwards": true}})",
     "/forward_layer/cell 2,2;/forward_layer/cell 2,2;/forward_layer/cell 2;"
     "/backward_layer/cell 2,2;/backward_layer/cell 2,2;/backward_layer/cell 2"},
    {"TimeDistributed", "time_distributed", "[null, 3, 2]",
     R"("layer": {"class_name": "Dense", "config": {"name": "d", "units": 2}})", "/layer 2,2;/layer 2"},
    {"CategoryEncoding", "category_encoding", "[null, 3]", R"("num_tokens": 4, "output_mode": "multi_hot")", ""},
    {"Discretization", "discretization", "[null, 3]", R"("bin_boundaries": [0.0, 1.0, 2.0], "output_mode": "int")", ""},
    {"STFTSpectrogram", "stft_spectrogram", "[null, 32, 1]",
     R"("mode": "magnitude", "frame_length": 8, "frame_step": 4, "fft_length": 8)", " 8,1,5; 8,1,5"},
    {"Masking", "masking", "[null, 3, 2]", R"("mask_value": 0.0)", ""},
    {"ELU", "elu", "[null, 2]", R"("alpha": 0.5)", ""},
};

/// Operations of keras.ops in a functional model: the rest of the list of arguments, behind one tensor.
struct OperationRow {
  std::string_view module;
  std::string_view name;
  std::string_view config;
  std::string_view arguments;
  std::string_view keywords;
};

constexpr OperationRow kOperations[] = {
    {"keras.src.ops.numpy", "Add", "", ", 2.0", ""},
    {"keras.src.ops.numpy", "Matmul", "", ", $", ""},
    {"keras.src.ops.numpy", "Mean", R"("axis": [1], "keepdims": true)", "", ""},
    {"keras.src.ops.numpy", "Reshape", R"("newshape": [-1, 2, 8])", "", ""},
    {"keras.src.ops.numpy", "Transpose", R"("axes": [0, 2, 1])", "", ""},
    {"keras.src.ops.numpy", "Einsum", R"("subscripts": "abc,adc->abd")", ", $", ""},
    {"keras.src.ops.numpy", "Pad", R"("pad_width": [[0, 0], [1, 1], [2, 0]], "mode": "constant")", "", ""},
    {"keras.src.ops.numpy", "GetItem", "", ", 0", ""},
    {"keras.src.ops.numpy", "Concatenate", R"("axis": -1)", "#", ""},
    {"keras.src.ops.numpy", "Stack", R"("axis": 1)", "#", ""},
    {"keras.src.ops.numpy", "Split", R"("indices_or_sections": 2, "axis": 1)", "", ""},
    {"keras.src.ops.numpy", "Take", R"("axis": 1)", ", [0, 1]", ""},
    {"keras.src.ops.numpy", "Clip", R"("x_min": 0, "x_max": 1)", "", ""},
    {"keras.src.ops.numpy", "Repeat", R"("repeats": 2, "axis": 1)", "", ""},
    {"keras.src.ops.numpy", "Roll", R"("shift": 1, "axis": 1)", "", ""},
    {"keras.src.ops.numpy", "ExpandDims", R"("axis": 1)", "", ""},
    {"keras.src.ops.numpy", "Cumsum", R"("axis": 1)", "", ""},
    {"keras.src.ops.nn", "Softmax", R"("axis": -1)", "", ""},
    {"keras.src.ops.nn", "OneHot", R"("num_classes": 3)", "", ""},
    {"keras.src.ops.math", "TopK", R"("k": 2)", "", ""},
    {"keras.src.ops.core", "Cast", R"("dtype": "int32")", "", ""},
    {"keras.layers", "Concatenate", R"("axis": 1)", "#", ""},
    {"keras.layers", "Dot", R"("axes": [2, 2], "normalize": true)", "#", ""},
    {"keras.layers", "Average", "", "#", ""},
    {"keras.layers", "Attention", R"("use_scale": false, "score_mode": "dot")", "#", ""},
};

constexpr std::string_view kTensor =
    R"({"class_name": "__keras_tensor__", "config": {"shape": [null, 4, 4], "dtype": "float32", "keras_history": ["x", 0, 0]}})";

KerasModel layer_model(const LayerRow& row) {
  KerasModel model;
  model.config =
      sequential_config(std::string(row.input),
                        fmt::format(R"("module": "keras.layers", "class_name": "{}", "config": {{"name": "a", {}}})",
                                    row.name, row.config));
  std::string_view left = row.weights;
  while (!left.empty()) {
    const std::string_view one = left.substr(0, left.find(';'));
    left.remove_prefix(std::min(left.size(), one.size() + 1));
    const size_t space = one.find(' ');
    model.weights.emplace_back(fmt::format("layers/{}{}", row.path, one.substr(0, space)), one.substr(space + 1));
  }
  return model;
}

KerasModel operation_model(const OperationRow& row) {
  std::string arguments = fmt::format("{}{}", kTensor, row.arguments);
  if (row.arguments == "#") arguments = fmt::format("[{}, {}]", kTensor, kTensor);
  if (const size_t mark = arguments.find('$'); mark != std::string::npos) arguments.replace(mark, 1, kTensor);
  KerasModel model;
  model.config = fmt::format(
      R"({{"class_name": "Functional", "config": {{"name": "m", "layers": [
{{"class_name": "InputLayer", "name": "x", "config": {{"name": "x", "batch_shape": [null, 4, 4], "dtype": "float32"}},
  "inbound_nodes": []}},
{{"module": "{}", "class_name": "{}", "name": "y", "config": {{"name": "y"{}{}}},
  "inbound_nodes": [{{"args": [{}], "kwargs": {{{}}}}}]}}],
"input_layers": [["x", 0, 0]], "output_layers": [["y", 0, 0]]}}}})",
      row.module, row.name, row.config.empty() ? "" : ", ", row.config, arguments, row.keywords);
  return model;
}

/// A model as a layer of a model, called twice.
KerasModel nested_model() {
  const auto tensor = [](std::string_view name, int node) {
    return fmt::format(R"({{"class_name": "__keras_tensor__", "config": {{"keras_history": ["{}", {}, 0]}}}})", name,
                       node);
  };
  KerasModel model;
  model.config = fmt::format(
      R"({{"class_name": "Functional", "config": {{"name": "m", "layers": [
{{"class_name": "InputLayer", "name": "x", "config": {{"name": "x", "batch_shape": [null, 2]}}, "inbound_nodes": []}},
{{"class_name": "Sequential", "name": "s", "config": {{"name": "s", "layers": [
  {{"class_name": "InputLayer", "config": {{"name": "i", "batch_shape": [null, 2]}}}},
  {{"class_name": "Dense", "config": {{"name": "d", "units": 2}}}}]}},
  "inbound_nodes": [{{"args": [{}], "kwargs": {{}}}}, {{"args": [{}], "kwargs": {{}}}}]}}],
"input_layers": [["x", 0, 0]], "output_layers": [["s", 1, 0]]}}}})",
      tensor("x", 0), tensor("s", 0));
  model.weights = {{"layers/sequential/layers/dense", "2,2"}, {"layers/sequential/layers/dense", "2"}};
  return model;
}

}  // namespace

std::string sequential_config(const std::string& shape, const std::string& layer) {
  return fmt::format(
      R"({{"class_name": "Sequential", "config": {{"name": "m", "layers": [
{{"class_name": "InputLayer", "config": {{"name": "x", "dtype": "float32", "batch_shape": {}}}}},
{{{}}}]}}}})",
      shape, layer);
}

std::vector<KerasModel> keras_models() {
  std::vector<KerasModel> models = {nested_model()};
  for (const LayerRow& row : kLayers) models.push_back(layer_model(row));
  for (const OperationRow& row : kOperations) models.push_back(operation_model(row));
  return models;
}

std::vector<std::string> keras_words() {
  std::vector<std::string> words = {"null",
                                    "true",
                                    "false",
                                    "\"config\": {",
                                    "[[",
                                    "]]",
                                    "\"same\"",
                                    "\"valid\"",
                                    "\"channels_first\"",
                                    "\"axis\": ",
                                    "-1",
                                    "{}",
                                    "\"batch_shape\": ",
                                    "\"dtype\": \"int32\"",
                                    "\"inbound_nodes\": [",
                                    "1e99",
                                    "[]",
                                    "\"data_format\": \"channels_first\"",
                                    "\"registered_name\": ",
                                    "\"build_config\": {"};
  for (const LayerRow& row : kLayers) words.push_back(fmt::format("\"{}\"", row.name));
  for (const OperationRow& row : kOperations) words.push_back(fmt::format("\"{}\"", row.name));
  return words;
}

}  // namespace leadline::fuzz
