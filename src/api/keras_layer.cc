// SPDX-License-Identifier: Apache-2.0
// Between the public interface of user-defined Keras layers and the importer's.
#include "leadline/keras_layer.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "api/attribute_setter.h"
#include "api/keras_weight.h"
#include "api/op_names.h"
#include "core/boundary.h"
#include "core/error.h"
#include "import/keras/custom_layers.h"
#include "import/keras/importer.h"
#include "ir/sources.h"
#include "ops/cast.h"
#include "ops/registry.h"

namespace leadline {
namespace {

constexpr int kMaxOutputs = 4096;

class LayerCall final : public KerasLayer {
 public:
  explicit LayerCall(keras::Call& call)
      : call_(call), class_name_(call.layer.class_name.substr(call.layer.class_name.rfind('>') + 1)) {}

  const std::string& name() const override { return call_.layer.name; }
  const std::string& class_name() const override { return class_name_; }
  const std::string& path() const override { return call_.layer.address.path; }
  std::string config() const override { return call_.config.dump(); }
  const std::vector<int>& inputs() const override { return call_.inputs; }
  int mask() const override { return call_.inputs.empty() ? -1 : call_.mask(); }

  std::vector<KerasWeight> weights(const std::string& part) override {
    keras::LayerAddress address = call_.layer.address;
    if (!part.empty()) {
      address.path += "/" + part;
      address.names.push_back(part.substr(part.rfind('/') + 1));
    }
    std::vector<KerasWeight> result;
    for (const keras::Weight& weight : call_.importer.weights().weights(address)) {
      result.push_back(make_weight(weight, fmt::format("{}#{}:user", address.path, result.size())));
    }
    return result;
  }

  KerasTensor tensor(int index) const override {
    const keras::Dims dims = call_.e.builder().dims(index);  // checks the index
    const ir::Value& value = call_.e.builder().value(index);
    return {value.name, value.dtype, {dims.begin(), dims.end()}};
  }

  int add_constant(const std::string& name, const KerasWeight& weight) override {
    const KerasWeight::Data& data = weight.data();
    // A layer that is called twice has its weights once.
    const ir::Source source =
        data.key.empty() ? data.source : call_.importer.shared_source(data.key, [&] { return data.source; });
    return call_.e.builder().constant(call_.e.name(name), data.dtype, data.shape, source);
  }

  int add_constant(const std::string& name, DType dtype, const Shape& shape, std::span<const std::byte> data) override {
    return call_.e.builder().constant(call_.e.name(name), dtype, shape, data);
  }

  std::vector<int> add_node(const KerasNode& node) override;

  std::vector<int> add_layer(const std::string& part, const std::string& description,
                             const std::vector<int>& inputs) override {
    require(!part.empty(), kBadArgument, "a layer inside another needs the attribute that holds it, such as \"dense\"");
    for (const int tensor : inputs) static_cast<void>(call_.e.builder().dims(tensor));
    const keras::Layer inner = call_.inner(keras::Config::parse(description), part);
    return call_.importer.call(inner, inputs);
  }

 private:
  keras::Call& call_;
  const std::string class_name_;  // without the package that Keras 2 and legacy files put before it
};

std::vector<int> LayerCall::add_node(const KerasNode& node) {
  const ops::OpDef* row = ops::registry().find_named(node.op);
  require(!node.op.empty(), kBadArgument, "a node needs the name of its op");
  require(node.outputs >= 1 && node.outputs <= kMaxOutputs, kBadArgument, "{}: a node with {} outputs", node.op,
          node.outputs);
  const auto count = static_cast<size_t>(node.outputs);
  require(node.dtypes.empty() || node.dtypes.size() == count, kBadArgument, "{}: {} types for {} outputs", node.op,
          node.dtypes.size(), count);
  require(node.dims.empty() || node.dims.size() == count, kBadArgument, "{}: {} shapes for {} outputs", node.op,
          node.dims.size(), count);
  require(row != nullptr || !node.dims.empty(), kBadArgument,
          "the format has no op called '{}': {} A custom op needs the shapes of its outputs", node.op,
          suggest_ops(node.op));
  const DType first = node.inputs.empty() || node.inputs[0] < 0 ? DType::kFloat32 : tensor(node.inputs[0]).dtype;
  const DType usual = row != nullptr ? row->result_type.value_or(first) : first;

  std::unique_ptr<ir::Attributes> attributes =
      row == nullptr ? std::make_unique<ir::NoAttributes>() : ops::new_attributes(*row);
  if (auto* cast = dynamic_cast<ops::CastAttributes*>(attributes.get())) {
    require(node.dtypes.size() == 1, kBadArgument, "CAST: the type of the result is missing");
    cast->in_data_type = first;
    cast->out_data_type = node.dtypes[0];
  }
  AttributeSetter setter(node.op, node.attributes);
  attributes->visit(setter);
  setter.require_all_used();

  ops::NodeSpec spec;
  spec.op = node.op;
  spec.inputs = node.inputs;
  for (size_t i = 0; i < count; ++i) {
    ops::NodeOutput output;
    output.name = call_.e.name(node.name.empty() ? node.op : node.name);
    output.dtype = !node.dtypes.empty() ? node.dtypes[i] : usual;
    if (!node.dims.empty()) output.dims = ops::Dims(node.dims[i]);
    spec.outputs.push_back(std::move(output));
  }
  spec.attributes = std::move(attributes);
  spec.version = node.version;
  spec.custom_options = node.custom_options;
  return call_.e.builder().add(std::move(spec));
}

/// Calls the user's function. What it throws becomes an Error with the original nested in it.
std::vector<int> call_function(const KerasLayerFunction& function, keras::Call& call) {
  std::vector<int> outputs;
  try {
    LayerCall layer(call);
    outputs = function(layer);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    std::throw_with_nested(Error(ErrorCode::kRuntime, error.what()));
  } catch (...) {
    if (std::current_exception() == nullptr) throw;  // the thread is being ended: not for us to stop
    std::throw_with_nested(Error(ErrorCode::kRuntime, "the function threw something that is not a std::exception"));
  }
  require(!outputs.empty(), kBadArgument, "the function that was registered for the layer returned no tensor");
  for (const int tensor : outputs) static_cast<void>(call.e.builder().dims(tensor));
  return outputs;
}

}  // namespace

void register_keras_layer(const std::string& name, KerasLayerFunction function) try {
  require(function != nullptr, kBadArgument, "a Keras layer is registered with a function");
  keras::register_custom_layer(
      name, [function = std::move(function)](keras::Call& call) { return call_function(function, call); });
} catch (...) {
  rethrow_as_error();
}

bool unregister_keras_layer(std::string_view name) try { return keras::unregister_custom_layer(name); } catch (...) {
  rethrow_as_error();
}

std::vector<std::string> registered_keras_layers() try { return keras::custom_layers(); } catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
