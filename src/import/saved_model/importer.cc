// SPDX-License-Identifier: Apache-2.0
#include "import/saved_model/importer.h"

#include "core/error.h"
#include "import/saved_model/custom_op.h"
#include "import/saved_model/import.h"
#include "import/saved_model/op_call.h"
#include "ir/sources.h"

namespace leadline::saved_model {
namespace {

constexpr ErrorCode kBad = ErrorCode::kInvalidModel;
constexpr int kMaxBodyDepth = 32;
constexpr OpRow kCustomRow = {"", custom_op};
constexpr int kMaxTrials = 1000;  // a body in a body is tried as often as the one around it

DType dtype_of(TfType type, const std::string& what) {
  const auto dtype = to_dtype(type);
  require(dtype.has_value(), ErrorCode::kUnsupported, "{} has the type {}, which .tflite files do not have", what,
          tf_type_name(type));
  return *dtype;
}

}  // namespace

void Importer::count_trial() {
  require(++trials_ <= kMaxTrials, ErrorCode::kUnsupported, "loops in loops whose shapes change are nested too deep");
}

std::optional<DType> Importer::blank_list(int value) const {
  const auto it = blank_lists_.find(value);
  if (it == blank_lists_.end()) return {};
  return it->second;
}

int Importer::constant(int index) {
  if (const auto it = constants_.find(index); it != constants_.end()) return it->second;
  const FlatConstant& constant = model_.constants[static_cast<size_t>(index)];
  const DType dtype = dtype_of(constant.dtype, fmt::format("the constant '{}'", printable(constant.name)));
  const int value = dtype == DType::kString
                        ? builder_.constant(constant.name, dtype, constant.shape.dims, ir::read_all(*constant.source))
                        : builder_.constant(constant.name, dtype, constant.shape.dims, constant.source);
  return constants_[index] = value;
}

int Importer::value_of(const ValueRef& ref, const std::vector<std::vector<int>>& made, const std::vector<int>& inputs) {
  const auto index = static_cast<size_t>(ref.index);
  switch (ref.kind) {
    case ValueRef::Kind::kConstant:
      return constant(ref.index);
    case ValueRef::Kind::kInput:
      return inputs[index];
    case ValueRef::Kind::kNode:
      break;
  }
  const auto output = static_cast<size_t>(ref.output);
  require(output < made[index].size(), ErrorCode::kUnsupported, "output {} of a node that has {} here is used",
          ref.output, made[index].size());
  return made[index][output];
}

void Importer::run_node(const FlatFunction& function, size_t index, std::vector<std::vector<int>>& made,
                        const std::vector<int>& inputs) {
  const FlatNode& node = function.nodes[index];
  const std::string outer = emitter_.prefix();
  try {
    const OpRow* row = find_op(node.op);
    if (row == nullptr && allow_custom_ops_) row = &kCustomRow;
    require(row != nullptr, ErrorCode::kUnsupported,
            "Leadline has no conversion for this op; express it with other ops of TensorFlow, or let it become a "
            "custom op (allow_custom_ops) and register a kernel for it");
    const size_t slash = node.name.rfind('/');
    emitter_.set_prefix(slash == std::string::npos ? node.name : node.name.substr(0, slash));
    OpCall call(*this, emitter_, function, node, *row,
                [&](const ValueRef& ref) { return value_of(ref, made, inputs); });
    made[index] = row->emit(call);
  } catch (const BudgetError&) {
    throw;
  } catch (const Error& error) {
    if (located_) throw;
    located_ = true;
    throw Error(error.code(),
                fmt::format("node '{}' ({}): {}", printable(node.name), printable(std::string(node.op)), error.what()));
  }
  emitter_.set_prefix(outer);
}

std::vector<int> Importer::call(const FlatFunction& function, const std::vector<int>& inputs) {
  require(depth_ < kMaxBodyDepth, kBad, "functions are nested deeper than {}", kMaxBodyDepth);
  require(inputs.size() == function.inputs.size(), kBad, "the function '{}' takes {} inputs, it is given {}",
          printable(function.name), function.inputs.size(), inputs.size());
  ++depth_;
  std::vector<std::vector<int>> made(function.nodes.size());
  for (size_t i = 0; i < function.nodes.size(); ++i) run_node(function, i, made, inputs);
  std::vector<int> outputs;
  for (const ValueRef& ref : function.output_values) outputs.push_back(value_of(ref, made, inputs));
  --depth_;
  return outputs;
}

/// Opens nothing: writes the function into the open subgraph. Returns the names of inputs.
ops::SignatureNames Importer::signature(const std::string& key, const FlatFunction& function,
                                        ops::SignatureNames& outputs) {
  ops::SignatureNames names;
  std::vector<int> inputs;
  constants_.clear();
  blank_lists_.clear();
  for (const FlatTensor& tensor : function.inputs) {
    const std::string what = fmt::format("the input '{}' of the signature '{}'", printable(tensor.name), key);
    require(!tensor.shape.unknown_rank, ErrorCode::kUnsupported,
            "{} has an unknown rank; save the model with an input signature that has it", what);
    inputs.push_back(
        builder_.input(fmt::format("{}_{}:0", key, tensor.name), dtype_of(tensor.dtype, what), tensor.shape.dims));
    names.emplace_back(tensor.name, inputs.back());
  }
  if (uses_tables(function)) fill_tables();
  const std::vector<int> values = call(function, inputs);
  for (size_t i = 0; i < values.size(); ++i) outputs.emplace_back(function.outputs[i].name, values[i]);
  return names;
}

std::shared_ptr<ir::Graph> Importer::import() {
  require(!model_.signatures.empty(), ErrorCode::kInvalidArgument,
          "the model has no signatures; save it with signatures=");
  const auto function_of = [&](size_t i) -> const FlatFunction& {
    return model_.functions[static_cast<size_t>(model_.signatures[i].second)];
  };
  const std::string& key = model_.signatures[0].first;
  ops::SignatureNames first_outputs;
  const ops::SignatureNames first_inputs = signature(key, function_of(0), first_outputs);
  std::vector<ir::Signature> others;
  for (size_t i = 1; i < model_.signatures.size(); ++i) {
    ir::Signature other;
    other.key = model_.signatures[i].first;
    other.subgraph = builder_.begin_subgraph(other.key);
    other.inputs = signature(other.key, function_of(i), other.outputs);
    std::vector<int> values;
    for (const auto& [name, value] : other.outputs) values.push_back(value);
    builder_.end_subgraph(values);
    others.push_back(std::move(other));
  }
  std::shared_ptr<ir::Graph> graph = builder_.finish(first_inputs, first_outputs, key);
  graph->signatures.insert(graph->signatures.end(), others.begin(), others.end());
  return graph;
}

std::shared_ptr<ir::Graph> import_flat_model(const FlatModel& model, bool allow_custom_ops) {
  return Importer(model, allow_custom_ops).import();
}

std::shared_ptr<ir::Graph> import_saved_model(const std::string& directory, const ReadOptions& options) {
  return import_flat_model(read_saved_model(directory, options), options.allow_custom_ops);
}

}  // namespace leadline::saved_model
