// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU, SimpleRNN and RNN as a WHILE over time that carries the states, unless fused_lstm.cc has an op for them.
#include "import/keras/recurrent.h"

#include "import/keras/importer.h"
#include "ops/control_flow.h"

namespace leadline::keras {
namespace {

/// A cell's variables have the path of the cell.
Layer cell_of(Call& call) {
  Layer layer = call.layer;
  layer.address.path += "/cell";
  layer.address.names.push_back(call.layer.class_name == "LSTM"  ? "lstm_cell"
                                : call.layer.class_name == "GRU" ? "gru_cell"
                                                                 : "simple_rnn_cell");
  return layer;
}

std::vector<int> initial_states(Call& call, const RecurrentCell& cell) {
  Emitter& e = call.e;
  std::vector<int> states;
  if (call.inputs.size() > 1) {
    require(call.inputs.size() == 1 + cell.states.size(), kBad, "the layer has {} states, it is given {}",
            cell.states.size(), call.inputs.size() - 1);
    states.assign(call.inputs.begin() + 1, call.inputs.end());
    return states;
  }
  for (const Dims& dims : cell.states) {
    if (!states.empty() && dims == cell.states[states.size() - 1]) {
      states.push_back(states.back());
      continue;
    }
    std::vector<Emitter::Size> sizes = {{call.x(), 0}};
    for (const int64_t size : dims) sizes.emplace_back(-1, size);
    states.push_back(
        e.builder().node("FILL", {e.sizes_vector(sizes), e.scalar(0.0F)}, e.name("zeros"), DType::kFloat32));
  }
  return states;
}

struct Loop {
  std::vector<int> states;  // after the last step
  int sequence = -1;        // [batch, time, ...], if it is asked for
};

void declare(Emitter& e, const std::vector<int>& outer, std::vector<int>& inner, const std::vector<Dims>& dims,
             const std::vector<DType>& types) {
  for (size_t i = 0; i < outer.size(); ++i) {
    inner.push_back(e.builder().input(e.name(fmt::format("loop_{}", i)), types[i], dims[i]));
  }
}

/// Carries the time, the shares of all steps, the sequence if it is asked for, and the states.
Loop run_loop(Call& call, const RecurrentCell& cell, int projected, bool keep_sequence) {
  Emitter& e = call.e;
  std::vector<int> carried = {e.integer(0), projected};
  if (keep_sequence) {
    std::vector<Emitter::Size> sizes = {{projected, 0}, {projected, 1}};
    for (const int64_t size : cell.states[cell.output]) sizes.emplace_back(-1, size);
    const int shape = e.sizes_vector(sizes);
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
    require(next.size() == states.size(), ErrorCode::kInternal, "a cell returned {} states, expected {}", next.size(),
            states.size());
    if (mask >= 0) {  // steps that do not count leave everything as it was
      const int steps = e.gather(in[mask_at], in[0], 1);
      for (size_t i = 0; i < next.size(); ++i) {
        Dims sizes(static_cast<size_t>(e.rank(next[i])), 1);
        sizes[0] = -1;
        next[i] = e.select(e.reshape(steps, sizes), next[i], states[i]);
      }
    }
    std::vector<int> out = {e.add(in[0], 1.0), in[1]};
    if (keep_sequence) {
      const int step = next[cell.output];
      const int rest = e.ints(std::vector<int32_t>(static_cast<size_t>(e.rank(step)) - 1, 0));
      const int start = e.concat({e.ints({0}), e.reshape(in[0], {1}), rest}, 0);
      const int row = e.builder().node("EXPAND_DIMS", {step, e.integer(1)}, e.name("row"));
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

Outputs run(Call& call, const Layer& cell_layer) {
  const int x = recurrent_input(call);
  require(call.e.rank(x) == 3, kBad, "the input has rank {}, expected 3", call.e.rank(x));
  if (fuses(call, cell_layer)) return {fused_lstm(call, cell_layer, x)};
  const RecurrentCell cell = make_cell(call, cell_layer);
  return run_cell(call, cell, cell.project(x));
}

}  // namespace

int recurrent_input(Call& call) {
  call.refuse_if(call.config.boolean("stateful", false),
                 "is stateful: a converted model starts every run from zero; build it with stateful=False");
  call.refuse_if(call.config.boolean("time_major", false),
                 "has time before the batch, which is not converted; build it with time_major=False");
  const int x = call.e.cast(call.x(), DType::kFloat32);
  require(call.e.rank(x) >= 3, kBad, "the input has rank {}, expected 3", call.e.rank(x));
  return call.config.boolean("go_backwards", false) ? call.e.reverse(x, 1) : x;
}

Outputs run_cell(Call& call, const RecurrentCell& cell, int projected) {
  const bool sequences = call.config.boolean("return_sequences", false);
  const Loop loop = run_loop(call, cell, projected, sequences);
  Outputs result = {sequences ? loop.sequence : loop.states[cell.output]};
  const int mask = call.mask();
  if (sequences && mask >= 0 && call.config.boolean("zero_output_for_mask", false)) {
    Emitter& e = call.e;
    int counts = e.cast(call.config.boolean("go_backwards", false) ? e.reverse(mask, 1) : mask, DType::kFloat32);
    while (e.rank(counts) < e.rank(result[0])) counts = e.expand_dims(counts, e.rank(counts));
    result[0] = e.mul(result[0], counts);
  }
  if (sequences) call.importer.set_mask(result[0], mask);
  if (call.config.boolean("return_state", false)) {
    result.insert(result.end(), loop.states.begin(), loop.states.end());
  }
  return result;
}

Outputs lstm(Call& call) { return run(call, cell_of(call)); }
Outputs gru(Call& call) { return run(call, cell_of(call)); }
Outputs simple_rnn(Call& call) { return run(call, cell_of(call)); }
Outputs rnn(Call& call) { return run(call, call.inner(call.config.get("cell"), "cell")); }

}  // namespace leadline::keras
