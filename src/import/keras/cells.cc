// SPDX-License-Identifier: Apache-2.0
// What the cells of recurrent layers compute: the input's share of all gates is one product for all steps.
#include "import/keras/importer.h"
#include "import/keras/recurrent.h"
#include "import/keras/weights.h"

namespace leadline::keras {
namespace {

/// A cell's layer and the call that reads its weights, kept as long as its functions.
struct Owner {
  Owner(Call& outer, const Layer& of) : layer(of), call(outer.importer, outer.e, layer, none) {}
  Layer layer;
  Arguments none;
  Call call;
};

struct Gated {
  std::shared_ptr<Owner> owner;
  int64_t units = 0;
  int64_t wide = 0;  // units of all gates
  bool has_bias = true;

  Call& call() const { return owner->call; }
  Emitter& e() const { return owner->call.e; }
  int kernel(int x) const { return call().constant(0, "kernel", {e().dims(x).back(), wide}, {1, 0}); }
  int recurrent(int h) const {
    const int weights = call().constant(1, "recurrent_kernel", {units, wide}, {1, 0});
    return e().fully_connected(h, weights, ir::kAbsent);
  }
  int project(int x) const {
    return e().fully_connected(x, kernel(x), has_bias ? call().constant(2, "bias", {wide}) : ir::kAbsent);
  }
  int gate(int x) const { return activation_of(call(), x, "recurrent_activation"); }
  int activate(int x) const { return activation_of(call(), x, "activation"); }
};

Gated gates_of(Call& call, const Layer& layer, int64_t gates) {
  Gated g{std::make_shared<Owner>(call, layer)};
  g.units = layer.config.integer("units");
  require(g.units > 0 && g.units < (1 << 24), kBad, "the number of units is {}, expected 1 to 2^24", g.units);
  g.wide = gates * g.units;
  g.has_bias = layer.config.boolean("use_bias", true);
  return g;
}

RecurrentCell lstm_cell(Call& call, const Layer& layer) {
  const Gated g = gates_of(call, layer, 4);
  RecurrentCell cell;
  cell.states = {{g.units}, {g.units}};
  cell.project = [g](int x) { return g.project(x); };
  cell.step = [g](int share, const std::vector<int>& states) -> std::vector<int> {
    Emitter& e = g.e();
    const std::vector<int> s = e.split(e.add(share, g.recurrent(states[0])), 1, 4);  // input, forget, candidate, output
    const int candidate = g.activate(s[2]);
    const int c = e.add(e.mul(g.gate(s[1]), states[1]), e.mul(g.gate(s[0]), candidate));
    return {e.mul(g.gate(s[3]), g.activate(c)), c};
  };
  return cell;
}

RecurrentCell simple_cell(Call& call, const Layer& layer) {
  const Gated g = gates_of(call, layer, 1);
  RecurrentCell cell;
  cell.states = {{g.units}};
  cell.project = [g](int x) { return g.project(x); };
  cell.step = [g](int share, const std::vector<int>& states) -> std::vector<int> {
    return {g.activate(g.e().add(share, g.recurrent(states[0])))};
  };
  return cell;
}

/// Columns of the recurrent kernel of a GRU as weights.
int kernel_columns(const Gated& g, int64_t from, int64_t count) {
  const Weight& whole = g.call().weight(1, "recurrent_kernel", {g.units, g.wide});
  require(whole.dtype == DType::kFloat32, ErrorCode::kUnsupported, "the recurrent kernel is {}; save it as float32",
          dtype_name(whole.dtype));
  const int64_t begin[] = {0, from};
  const ir::Source columns = ir::sliced_source(whole.source, whole.shape, begin, Shape{g.units, count}, 4);
  const int order[] = {1, 0};
  return g.e().builder().constant(g.e().name("recurrent_kernel"), DType::kFloat32, {count, g.units},
                                  ir::transposed_source(columns, Shape{g.units, count}, order, 4));
}

RecurrentCell gru_cell(Call& call, const Layer& layer) {
  const Gated g = gates_of(call, layer, 3);
  const bool after = layer.config.boolean("reset_after", true);
  // With reset_after there are two rows of biases: the input's and the recurrent one.
  std::vector<float> biases;
  if (g.has_bias) biases = g.call().values(2, "bias", after ? Dims{2, g.wide} : Dims{g.wide});
  const auto bias_row = [g, biases](std::ptrdiff_t row) {
    const auto width = static_cast<std::ptrdiff_t>(g.wide);
    if (!g.has_bias) return ir::kAbsent;
    return g.e().floats(std::vector<float>(biases.begin() + row * width, biases.begin() + (row + 1) * width));
  };
  RecurrentCell cell;
  cell.states = {{g.units}};
  cell.project = [g, bias_row](int x) { return g.e().fully_connected(x, g.kernel(x), bias_row(0)); };
  cell.step = [g, bias_row, after](int share, const std::vector<int>& states) -> std::vector<int> {
    Emitter& e = g.e();
    const std::vector<int> s = e.split(share, 1, 3);  // update, reset, candidate
    int update = -1;
    int candidate = -1;
    if (after) {
      const int recurrent = g.call().constant(1, "recurrent_kernel", {g.units, g.wide}, {1, 0});
      const std::vector<int> r = e.split(e.fully_connected(states[0], recurrent, bias_row(1)), 1, 3);
      update = g.gate(e.add(s[0], r[0]));
      const int reset = g.gate(e.add(s[1], r[1]));
      candidate = e.add(s[2], e.mul(reset, r[2]));
    } else {
      const int both = e.fully_connected(states[0], kernel_columns(g, 0, 2 * g.units), ir::kAbsent);
      const std::vector<int> r = e.split(both, 1, 2);
      update = g.gate(e.add(s[0], r[0]));
      const int reset = g.gate(e.add(s[1], r[1]));
      const int seen = e.fully_connected(e.mul(reset, states[0]), kernel_columns(g, 2 * g.units, g.units), ir::kAbsent);
      candidate = e.add(s[2], seen);
    }
    const int fresh = g.activate(candidate);
    // update * old + (1 - update) * fresh
    return {e.add(fresh, e.mul(update, e.sub(states[0], fresh)))};
  };
  return cell;
}

/// Each cell reads the output of the one before it.
RecurrentCell stacked_cells(Call& call, const Layer& layer) {
  const std::vector<Config> descriptions = layer.config.get("cells").items();
  require(!descriptions.empty() && descriptions.size() <= 64, kBad, "there are {} cells, expected 1 to 64",
          descriptions.size());
  std::vector<std::string> classes;
  for (const Config& description : descriptions) classes.push_back(description.text("class_name"));
  const std::vector<std::string> places = container_names(classes);
  auto cells = std::make_shared<std::vector<RecurrentCell>>();
  RecurrentCell all;
  for (size_t i = 0; i < descriptions.size(); ++i) {
    cells->push_back(make_cell(call, describe_layer(descriptions[i], layer.address, "cells/" + places[i])));
    all.output = all.states.size() + cells->back().output;
    all.states.insert(all.states.end(), cells->back().states.begin(), cells->back().states.end());
  }
  all.project = [cells](int x) { return cells->front().project(x); };
  all.step = [cells](int share, const std::vector<int>& states) {
    std::vector<int> next;
    size_t from = 0;
    for (size_t i = 0; i < cells->size(); ++i) {
      const RecurrentCell& cell = (*cells)[i];
      const auto begin = states.begin() + static_cast<std::ptrdiff_t>(from);
      const std::vector<int> own(begin, begin + static_cast<std::ptrdiff_t>(cell.states.size()));
      if (i > 0) share = cell.project(share);
      const std::vector<int> made = cell.step(share, own);
      share = made.at(cell.output);
      next.insert(next.end(), made.begin(), made.end());
      from += cell.states.size();
    }
    return next;
  };
  return all;
}

}  // namespace

RecurrentCell make_cell(Call& call, const Layer& layer) {
  const std::string name = layer.foreign ? "" : layer.class_name;
  if (name == "LSTMCell" || name == "LSTM") return lstm_cell(call, layer);
  if (name == "GRUCell" || name == "GRU") return gru_cell(call, layer);
  if (name == "SimpleRNNCell" || name == "SimpleRNN") return simple_cell(call, layer);
  if (name == "StackedRNNCells") return stacked_cells(call, layer);
  call.unsupported(fmt::format(
      "has the cell '{}' of class {}, which is not known to Leadline; use LSTMCell, GRUCell, SimpleRNNCell or "
      "StackedRNNCells",
      printable(layer.name), printable(layer.class_name)));
}

}  // namespace leadline::keras
