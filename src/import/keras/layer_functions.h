// SPDX-License-Identifier: Apache-2.0
// The functions of all layers; layers.cc says which class has which.
#pragma once

#include "import/keras/layer.h"

namespace leadline::keras {

using Outputs = std::vector<int>;

// activation.cc
Outputs activation_layer(Call& call);
Outputs relu_layer(Call& call);
Outputs leaky_relu_layer(Call& call);
Outputs prelu_layer(Call& call);
Outputs elu_layer(Call& call);
Outputs softmax_layer(Call& call);
Outputs thresholded_relu_layer(Call& call);
// The layer or operation whose name is the activation's.
Outputs named_activation(Call& call);

// dense.cc
Outputs dense(Call& call);
Outputs einsum_dense(Call& call);
Outputs embedding(Call& call);
Outputs reversible_embedding(Call& call);

// conv.cc, conv_transpose.cc
Outputs conv_1d(Call& call);
Outputs conv_2d(Call& call);
Outputs conv_3d(Call& call);
Outputs depthwise_conv_1d(Call& call);
Outputs depthwise_conv_2d(Call& call);
Outputs separable_conv_1d(Call& call);
Outputs separable_conv_2d(Call& call);
Outputs conv_1d_transpose(Call& call);
Outputs conv_2d_transpose(Call& call);
Outputs conv_3d_transpose(Call& call);

// locally_connected.cc
Outputs locally_connected(Call& call);

// pooling.cc
Outputs max_pooling(Call& call);
Outputs average_pooling(Call& call);
Outputs global_max_pooling(Call& call);
Outputs global_average_pooling(Call& call);

// adaptive_pooling.cc
Outputs adaptive_average_pooling(Call& call);
Outputs adaptive_max_pooling(Call& call);

// normalization.cc
Outputs batch_normalization(Call& call);
Outputs layer_normalization(Call& call);
Outputs rms_normalization(Call& call);
Outputs group_normalization(Call& call);
Outputs unit_normalization(Call& call);
Outputs rescaling(Call& call);
Outputs normalization(Call& call);
Outputs layer_scale(Call& call);

// merge.cc
Outputs add_layer(Call& call);
Outputs subtract_layer(Call& call);
Outputs custom_scale_layer(Call& call);
Outputs multiply_layer(Call& call);
Outputs average_layer(Call& call);
Outputs maximum_layer(Call& call);
Outputs minimum_layer(Call& call);
Outputs concatenate_layer(Call& call);
Outputs dot_layer(Call& call);

// reshape.cc
Outputs identity(Call& call);
Outputs reshape_layer(Call& call);
Outputs permute(Call& call);
Outputs flatten(Call& call);
Outputs repeat_vector(Call& call);
Outputs zero_padding(Call& call);
Outputs cropping(Call& call);

// resize.cc
Outputs up_sampling_1d(Call& call);
Outputs up_sampling_2d(Call& call);
Outputs up_sampling_3d(Call& call);
Outputs resizing(Call& call);
Outputs center_crop(Call& call);
Outputs resize_operation(Call& call);
Outputs captured_variable(Call& call);
Outputs random_crop(Call& call);
Outputs auto_contrast(Call& call);

// attention.cc, simple_attention.cc
Outputs multi_head_attention(Call& call);
Outputs grouped_query_attention(Call& call);
Outputs attention(Call& call);
Outputs additive_attention(Call& call);

// recurrent.cc, conv_lstm.cc, wrappers.cc
Outputs lstm(Call& call);
Outputs gru(Call& call);
Outputs simple_rnn(Call& call);
Outputs rnn(Call& call);
Outputs conv_lstm(Call& call);
Outputs bidirectional(Call& call);
Outputs time_distributed(Call& call);
Outputs pipeline(Call& call);
Outputs spectral_normalization(Call& call);

// categories.cc
Outputs category_encoding(Call& call);
Outputs discretization(Call& call);
Outputs masking(Call& call);

// spectrogram.cc
Outputs stft_spectrogram(Call& call);
Outputs mel_spectrogram(Call& call);

// lambda.cc
Outputs tensorflow_function(Call& call);

}  // namespace leadline::keras
