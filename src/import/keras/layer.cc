// SPDX-License-Identifier: Apache-2.0
#include "import/keras/layer.h"

#include <cstring>

#include "core/join.h"
#include "import/keras/importer.h"

namespace leadline::keras {
namespace {

/// Vectors that are read while the graph is built: per channel, never whole kernels.
constexpr int64_t kMaxValues = 1 << 20;

bool fits(const Shape& shape, const Dims& expected) {
  if (static_cast<size_t>(shape.rank()) != expected.size()) return false;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int64_t size = expected[static_cast<size_t>(axis)];
    if (size != -1 && size != shape[axis]) return false;
  }
  return true;
}

ir::Source as_float32(const Weight& weight, std::string_view name) {
  if (weight.dtype == DType::kFloat32) return weight.source;
  require(ir::convertible(weight.dtype, DType::kFloat32), ErrorCode::kUnsupported,
          "variable '{}' has type {}, which cannot become float32", name, dtype_name(weight.dtype));
  return ir::converted_source(weight.source, weight.dtype, DType::kFloat32);
}

}  // namespace

const Argument* Arguments::find(size_t position, std::string_view name) const {
  const Argument* found = position < positional.size() ? &positional[position] : nullptr;
  for (const auto& [key, argument] : named) {
    if (key == name) found = &argument;
  }
  if (found == nullptr || (found->constant && found->constant->is_null())) return nullptr;
  return found;
}

void collect_tensors(const Argument& argument, std::vector<int>& out) {
  if (argument.tensor >= 0) out.push_back(argument.tensor);
  for (const Argument& item : argument.list) collect_tensors(item, out);
}

Call::Call(Importer& importer_in, Emitter& emitter, const Layer& layer_in, const Arguments& arguments_in)
    : importer(importer_in), e(emitter), layer(layer_in), config(layer_in.config), arguments(arguments_in) {
  for (const Argument& argument : arguments.positional) collect_tensors(argument, inputs);
  for (const auto& [key, argument] : arguments.named) {
    if (key != "mask") collect_tensors(argument, inputs);
  }
}

int Call::x() const { return input(0); }

int Call::mask() const {
  const Argument* given = arguments.find(SIZE_MAX, "mask");
  return given != nullptr && given->tensor >= 0 ? given->tensor : importer.mask_of(x());
}

int Call::input(size_t index) const {
  require(index < inputs.size(), kBad, "the layer is called with {} tensors, it needs {}", inputs.size(), index + 1);
  return inputs[index];
}

void Call::load() {
  if (weights_) return;
  weights_ = importer.weights().weights(layer.address);
  // Some saved paths keep the line before private attributes: "_query_dense".
  const size_t last = layer.address.path.rfind('/');
  if (!weights_->empty() || last == std::string::npos) return;
  LayerAddress as_private = layer.address;
  as_private.path.insert(last + 1, "_");
  weights_ = importer.weights().weights(as_private);
}

size_t Call::weight_count() { return weights().size(); }

const std::vector<Weight>& Call::weights() {
  load();
  return *weights_;
}

size_t Call::weight_rank(size_t index) {
  load();
  return index < weights_->size() ? static_cast<size_t>((*weights_)[index].shape.rank()) : 0;
}

const Weight& Call::weight(size_t index, std::string_view name, const Dims& expected) {
  load();
  require(index < weights_->size(), kBad,
          "variable {} ('{}') of the layer is missing: the weights have {} for it (path '{}'); save the model again "
          "with its weights",
          index, name, weights_->size(), printable(layer.address.path));
  const Weight& weight = (*weights_)[index];
  require(fits(weight.shape, expected), kBad, "variable '{}' has shape {}, the layer needs [{}]", name,
          weight.shape.to_string(), join(expected, ", "));
  require(weight.source != nullptr && storage_bytes(weight.dtype, weight.shape) == weight.source->bytes(), kBad,
          "variable '{}' of shape {} has {} bytes", name, weight.shape.to_string(),
          weight.source ? weight.source->bytes() : 0);
  return weight;
}

int Call::constant(size_t index, std::string_view name, const Dims& expected, const std::vector<int>& permutation,
                   const Dims& target) {
  const Weight& w = weight(index, name, expected);
  const std::string key =
      fmt::format("{}#{}:{}:{}", layer.address.path, index, join(permutation, ","), dtype_name(w.dtype));
  const ir::Source source = importer.shared_source(key, [&] {
    const ir::Source plain = as_float32(w, name);
    return permutation.empty() ? plain : ir::transposed_source(plain, w.shape, permutation, 4);
  });
  Dims dims = target;
  if (dims.empty()) {
    for (int axis = 0; axis < w.shape.rank(); ++axis) {
      dims.push_back(w.shape[permutation.empty() ? axis : permutation[static_cast<size_t>(axis)]]);
    }
  }
  return e.builder().constant(e.name(name), DType::kFloat32, dims, source);
}

std::vector<float> Call::values(size_t index, std::string_view name, const Dims& expected) {
  const Weight& w = weight(index, name, expected);
  require(w.shape.elements() <= kMaxValues, ErrorCode::kUnsupported, "variable '{}' has {} elements", name,
          w.shape.elements());
  const std::vector<std::byte> bytes = ir::read_all(*as_float32(w, name));
  std::vector<float> result(bytes.size() / sizeof(float));
  if (!result.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

Layer Call::inner(const Config& description, const std::string& part_name) const {
  return describe_layer(description, layer.address, part_name);
}

Layer Call::part(const std::string& part_name, const std::string& name) const {
  Layer result = layer;
  result.address.path += "/" + part_name;
  result.address.names.push_back(name);
  return result;
}

void Call::unsupported(std::string_view what) const {
  fail(ErrorCode::kUnsupported, "{} {}", layer.is_operation ? "the operation" : "the layer", what);
}

bool channels_first(const Call& call) { return call.config.text("data_format", "channels_last") == "channels_first"; }

}  // namespace leadline::keras
