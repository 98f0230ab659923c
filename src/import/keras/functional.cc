// SPDX-License-Identifier: Apache-2.0
#include "import/keras/functional.h"

#include <algorithm>
#include <map>

#include "import/keras/importer.h"
#include "import/keras/weights.h"

namespace leadline::keras {
namespace {

bool is_reference_list(const Config& value) {
  return value.is_list() && (value.size() == 3 || value.size() == 4) && value.at(0).is_text() &&
         value.at(1).is_integer() && value.at(2).is_integer() && (value.size() == 3 || value.at(3).is_object());
}

TensorReference reference_of(const Config& value) {
  if (!is_reference_list(value)) value.wrong("[layer, node, output]");
  return {value.at(0).text(), value.at(1).integer(), value.at(2).integer()};
}

Argument tensor_argument(TensorReference reference) {
  Argument argument;
  argument.reference = std::move(reference);
  return argument;
}

/// An argument as Keras 3 writes it.
Argument argument_of(const Config& value) {
  Argument argument;
  if (value.is_object() && value.text("class_name", "") == "__keras_tensor__") {
    return tensor_argument(reference_of(value.get("config").get("keras_history")));
  }
  if (value.is_object() && !value.has("class_name")) {  // a dictionary of tensors, in the order of its keys
    argument.is_list = true;
    for (const auto& [key, item] : value.members()) argument.list.push_back(argument_of(item));
    argument.constant = value;
    return argument;
  }
  if (value.is_list()) {
    argument.is_list = true;
    for (const Config& item : value.items()) argument.list.push_back(argument_of(item));
  }
  argument.constant = value;
  return argument;
}

/// A named argument as Keras 2 writes it: tensors are lists of three there.
Argument old_argument_of(const Config& value) {
  if (is_reference_list(value) && value.size() == 3 && value.at(0).text() != "_CONSTANT_VALUE") {
    return tensor_argument(reference_of(value));
  }
  Argument argument;
  argument.constant = value;
  if (!value.is_list()) return argument;
  // ["_CONSTANT_VALUE", -1, value] is a constant among tensors.
  argument.is_list = true;
  for (const Config& item : value.items()) argument.list.push_back(old_argument_of(item));
  return argument;
}

void add_named(const Config& named, Arguments& arguments, Argument (*read)(const Config&)) {
  for (const auto& [key, value] : named.members()) arguments.named.emplace_back(key, read(value));
}

/// One call of a layer as Keras 2 writes it: a list of [layer, node, output, {named arguments}].
Arguments old_call(const Config& node) {
  Arguments arguments;
  const auto add = [&](const Config& item) {
    if (item.is_list() && item.size() >= 3 && item.at(0).is_text() && item.at(0).text() == "_CONSTANT_VALUE") {
      arguments.positional.emplace_back();
      arguments.positional.back().constant = item.at(2);
    } else {
      arguments.positional.push_back(tensor_argument(reference_of(item)));
    }
    if (item.size() == 4) add_named(item.at(3), arguments, old_argument_of);
  };
  if (node.is_list() && node.size() > 0 && node.at(0).is_text()) {
    add(node);
  } else if (node.is_object()) {
    for (const auto& [key, item] : node.members()) add(item);
  } else {
    for (const Config& item : node.items()) add(item);
  }
  return arguments;
}

std::vector<Arguments> calls_of(const Config& description) {
  std::vector<Arguments> calls;
  const auto nodes = description.find("inbound_nodes");
  if (!nodes) return calls;
  for (const Config& node : nodes->items()) {
    if (!node.is_object() || !node.has("args")) {
      calls.push_back(old_call(node));
      continue;
    }
    Arguments arguments;
    for (const Config& value : node.get("args").items()) arguments.positional.push_back(argument_of(value));
    if (const auto named = node.find("kwargs")) add_named(*named, arguments, argument_of);
    calls.push_back(std::move(arguments));
  }
  return calls;
}

void for_each_reference(const Argument& argument, const std::function<void(const TensorReference&)>& visit) {
  if (argument.reference) visit(*argument.reference);
  for (const Argument& item : argument.list) for_each_reference(item, visit);
}

void for_each_reference(const Arguments& arguments, const std::function<void(const TensorReference&)>& visit) {
  for (const Argument& argument : arguments.positional) for_each_reference(argument, visit);
  for (const auto& [key, argument] : arguments.named) for_each_reference(argument, visit);
}

void resolve(Argument& argument, const std::function<int(const TensorReference&)>& tensor_of) {
  if (argument.reference) argument.tensor = tensor_of(*argument.reference);
  for (Argument& item : argument.list) resolve(item, tensor_of);
}

/// References in any nesting of lists and dictionaries; entries of the outermost dictionary give their names.
void collect_ends(const Config& value, const std::string& name,
                  std::vector<std::pair<std::string, TensorReference>>& out) {
  if (is_reference_list(value)) {
    TensorReference reference = reference_of(value);
    std::string own = name.empty() ? reference.layer : name;
    out.emplace_back(std::move(own), std::move(reference));
  } else if (value.is_object()) {
    for (const auto& [key, item] : value.members()) collect_ends(item, name.empty() ? key : name, out);
  } else {
    for (const Config& item : value.items()) collect_ends(item, name, out);
  }
}

}  // namespace

std::vector<Layer> describe_layers(const Config& list, const LayerAddress& model) {
  std::vector<Layer> layers;
  std::map<std::string, int> used;
  for (const Config& description : list.items()) {
    Layer layer = describe_layer(description, model, "");
    // The one class that is saved by another name than its own.
    const bool renamed = layer.class_name == "GroupQueryAttention";
    std::string word = snake_case(renamed ? "GroupedQueryAttention" : layer.class_name);
    if (!layer.is_operation) {  // operations are not layers and have no place
      const int count = used[word]++;
      if (count > 0) word += fmt::format("_{}", count);
    }
    layers.push_back(describe_layer(description, model, "layers/" + word));
  }
  return layers;
}

void resolve(Arguments& arguments, const std::function<int(const TensorReference&)>& tensor_of) {
  for (Argument& argument : arguments.positional) resolve(argument, tensor_of);
  for (auto& [key, argument] : arguments.named) resolve(argument, tensor_of);
}

Functional::Functional(const Layer& model) : layers_(describe_layers(model.config.get("layers"), model.address)) {
  const std::vector<Config> descriptions = model.config.get("layers").items();
  for (size_t i = 0; i < layers_.size(); ++i) {
    // References use the name beside the configuration.
    const std::string name = descriptions[i].text("name", layers_[i].name);
    require(by_name_.emplace(name, i).second, kBad, "two layers of '{}' are called '{}'", printable(model.name),
            printable(name));
    calls_.push_back(calls_of(descriptions[i]));
  }
  std::vector<std::pair<std::string, TensorReference>> ends;
  collect_ends(model.config.get("input_layers"), "", ends);
  for (const auto& [name, reference] : ends) {
    const auto it = by_name_.find(reference.layer);
    require(it != by_name_.end(), kBad, "the input layer '{}' does not exist", printable(reference.layer));
    inputs_.push_back(it->second);
    calls_[it->second].assign(1, {});
  }
  collect_ends(model.config.get("output_layers"), "", outputs_);
  find_first_nodes();
  sort();
}

/// A model inside a model may count itself as its call number 0, and then the last call has the number of calls.
void Functional::find_first_nodes() {
  first_node_.assign(layers_.size(), 0);
  const auto look = [&](const TensorReference& reference) {
    const auto it = by_name_.find(reference.layer);
    if (it == by_name_.end()) return;
    const bool is_model = layers_[it->second].config.is_object() && layers_[it->second].config.has("layers");
    if (is_model && reference.node == static_cast<int64_t>(calls_[it->second].size())) first_node_[it->second] = 1;
  };
  for (const auto& calls : calls_) {
    for (const Arguments& arguments : calls) for_each_reference(arguments, look);
  }
  for (const auto& [name, reference] : outputs_) look(reference);
}

std::pair<size_t, size_t> Functional::locate(const TensorReference& reference) const {
  const auto it = by_name_.find(reference.layer);
  require(it != by_name_.end(), kBad, "the layer '{}' is used and does not exist", printable(reference.layer));
  const int64_t node = reference.node - first_node_[it->second];
  require(node >= 0 && node < static_cast<int64_t>(calls_[it->second].size()), kBad,
          "call {} of layer '{}' is used, it has {}", reference.node, printable(reference.layer),
          calls_[it->second].size());
  return {it->second, static_cast<size_t>(node)};
}

void Functional::sort() {
  enum class State : char { kNew, kOpen, kDone };
  std::vector<std::vector<State>> states;
  for (const auto& calls : calls_) states.emplace_back(calls.size(), State::kNew);
  for (const size_t input : inputs_) states[input].assign(1, State::kDone);
  using Place = std::pair<size_t, size_t>;
  std::vector<Place> stack;
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    for (size_t node = 0; node < calls_[layer].size(); ++node) stack.emplace_back(layer, node);
  }
  std::reverse(stack.begin(), stack.end());
  while (!stack.empty()) {
    const Place place = stack.back();
    State& state = states[place.first][place.second];
    if (state == State::kDone) {
      stack.pop_back();
      continue;
    }
    bool ready = true;
    for_each_reference(calls_[place.first][place.second], [&](const TensorReference& reference) {
      const Place needed = locate(reference);
      const State other = states[needed.first][needed.second];
      if (other == State::kDone) return;
      require(state == State::kNew && other != State::kOpen, kBad, "layers '{}' and '{}' need each other",
              printable(layers_[place.first].name), printable(reference.layer));
      stack.push_back(needed);
      ready = false;
    });
    state = ready ? State::kDone : State::kOpen;
    if (!ready) continue;
    order_.push_back(place);
    stack.pop_back();
  }
}

}  // namespace leadline::keras
