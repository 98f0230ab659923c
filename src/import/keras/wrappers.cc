// SPDX-License-Identifier: Apache-2.0
// Layers around another layer.
#include "import/keras/functional.h"
#include "import/keras/importer.h"
#include "import/keras/layer_functions.h"

namespace leadline::keras {
namespace {

int merge_directions(Call& call, int forward, int backward, const std::string& mode) {
  Emitter& e = call.e;
  if (mode == "concat") return e.concat({forward, backward}, e.rank(forward) - 1);
  if (mode == "sum") return e.add(forward, backward);
  if (mode == "mul") return e.mul(forward, backward);
  if (mode == "ave") return e.mul(e.add(forward, backward), 0.5);
  call.unsupported(fmt::format("merges by '{}', which is not known", printable(mode)));
}

}  // namespace

Outputs bidirectional(Call& call) {
  Emitter& e = call.e;
  const Config description = call.config.get("layer");
  const auto direction = [&](const Config& layer, const std::string& prefix) {
    Layer result = call.inner(layer, prefix + "layer");
    // Keras 2 describes the layer before it was given a direction.
    if (!result.name.starts_with(prefix)) result.name = prefix + result.name;
    result.address.names.back() = result.name;
    return result;
  };
  const Layer forward = direction(description, "forward_");
  const Layer backward = direction(call.config.find("backward_layer").value_or(description), "backward_");
  // tf_keras may leave the backward layer out: it is the forward one that reads backwards.
  const bool reads_backwards = backward.config.boolean("go_backwards", false);
  const bool turned = reads_backwards == forward.config.boolean("go_backwards", false);
  const bool sequences = forward.config.boolean("return_sequences", false);
  const size_t states = (call.inputs.size() - 1) / 2;
  require(call.inputs.size() == 1 + 2 * states, kBad, "the layer is given {} states, expected {}",
          call.inputs.size() - 1, 2 * states);
  std::vector<int> first = {call.x()};
  std::vector<int> second = {turned ? e.reverse(call.x(), 1) : call.x()};
  first.insert(first.end(), call.inputs.begin() + 1, call.inputs.begin() + 1 + static_cast<std::ptrdiff_t>(states));
  second.insert(second.end(), call.inputs.begin() + 1 + static_cast<std::ptrdiff_t>(states), call.inputs.end());
  const auto run = [&](const Layer& layer, const std::vector<int>& tensors, bool turn) {
    Arguments arguments;
    for (const int tensor : tensors) {
      arguments.positional.emplace_back();
      arguments.positional.back().tensor = tensor;
    }
    if (call.mask() >= 0) {
      arguments.named.emplace_back("mask", Argument{});
      arguments.named.back().second.tensor = turn ? e.reverse(call.mask(), 1) : call.mask();
    }
    return call.importer.call(layer, arguments);
  };
  const std::vector<int> a = run(forward, first, false);
  const std::vector<int> b = run(backward, second, turned);
  const int back = sequences ? e.reverse(b.at(0), 1) : b.at(0);
  Outputs result;
  if (const auto mode = call.config.find("merge_mode")) {
    result = {merge_directions(call, a.at(0), back, mode->text())};
  } else {
    result = {a.at(0), back};
  }
  if (sequences) {
    for (const int tensor : result) call.importer.set_mask(tensor, call.mask());
  }
  result.insert(result.end(), a.begin() + 1, a.end());
  result.insert(result.end(), b.begin() + 1, b.end());
  return result;
}

/// The kernel was normalized in training; a run uses it as it is.
Outputs spectral_normalization(Call& call) {
  return call.importer.call(call.inner(call.config.get("layer"), "layer"), call.inputs);
}

/// Batch and time become one axis; the layer does not see the difference.
Outputs time_distributed(Call& call) {
  Emitter& e = call.e;
  const Layer inner = call.inner(call.config.get("layer"), "layer");
  const int x = call.x();
  const Dims dims = e.dims(x);
  require(dims.size() >= 3, kBad, "the input has rank {}, expected 3 or more", dims.size());
  const int mask = call.mask();
  const LayerClass* row = find_layer(inner.class_name);
  call.refuse_if(mask >= 0 && row != nullptr && row->mask == Mask::kUse,
                 "has a mask and a layer inside that would use it, which is not converted; build it without masks");
  const bool last_axis_alone =
      inner.class_name == "Dense" || inner.class_name == "Activation" || inner.class_name == "Dropout";
  if (last_axis_alone && !inner.foreign) {
    const Outputs result = call.importer.call(inner, {x});
    call.importer.set_mask(result.at(0), mask);
    return result;
  }
  Dims flat = {-1};
  for (size_t i = 2; i < dims.size(); ++i) {
    call.refuse_if(dims[i] < 0, "has an input with unknown sizes besides batch and time, which is not converted");
    flat.push_back(dims[i]);
  }
  Outputs result;
  for (const int y : call.importer.call(inner, {e.reshape(x, flat)})) {
    std::vector<Emitter::Size> sizes = {{x, 0}, {x, 1}};
    for (int axis = 1; axis < e.rank(y); ++axis) sizes.emplace_back(-1, e.dims(y)[static_cast<size_t>(axis)]);
    result.push_back(e.reshape_like(y, sizes));
    call.importer.set_mask(result.back(), mask);
  }
  return result;
}

/// Preprocessing layers one after another.
Outputs pipeline(Call& call) {
  std::vector<int> tensors = {call.x()};
  for (const Layer& layer : describe_layers(call.config.get("layers"), call.layer.address)) {
    tensors = call.importer.call(layer, tensors);
  }
  return tensors;
}

}  // namespace leadline::keras
