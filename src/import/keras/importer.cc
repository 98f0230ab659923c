// SPDX-License-Identifier: Apache-2.0
#include "import/keras/importer.h"

#include <algorithm>
#include <exception>
#include <unordered_map>
#include <unordered_set>

#include "core/join.h"
#include "core/rethrow_if_fatal.h"
#include "import/keras/custom_layers.h"
#include "import/keras/functional.h"
#include "import/keras/keras.h"

namespace leadline::keras {
namespace {

constexpr int kMaxModelDepth = 32;
constexpr int kMaxCalls = 50'000;       // of layers: a model that calls a model twice, which does so too, has no end
constexpr size_t kMaxPathBytes = 4096;  // of names of layers in layers, which are part of the name of every tensor

bool is_model(const Layer& layer) {
  return !layer.is_operation && layer.config.is_object() && layer.config.has("layers") &&
         (layer.class_name == "Sequential" || layer.config.has("output_layers"));
}

/// Policies under which Keras computes in 16 bits keep float32 results here: what they approximate.
void check_policy(const Layer& layer) {
  if (!layer.config.is_object() || layer.is_operation) return;
  const auto dtype = layer.config.find("dtype");
  if (!dtype || !dtype->is_object()) return;
  const auto config = dtype->find("config");
  const std::string name = config && config->is_object() ? config->text("name", "float32") : "float32";
  const bool good = name == "float32" || name == "mixed_float16" || name == "mixed_bfloat16" || name == "float16" ||
                    name == "bfloat16" || name.starts_with("int") || name == "bool" || name.starts_with("uint");
  require(good && name.find("_from_") == std::string::npos, ErrorCode::kUnsupported,
          "the layer has the dtype policy '{}'; save the model with float32 or a mixed policy", printable(name));
}

DType input_dtype(const Config& config) {
  const auto dtype = config.find("dtype");
  if (!dtype) return DType::kFloat32;
  const std::string name = dtype->is_text() ? dtype->text() : dtype->get("config").text("name", "float32");
  if (name.starts_with("mixed_")) return DType::kFloat32;
  const auto found = dtype_from_name(name);
  require(found.has_value(), ErrorCode::kUnsupported, "an input has the unknown type '{}'", printable(name));
  return *found;
}

bool is_keras_package(std::string_view name) {
  return name == "keras" || name == "Keras" || name == "tf_keras" || name == "tensorflow" || name == "leadline";
}

/// Keras names the module of its own classes; a class of the script that was run has none, and a registered one has its
/// package before its name. Files of Keras 2 and .h5 have packages only.
bool is_foreign(const Layer& layer, std::string_view module) {
  if (layer.class_name == "LayerScale" || layer.class_name.ends_with(">LayerScale")) return false;  // of ConvNeXt
  for (const std::string_view name : {std::string_view(layer.class_name), std::string_view(layer.registered_name)}) {
    const size_t end = name.find('>');
    if (end != std::string_view::npos && !is_keras_package(name.substr(0, end))) return true;
  }
  return module.empty() ? !layer.registered_name.empty() : !is_keras_package(module.substr(0, module.find('.')));
}

std::optional<Dims> input_shape(const Config& config) {
  for (const char* key : {"batch_shape", "batch_input_shape", "build_input_shape"}) {
    const auto found = config.find(key);
    if (!found || !found->is_list()) continue;
    Dims dims;
    for (const Config& size : found->items()) dims.push_back(size.is_null() ? -1 : size.integer());
    return dims;
  }
  return {};
}

/// Outputs of one layer that is called twice, or has several, are numbered: "dense", "dense_1"; the first to have a
/// name keeps it, and no number makes the name of another layer.
std::vector<std::string> unique_names(const std::vector<std::string>& names) {
  std::unordered_set<std::string> taken(names.begin(), names.end());
  std::unordered_map<std::string, int> used;
  std::vector<std::string> result;
  for (const std::string& name : names) {
    int& number = used[name];
    std::string unique = name;
    while (number > 0 && !taken.insert(unique = fmt::format("{}_{}", name, number)).second) ++number;
    ++number;
    result.push_back(std::move(unique));
  }
  return result;
}

}  // namespace

Layer describe_layer(const Config& description, const LayerAddress& parent, const std::string& part) {
  Layer layer{description.text("class_name"), "", description.get("config"), parent, false, ""};
  layer.registered_name = description.text("registered_name", "");
  // A Sequential of Keras before 2.3 is the bare list of its layers.
  layer.name = layer.config.is_object() ? layer.config.text("name", description.text("name", part)) : part;
  layer.address.path += (parent.path.empty() ? "" : "/") + part;
  layer.address.names.push_back(layer.name);
  const std::string module = description.text("module", "");
  layer.foreign = is_foreign(layer, module);
  layer.is_operation = module.find(".ops") != std::string::npos || module == "keras.ops";
  // An .h5 of Keras 3 has no modules, and Add may be the layer or the operation; every layer says whether it is
  // trained.
  if (module.empty() && layer.config.is_object() && !layer.config.has("trainable") &&
      layer.class_name != "InputLayer") {
    layer.is_operation = find_operation(layer.class_name) != nullptr;
  }
  return layer;
}

ir::Source Importer::shared_source(const std::string& key, const std::function<ir::Source()>& make) {
  const auto it = sources_.find(key);
  return it != sources_.end() ? it->second : sources_.emplace(key, make()).first->second;
}

std::vector<int> Importer::call(const Layer& layer, const std::vector<int>& inputs) {
  Arguments arguments;
  for (const int tensor : inputs) {
    arguments.positional.emplace_back();
    arguments.positional.back().tensor = tensor;
  }
  return call(layer, arguments);
}

std::vector<int> Importer::call(const Layer& layer, const Arguments& arguments) {
  const std::string outer = emitter_.prefix();
  require(++calls_ <= kMaxCalls, kBad, "the model calls more than {} layers", kMaxCalls);
  require(outer.size() + layer.name.size() < kMaxPathBytes, kBad, "names of layers in layers have more than {} bytes",
          kMaxPathBytes);
  emitter_.set_prefix(outer.empty() ? layer.name : outer + "/" + layer.name);
  path_.push_back(fmt::format("{} ({})", printable(layer.name), printable(layer.class_name)));
  std::vector<int> result;
  try {
    result = call_class(layer, arguments);
  } catch (const BudgetError&) {
    throw;
  } catch (const Error& error) {
    if (located_) throw;
    located_ = true;
    std::throw_with_nested(Error(error.code(), fmt::format("{}: {}", join(path_, "/"), error.what())));
  }
  path_.pop_back();
  emitter_.set_prefix(outer);
  return result;
}

std::vector<int> Importer::call_class(const Layer& layer, const Arguments& arguments) {
  Call call(*this, emitter_, layer, arguments);
  if (!layer.is_operation && !outermost_) {
    if (const auto custom = find_custom_layer(layer)) return (*custom)(call);
  }
  if (is_model(layer)) return call_model(layer, call.inputs);
  check_policy(layer);
  const LayerClass* row = layer.is_operation ? find_operation(layer.class_name)
                          : layer.foreign    ? nullptr
                                             : find_layer(layer.class_name);
  if (row == nullptr) {
    const std::string_view reason = layer.is_operation || layer.foreign ? "" : refusal_of(layer.class_name);
    if (!reason.empty()) call.unsupported(reason);
    if (layer.is_operation) {
      call.unsupported(fmt::format("{}; express it with other operations", operation_refusal(layer.class_name)));
    }
    call.unsupported(
        "is of a class not known to Leadline; say what it computes with register_keras_layer(), replace it by built-in "
        "layers, or export the model as a SavedModel (model.export())");
  }
  std::vector<int> masks;
  for (const int tensor : call.inputs) {
    const int mask = mask_of(tensor);
    if (mask >= 0 && std::find(masks.begin(), masks.end(), mask) == masks.end()) masks.push_back(mask);
  }
  if (call.arguments.find(SIZE_MAX, "mask") != nullptr && call.mask() >= 0) masks = {call.mask()};
  if (row->mask == Mask::kPass && !layer.is_operation && masks.size() > 1) {
    call.unsupported(
        "would use masks (from Masking or Embedding(mask_zero=True)), which is not converted for it; build "
        "the model without masks");
  }
  std::vector<int> result = row->emit(call);
  if (row->mask == Mask::kPass && !layer.is_operation && !masks.empty()) {
    for (const int tensor : result) set_mask(tensor, masks[0]);
  }
  if (row->mask == Mask::kMerge && !layer.is_operation) set_mask(result.at(0), merged_mask(call.inputs));
  return result;
}

/// Of layers that merge: a mask only if all inputs have one. A step counts in Keras 3 when it counts in any of them, in
/// Keras 2 when it counts in all.
int Importer::merged_mask(const std::vector<int>& inputs) {
  int merged = -1;
  for (const int tensor : inputs) {
    const int mask = mask_of(tensor);
    if (mask < 0) return -1;
    const bool same = merged < 0 || merged == mask;
    merged = same ? mask : emitter_.compare(keras_2_ ? "LOGICAL_AND" : "LOGICAL_OR", merged, mask);
  }
  return merged;
}

int Importer::mask_of(int tensor) const {
  const auto it = masks_.find(tensor);
  return it == masks_.end() ? -1 : it->second;
}

void Importer::set_mask(int tensor, int mask) {
  if (mask >= 0) masks_[tensor] = mask;
}

int Importer::model_input(const Layer& layer) {
  const auto dims = input_shape(layer.config);
  require(dims.has_value(), kBad, "the input '{}' has no shape; build the model before it is saved",
          printable(layer.name));
  require(!layer.config.boolean("sparse", false) && !layer.config.boolean("ragged", false), ErrorCode::kUnsupported,
          "the input '{}' is sparse or ragged; Leadline converts dense inputs", printable(layer.name));
  const int tensor = builder_.input(layer.name, input_dtype(layer.config), *dims);
  input_names_.emplace_back(layer.name, tensor);
  return tensor;
}

std::vector<int> Importer::call_model(const Layer& layer, const std::vector<int>& inputs) {
  require(depth_ < kMaxModelDepth, kBad, "models are nested deeper than {}", kMaxModelDepth);
  ++depth_;
  std::vector<int> result =
      layer.class_name == "Sequential" ? run_sequential(layer, inputs) : run_functional(layer, inputs);
  --depth_;
  return result;
}

std::vector<int> Importer::run_sequential(const Layer& model, std::vector<int> inputs) {
  const bool outermost = std::exchange(outermost_, false);
  const Config list = model.config.is_list() ? model.config : model.config.get("layers");
  const std::vector<Layer> layers = describe_layers(list, model.address);
  require(!layers.empty(), kBad, "the model '{}' has no layers", printable(model.name));
  if (outermost) {
    Layer first = layers[0];
    if (first.class_name != "InputLayer" && !input_shape(first.config)) first.config = model.config;
    if (first.class_name != "InputLayer") first.name += "_input";
    inputs = {model_input(first)};
    output_names_ = {layers.back().name};
  }
  for (const Layer& layer : layers) {
    if (layer.class_name == "InputLayer") continue;
    inputs = call(layer, inputs);
  }
  return inputs;
}

std::vector<int> Importer::run_functional(const Layer& model, const std::vector<int>& inputs) {
  const bool outermost = std::exchange(outermost_, false);
  const Functional plan(model);
  std::vector<std::vector<std::vector<int>>> made(plan.layers().size());  // of each call of each layer
  for (size_t i = 0; i < made.size(); ++i) made[i].resize(plan.calls(i).size());

  require(outermost || inputs.size() == plan.inputs().size(), kBad, "the model '{}' has {} inputs, it is given {}",
          printable(model.name), plan.inputs().size(), inputs.size());
  for (size_t i = 0; i < plan.inputs().size(); ++i) {
    const size_t layer = plan.inputs()[i];
    made[layer] = {{outermost ? model_input(plan.layers()[layer]) : inputs[i]}};
  }
  const auto tensor_of = [&](const TensorReference& reference) {
    const auto [layer, node] = plan.locate(reference);
    const std::vector<int>& outputs = made[layer][node];
    require(reference.output >= 0 && static_cast<size_t>(reference.output) < outputs.size(), kBad,
            "'{}' has {} outputs, number {} is used", printable(reference.layer), outputs.size(), reference.output);
    return outputs[static_cast<size_t>(reference.output)];
  };
  for (const auto& [layer, node] : plan.order()) {
    Arguments arguments = plan.calls(layer)[node];
    resolve(arguments, tensor_of);
    made[layer][node] = call(plan.layers()[layer], arguments);
  }
  std::vector<int> outputs;
  for (const auto& [name, reference] : plan.outputs()) {
    outputs.push_back(tensor_of(reference));
    if (outermost) output_names_.push_back(name);
  }
  return outputs;
}

std::shared_ptr<ir::Graph> Importer::import(const Config& model) {
  Layer layer = describe_layer(model, {}, "");
  layer.address = {};
  if (layer.name.empty()) layer.name = "model";
  require(
      layer.config.is_list() || is_model(layer), ErrorCode::kUnsupported,
      "the model is of class '{}', whose code its file does not have: export it as a SavedModel (model.export(path)) "
      "and convert that. Files of Functional and Sequential models convert as they are",
      printable(layer.class_name));
  const std::vector<int> outputs = layer.config.is_list() ? run_sequential(layer, {}) : call(layer, Arguments{});
  require(outputs.size() == output_names_.size(), kBad, "the model has {} outputs and {} names for them",
          outputs.size(), output_names_.size());
  ops::SignatureNames named;
  const std::vector<std::string> names = unique_names(output_names_);
  for (size_t i = 0; i < outputs.size(); ++i) named.emplace_back(names[i], outputs[i]);
  return builder_.finish(input_names_, named);
}

std::shared_ptr<ir::Graph> import_keras(std::string_view config_json, const WeightSource& weights) {
  const Config config = Config::parse(config_json);
  ops::SizeSearch search;
  for (std::exception_ptr first;;) {
    Importer importer(weights, search.choices());
    // Keras 3 calls it batch_shape.
    importer.set_keras_2(config_json.find("\"batch_input_shape\"") != std::string_view::npos);
    try {
      return importer.import(config);
    } catch (const Error& error) {
      rethrow_if_fatal(error);
      if (!first) first = std::current_exception();
      if (!search.next(importer.conflict())) std::rethrow_exception(first);
    }
  }
}

}  // namespace leadline::keras
