// SPDX-License-Identifier: Apache-2.0
// The functions that express ops; op_table.cc says which op has which.
#pragma once

#include "import/saved_model/op_call.h"

namespace leadline::saved_model {

// ops_math.cc
Outputs unary(OpCall& call);
Outputs binary(OpCall& call);
Outputs comparison(OpCall& call);
Outputs reduction(OpCall& call);
Outputs mul(OpCall& call);
Outputs square(OpCall& call);
Outputs add_n(OpCall& call);
Outputs approximate_equal(OpCall& call);
Outputs reciprocal(OpCall& call);
Outputs div_no_nan(OpCall& call);
Outputs multiply_no_nan(OpCall& call);
Outputs bit_logic(OpCall& call);
Outputs truncate_div(OpCall& call);
Outputs xdivy(OpCall& call);
Outputs log_1p(OpCall& call);
Outputs exp_m1(OpCall& call);
Outputs tangent(OpCall& call);
Outputs sinh_or_cosh(OpCall& call);
Outputs erf(OpCall& call);
Outputs is_nan(OpCall& call);
Outputs is_inf(OpCall& call);
Outputs is_finite(OpCall& call);
Outputs clip(OpCall& call);
Outputs cumsum(OpCall& call);
Outputs arg_min_max(OpCall& call);
Outputs top_k(OpCall& call);

// ops_nn.cc
Outputs conv_2d(OpCall& call);
Outputs conv_2d_transpose(OpCall& call);
Outputs conv_3d(OpCall& call);
Outputs depthwise_conv(OpCall& call);
Outputs bias_add(OpCall& call);
Outputs batch_norm(OpCall& call);
Outputs pool(OpCall& call);
Outputs leaky_relu(OpCall& call);
Outputs selu(OpCall& call);
Outputs softplus(OpCall& call);
Outputs softsign(OpCall& call);
Outputs softmax(OpCall& call);
Outputs resize_bilinear(OpCall& call);
Outputs resize_nearest(OpCall& call);
Outputs scale_and_translate(OpCall& call);
Outputs l2_loss(OpCall& call);
Outputs conv_3d_transpose(OpCall& call);
Outputs local_response(OpCall& call);
Outputs cross_entropy(OpCall& call);

// ops_ragged.cc
Outputs ragged_to_tensor(OpCall& call);

// ops_matmul.cc
Outputs matmul(OpCall& call);
Outputs batch_matmul(OpCall& call);
Outputs einsum(OpCall& call);

// ops_movement.cc
Outputs identity(OpCall& call);
Outputs reshape(OpCall& call);
Outputs squeeze(OpCall& call);
Outputs expand_dims(OpCall& call);
Outputs transpose(OpCall& call);
Outputs concat_v2(OpCall& call);
Outputs pack(OpCall& call);
Outputs unpack(OpCall& call);
Outputs split(OpCall& call);
Outputs split_v(OpCall& call);
Outputs strided_slice(OpCall& call);
Outputs tensor_slice_update(OpCall& call);
/// `x` with input 4, which is broadcast, in the place of the slice that inputs 1 to 3 name.
int with_slice_replaced(OpCall& call, int x);
Outputs mirror_pad(OpCall& call);
Outputs same_type(OpCall& call);
Outputs same_rank(OpCall& call);
Outputs to_shape(OpCall& call);
Outputs range(OpCall& call);
Outputs with_int32(OpCall& call);
Outputs block_size(OpCall& call);
Outputs reverse(OpCall& call);
Outputs reverse_sequence(OpCall& call);

// ops_index.cc
Outputs gather(OpCall& call);
Outputs resource_gather(OpCall& call);
Outputs one_hot(OpCall& call);
Outputs select(OpCall& call);
Outputs where(OpCall& call);
Outputs fill(OpCall& call);
Outputs shape(OpCall& call);
Outputs shape_n(OpCall& call);
Outputs rank(OpCall& call);
Outputs size(OpCall& call);
Outputs cast(OpCall& call);
Outputs zeros_like(OpCall& call);
Outputs ones_like(OpCall& call);
Outputs scatter_nd(OpCall& call);
Outputs tensor_scatter_update(OpCall& call);
/// `x` with the updates at the indices, by the op's name written, added or subtracted.
int scattered_into(OpCall& call, int x, int indices, int updates);

// ops_diagonal.cc
Outputs band_part(OpCall& call);
Outputs matrix_diag(OpCall& call);
Outputs matrix_set_diag(OpCall& call);
Outputs matrix_diag_part(OpCall& call);

// ops_select.cc
Outputs segment(OpCall& call);
Outputs non_max_suppression(OpCall& call);
Outputs unique(OpCall& call);
Outputs sparse_to_dense(OpCall& call);
Outputs dynamic_stitch(OpCall& call);
Outputs invert_permutation(OpCall& call);
Outputs roll(OpCall& call);
Outputs bucketize(OpCall& call);
Outputs bitcast(OpCall& call);
Outputs random(OpCall& call);
Outputs multinomial(OpCall& call);

// ops_signal.cc
Outputs rfft_2d(OpCall& call);
Outputs rfft(OpCall& call);
Outputs fake_quant(OpCall& call);
Outputs fake_quant_channels(OpCall& call);

// ops_complex.cc
/// Whether an op does the same to the real and the imaginary parts of what it gets. Complex tensors of a graph
/// (`pairs` is false) can be moved whole.
bool acts_on_parts(std::string_view op, bool pairs);
/// The op of the call on either.
Outputs on_parts(OpCall& call);
Outputs complex_op(OpCall& call);
Outputs complex_part_of(OpCall& call);
Outputs complex_arithmetic(OpCall& call);
Outputs complex_cast(OpCall& call);
Outputs fourier(OpCall& call);
Outputs inverse_real_fourier(OpCall& call);

// ops_list.cc
Outputs list_reserve(OpCall& call);
Outputs list_empty(OpCall& call);
Outputs list_from_tensor(OpCall& call);
Outputs list_get(OpCall& call);
Outputs list_set(OpCall& call);
Outputs list_stack(OpCall& call);
Outputs list_length(OpCall& call);
Outputs list_push(OpCall& call);
Outputs list_pop(OpCall& call);
Outputs list_resize(OpCall& call);
Outputs list_gather(OpCall& call);
Outputs list_scatter(OpCall& call);
Outputs list_concat(OpCall& call);
Outputs list_element_shape(OpCall& call);
/// Zeros of the sizes in a vector. `samples` are those of the result, for sizes that depend on data of the run.
int zeros_of(OpCall& call, int sizes, DType dtype, std::optional<ops::SizeSamples> samples = {});

// ops_state.cc
Outputs variable_handle(OpCall& call);
Outputs read_variable(OpCall& call);
Outputs assign_variable(OpCall& call);
Outputs update_variable(OpCall& call);
Outputs scatter_into_variable(OpCall& call);
Outputs slice_into_variable(OpCall& call);
/// What the variable holds whose handle is input `i`.
int read_now(OpCall& call, size_t i);

// ops_control.cc
Outputs hash_table(OpCall& call);
Outputs table_find(OpCall& call);
Outputs table_size(OpCall& call);
Outputs while_loop(OpCall& call);
Outputs if_else(OpCall& call);
Outputs switch_case(OpCall& call);

}  // namespace leadline::saved_model
