// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU, SimpleRNN as a WHILE over time: the input's share of all gates is one product before the loop, the loop
// carries the states. The recurrent ops of the format keep their state between runs and fix the batch; Keras's layers
// do neither.
#include <functional>

#include "import/keras/importer.h"
#include "import/keras/layer_functions.h"
#include "ops/control_flow.h"

namespace leadline::keras {
namespace {

constexpr ErrorCode kBad = ErrorCode::kInvalidModel;

/// One step: the input's share of the gates and the states give the new states; the first one is the output.
using Step = std::function<std::vector<int>(int gates, const std::vector<int>& states)>;

struct Cell {
  int64_t units = 0;
  int gates = -1;     // [batch, time, gates]
  size_t states = 1;  // how many, each [batch, units]
  Step step;
};

/// A cell's variables have the path of the cell.
Layer cell_of(Call& call) {
  Layer layer = call.layer;
  layer.address.path += "/cell";
  layer.address.names.push_back(call.layer.class_name == "LSTM"  ? "lstm_cell"
                                : call.layer.class_name == "GRU" ? "gru_cell"
                                                                 : "simple_rnn_cell");
  return layer;
}

std::vector<int> initial_states(Call& call, const Cell& cell) {
  Emitter& e = call.e;
  std::vector<int> states;
  if (call.inputs.size() > 1) {
    require(call.inputs.size() == 1 + cell.states, kBad, "the layer has {} states, it is given {}", cell.states,
            call.inputs.size() - 1);
    states.assign(call.inputs.begin() + 1, call.inputs.end());
    return states;
  }
  const int shape = e.sizes_vector({{call.x(), 0}, {-1, cell.units}});
  const int zeros = e.builder().node("FILL", {shape, e.scalar(0.0F)}, e.name("zeros"), DType::kFloat32);
  return std::vector<int>(cell.states, zeros);
}

struct Loop {
  std::vector<int> states;  // after the last step
  int sequence = -1;        // [batch, time, units], if it is asked for
};

void declare(Emitter& e, const std::vector<int>& outer, std::vector<int>& inner, const std::vector<Dims>& dims,
             const std::vector<DType>& types) {
  for (size_t i = 0; i < outer.size(); ++i) {
    inner.push_back(e.builder().input(e.name(fmt::format("loop_{}", i)), types[i], dims[i]));
  }
}

/// Carries the time, the gates of all steps, the sequence if it is asked for, and the states.
Loop run_loop(Call& call, const Cell& cell, bool keep_sequence) {
  Emitter& e = call.e;
  const int gates = cell.gates;
  std::vector<int> carried = {e.integer(0), gates};
  if (keep_sequence) {
    const int shape = e.sizes_vector({{gates, 0}, {gates, 1}, {-1, cell.units}});
    carried.push_back(e.builder().node("FILL", {shape, e.scalar(0.0F)}, e.name("sequence"), DType::kFloat32));
  }
  const size_t mask_at = carried.size();
  int mask = call.mask();
  if (mask >= 0) {
    if (call.config.boolean("go_backwards", false)) mask = e.reverse(mask, 1);
    carried.push_back(mask);
  }
  const size_t first_state = carried.size();
  const std::vector<int> initial = initial_states(call, cell);
  carried.insert(carried.end(), initial.begin(), initial.end());
  std::vector<Dims> dims;
  std::vector<DType> types;
  for (const int v : carried) {
    dims.push_back(e.dims(v));
    types.push_back(e.dtype(v));
  }

  auto attributes = std::make_shared<ops::WhileAttributes>();
  attributes->cond_subgraph = e.builder().begin_subgraph(e.name("while_cond"));
  {
    std::vector<int> in;
    declare(e, carried, in, dims, types);
    const int steps = e.shape_part(in[1], 1, 2);
    const int limit = e.reshape(steps, {});
    e.builder().end_subgraph({e.compare("LESS", in[0], limit)});
  }
  attributes->body_subgraph = e.builder().begin_subgraph(e.name("while_body"));
  {
    std::vector<int> in;
    declare(e, carried, in, dims, types);
    const std::vector<int> states(in.begin() + static_cast<std::ptrdiff_t>(first_state), in.end());
    std::vector<int> next = cell.step(e.gather(in[1], in[0], 1), states);
    if (mask >= 0) {  // steps that do not count leave everything as it was
      const int counts = e.reshape(e.gather(in[mask_at], in[0], 1), {-1, 1});
      for (size_t i = 0; i < next.size(); ++i) next[i] = e.select(counts, next[i], states[i]);
    }
    std::vector<int> out = {e.add(in[0], 1.0), in[1]};
    if (keep_sequence) {
      const int start = e.concat({e.ints({0}), e.reshape(in[0], {1}), e.ints({0})}, 0);
      const int row = e.builder().node("EXPAND_DIMS", {next[0], e.integer(1)}, e.name("row"));
      out.push_back(e.builder().node("DYNAMIC_UPDATE_SLICE", {in[2], row, start}, e.name("update")));
    }
    if (mask >= 0) out.push_back(in[mask_at]);
    out.insert(out.end(), next.begin(), next.end());
    e.builder().end_subgraph(out);
  }
  ops::NodeSpec spec;
  spec.op = "WHILE";
  spec.inputs = carried;
  spec.attributes = attributes;
  for (size_t i = 0; i < carried.size(); ++i) spec.outputs.push_back({e.name("while"), types[i], {}, dims[i]});
  const std::vector<int> result = e.builder().add(std::move(spec));
  Loop loop;
  if (keep_sequence) loop.sequence = result[2];
  loop.states.assign(result.begin() + static_cast<std::ptrdiff_t>(first_state), result.end());
  return loop;
}

Outputs finish(Call& call, const Cell& cell) {
  const bool sequences = call.config.boolean("return_sequences", false);
  const Loop loop = run_loop(call, cell, sequences);
  Outputs result = {sequences ? loop.sequence : loop.states[0]};
  const int mask = call.mask();
  if (sequences && mask >= 0 && call.config.boolean("zero_output_for_mask", false)) {
    Emitter& e = call.e;
    const int in_order = call.config.boolean("go_backwards", false) ? e.reverse(mask, 1) : mask;
    result[0] = e.mul(result[0], e.expand_dims(e.cast(in_order, DType::kFloat32), 2));
  }
  if (sequences) call.importer.set_mask(result[0], mask);
  if (call.config.boolean("return_state", false)) {
    result.insert(result.end(), loop.states.begin(), loop.states.end());
  }
  return result;
}

/// The input with time in the order in which the layer reads it.
int read_input(Call& call) {
  call.refuse_if(call.config.boolean("stateful", false),
                 "is stateful: a converted model starts every run from zero; build it with stateful=False");
  const int x = call.e.cast(call.x(), DType::kFloat32);
  require(call.e.rank(x) == 3, kBad, "the input has rank {}, expected 3", call.e.rank(x));
  return call.config.boolean("go_backwards", false) ? call.e.reverse(x, 1) : x;
}

int64_t read_units(Call& call) {
  const int64_t units = call.config.integer("units");
  require(units > 0 && units < (1 << 24), kBad, "{} units", units);
  return units;
}

}  // namespace

Outputs lstm(Call& call) {
  Emitter& e = call.e;
  const int x = read_input(call);
  const int64_t units = read_units(call);
  const Layer cell_layer = cell_of(call);
  Call weights(call.importer, e, cell_layer, call.arguments);
  const int kernel = weights.constant(0, "kernel", {e.dims(x).back(), 4 * units}, {1, 0});
  const bool has_bias = call.config.boolean("use_bias", true);
  const int bias = has_bias ? weights.constant(2, "bias", {4 * units}) : ir::kAbsent;
  Cell cell;
  cell.units = units;
  cell.states = 2;
  cell.gates = e.fully_connected(x, kernel, bias);
  cell.step = [&](int input, const std::vector<int>& states) -> std::vector<int> {
    const int recurrent = weights.constant(1, "recurrent_kernel", {units, 4 * units}, {1, 0});
    const int all = e.add(input, e.fully_connected(states[0], recurrent, ir::kAbsent));
    const std::vector<int> g = e.split(all, 1, 4);  // input, forget, candidate, output
    const auto gate = [&](int v) { return activation_of(call, v, "recurrent_activation"); };
    const int candidate = activation_of(call, g[2], "activation");
    const int c = e.add(e.mul(gate(g[1]), states[1]), e.mul(gate(g[0]), candidate));
    return {e.mul(gate(g[3]), activation_of(call, c, "activation")), c};
  };
  return finish(call, cell);
}

Outputs gru(Call& call) {
  Emitter& e = call.e;
  const int x = read_input(call);
  const int64_t units = read_units(call);
  const Layer cell_layer = cell_of(call);
  Call weights(call.importer, e, cell_layer, call.arguments);
  const bool after = call.config.boolean("reset_after", true);
  const bool has_bias = call.config.boolean("use_bias", true);
  const int64_t wide = 3 * units;
  const int kernel = weights.constant(0, "kernel", {e.dims(x).back(), wide}, {1, 0});
  // With reset_after there are two rows of biases: the input's and the recurrent one.
  std::vector<float> biases;
  if (has_bias) biases = weights.values(2, "bias", after ? Dims{2, wide} : Dims{wide});
  const auto width = static_cast<std::ptrdiff_t>(wide);
  const auto bias_row = [&](std::ptrdiff_t row) {
    return has_bias ? e.floats(std::vector<float>(biases.begin() + row * width, biases.begin() + (row + 1) * width))
                    : ir::kAbsent;
  };
  Cell cell;
  cell.units = units;
  cell.gates = e.fully_connected(x, kernel, bias_row(0));
  const auto gate = [&](int v) { return activation_of(call, v, "recurrent_activation"); };
  cell.step = [&](int input, const std::vector<int>& states) -> std::vector<int> {
    const std::vector<int> g = e.split(input, 1, 3);  // update, reset, candidate
    int update = -1;
    int candidate = -1;
    if (after) {
      const int recurrent = weights.constant(1, "recurrent_kernel", {units, wide}, {1, 0});
      const std::vector<int> r = e.split(e.fully_connected(states[0], recurrent, bias_row(1)), 1, 3);
      update = gate(e.add(g[0], r[0]));
      const int reset = gate(e.add(g[1], r[1]));
      candidate = e.add(g[2], e.mul(reset, r[2]));
    } else {
      const Weight& whole = weights.weight(1, "recurrent_kernel", {units, wide});
      const auto part = [&](int64_t from, int64_t count) {  // columns of the kernel
        const int64_t begin[] = {0, from};
        const ir::Source columns = ir::sliced_source(whole.source, whole.shape, begin, Shape{units, count}, 4);
        const int order[] = {1, 0};
        return e.builder().constant(e.name("recurrent_kernel"), DType::kFloat32, {count, units},
                                    ir::transposed_source(columns, Shape{units, count}, order, 4));
      };
      require(whole.dtype == DType::kFloat32, ErrorCode::kUnsupported, "the recurrent kernel is {}",
              dtype_name(whole.dtype));
      const std::vector<int> r = e.split(e.fully_connected(states[0], part(0, 2 * units), ir::kAbsent), 1, 2);
      update = gate(e.add(g[0], r[0]));
      const int reset = gate(e.add(g[1], r[1]));
      const int seen = e.fully_connected(e.mul(reset, states[0]), part(2 * units, units), ir::kAbsent);
      candidate = e.add(g[2], seen);
    }
    const int fresh = activation_of(call, candidate, "activation");
    // update * old + (1 - update) * fresh
    return {e.add(fresh, e.mul(update, e.sub(states[0], fresh)))};
  };
  return finish(call, cell);
}

Outputs simple_rnn(Call& call) {
  Emitter& e = call.e;
  const int x = read_input(call);
  const int64_t units = read_units(call);
  const Layer cell_layer = cell_of(call);
  Call weights(call.importer, e, cell_layer, call.arguments);
  const int kernel = weights.constant(0, "kernel", {e.dims(x).back(), units}, {1, 0});
  const int bias = call.config.boolean("use_bias", true) ? weights.constant(2, "bias", {units}) : ir::kAbsent;
  Cell cell;
  cell.units = units;
  cell.gates = e.fully_connected(x, kernel, bias);
  cell.step = [&](int input, const std::vector<int>& states) -> std::vector<int> {
    const int recurrent = weights.constant(1, "recurrent_kernel", {units, units}, {1, 0});
    const int sum = e.add(input, e.fully_connected(states[0], recurrent, ir::kAbsent));
    return {activation_of(call, sum, "activation")};
  };
  return finish(call, cell);
}

}  // namespace leadline::keras
