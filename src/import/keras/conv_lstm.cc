// SPDX-License-Identifier: Apache-2.0
// ConvLSTM over one, two or three spatial axes: an LSTM whose products are convolutions. The loop carries images with
// their axes after the first two as one, which keeps ranks within what LiteRT's kernels take.
#include "import/keras/importer.h"
#include "import/keras/recurrent.h"
#include "import/keras/spatial.h"

namespace leadline::keras {
namespace {

int64_t product(const Dims& dims) {
  int64_t result = 1;
  for (const int64_t size : dims) {
    require(size > 0 && !__builtin_mul_overflow(result, size, &result), kBad,
            "an axis of the image has {} elements, expected a known size that fits into memory", size);
  }
  return result;
}

Dims with_batch(const Dims& dims) {
  Dims result = {-1};
  result.insert(result.end(), dims.begin(), dims.end());
  return result;
}

std::vector<int> order_of(int rank, bool to_last, int channel_axis) {
  std::vector<int> order;
  for (int axis = 0; axis < rank; ++axis) order.push_back(axis);
  if (to_last) {
    order.erase(order.begin() + channel_axis);
    order.push_back(channel_axis);
  } else {
    order.pop_back();
    order.insert(order.begin() + channel_axis, rank - 1);
  }
  return order;
}

}  // namespace

Outputs conv_lstm(Call& call) {
  Emitter& e = call.e;
  int x = recurrent_input(call);
  const bool first = channels_first(call);
  if (first) x = e.transpose(x, order_of(e.rank(x), true, 2));
  const Dims dims = e.dims(x);
  const auto axes = dims.size() - 3;
  require(dims.size() >= 4 && dims.size() <= 6, kBad, "the input has rank {}, expected 4 to 6", dims.size());
  for (size_t i = 2; i < dims.size(); ++i) {
    call.refuse_if(dims[i] <= 0, "has an input with unknown spatial sizes, which is not converted; fix them");
  }
  const Window w = read_window(call, "kernel_size", axes);
  const int64_t filters = call.config.integer("filters");
  require(filters > 0 && filters < (1 << 24), kBad, "the number of filters is {}, expected 1 to 2^24", filters);
  Layer cell_layer = call.part("cell", "cell");
  cell_layer.address.names.back() = fmt::format("conv_lstm_cell");
  const Arguments none;
  Call weights(call.importer, e, cell_layer, none);
  const auto kernel_dims = [&](int64_t channels) {
    Dims kernel(w.sizes.begin(), w.sizes.end());
    kernel.insert(kernel.end(), {channels, 4 * filters});
    return kernel;
  };

  // All steps at once: the batch and time are one axis.
  const Dims image(dims.begin() + 2, dims.end());
  const int frames = e.reshape(x, with_batch(image));
  const bool has_bias = call.config.boolean("use_bias", true);
  const int bias = has_bias ? weights.constant(2, "bias", {4 * filters}) : -1;
  const int gates = convolve(weights, frames, 0, "kernel", kernel_dims(dims.back()), bias, w);
  Dims gate_image = e.dims(gates);
  gate_image.erase(gate_image.begin());
  Dims state = gate_image;
  state.back() = filters;
  const int projected = e.reshape_like(gates, {{x, 0}, {x, 1}, {-1, product(gate_image)}});

  Window around;
  around.sizes = w.sizes;
  around.strides = around.dilations = std::vector<int64_t>(axes, 1);
  around.padding = ir::Padding::kSame;
  RecurrentCell cell;
  cell.states = {Dims{product(state)}, Dims{product(state)}};
  cell.step = [&](int share, const std::vector<int>& states) -> std::vector<int> {
    const int last = e.reshape(states[0], with_batch(state));
    const int memory = e.reshape(states[1], with_batch(state));
    const int seen = convolve(weights, last, 1, "recurrent_kernel", kernel_dims(filters), -1, around);
    const int all = e.add(e.reshape(share, with_batch(gate_image)), seen);
    const std::vector<int> g = e.split(all, e.rank(all) - 1, 4);  // input, forget, candidate, output
    const auto gate = [&](int v) { return activation_of(call, v, "recurrent_activation"); };
    const int candidate = activation_of(call, g[2], "activation");
    const int c = e.add(e.mul(gate(g[1]), memory), e.mul(gate(g[0]), candidate));
    const int h = e.mul(gate(g[3]), activation_of(call, c, "activation"));
    const Dims flat = {-1, product(state)};
    return {e.reshape(h, flat), e.reshape(c, flat)};
  };
  call.refuse_if(call.inputs.size() > 1, "is given an initial state, which is not converted; start it from zeros");
  Outputs result = run_cell(call, cell, projected);
  const bool sequences = call.config.boolean("return_sequences", false);
  for (size_t i = 0; i < result.size(); ++i) {
    const bool is_sequence = sequences && i == 0;
    std::vector<Emitter::Size> sizes = {{x, 0}};
    if (is_sequence) sizes.emplace_back(x, 1);
    for (const int64_t size : state) sizes.emplace_back(-1, size);
    const int mask = call.importer.mask_of(result[i]);
    result[i] = e.reshape_like(result[i], sizes);
    if (first) result[i] = e.transpose(result[i], order_of(e.rank(result[i]), false, is_sequence ? 2 : 1));
    call.importer.set_mask(result[i], mask);
  }
  return result;
}

}  // namespace leadline::keras
