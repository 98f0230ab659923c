// SPDX-License-Identifier: Apache-2.0
#include "import/saved_model/importer.h"

#include <algorithm>
#include <exception>
#include <set>

#include "core/error.h"
#include "core/rethrow_if_fatal.h"
#include "import/saved_model/custom_op.h"
#include "import/saved_model/import.h"
#include "import/saved_model/op_functions.h"
#include "ir/sources.h"

namespace leadline::saved_model {
namespace {

constexpr int kMaxBodyDepth = 32;
constexpr OpRow kCustomRow = {"", custom_op};
constexpr OpRow kFlexRow = {"", flex_op};

/// How an op without a conversion is written; null when that is not allowed.
const OpRow* foreign_row(std::string_view op, ForeignOps allowed) {
  if (allowed.select_tf_ops && (runs_as_flex(op) || !allowed.allow_custom_ops)) return &kFlexRow;
  return allowed.allow_custom_ops ? &kCustomRow : nullptr;
}
constexpr int kMaxTrials = 1000;  // a body in a body is tried as often as the one around it

DType dtype_of(TfType type, const std::string& what) {
  const auto dtype = to_dtype(type);
  require(dtype.has_value(), ErrorCode::kUnsupported, "{} has the type {}, which .tflite files do not have", what,
          tf_type_name(type));
  return *dtype;
}

/// Numbers of the tensors in the order of `given`, each with the name it has there; those that it does not list follow.
std::vector<std::pair<size_t, std::string>> in_order(const std::vector<FlatTensor>& tensors,
                                                     const std::vector<std::pair<std::string, std::string>>& given) {
  std::vector<std::pair<size_t, std::string>> order;
  std::set<size_t> taken;
  for (const auto& [key, name] : given) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].name == key && taken.insert(i).second) order.emplace_back(i, name);
    }
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!taken.contains(i)) order.emplace_back(i, "");
  }
  return order;
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

int Importer::make_pair(int real, int imaginary) {
  pairs_.emplace_back(real, imaginary);
  return kFirstPair - (static_cast<int>(pairs_.size()) - 1);
}

/// Ops on complex numbers that are kept in two parts have functions of their own, or do the same to either.
std::vector<int> Importer::emit(OpCall& call) {
  const auto complex = [&](int value) {
    return is_pair(value) || (value >= 0 && builder_.value(value).dtype == DType::kComplex64);
  };
  const bool any = std::any_of(call.inputs.begin(), call.inputs.end(), complex);
  const std::string_view op = call.node.op;
  const bool casts = op == "Cast" && call.attr_type("DstT", DType::kFloat32) == DType::kComplex64;
  if (!any && !casts) return call.row.emit(call);
  if (op == "Cast") return complex_cast(call);
  const bool pairs = std::any_of(call.inputs.begin(), call.inputs.end(), [&](int value) { return is_pair(value); });
  if (acts_on_parts(op, pairs)) return on_parts(call);
  for (const char* own : {"Mul", "RealDiv", "Div", "Exp", "Square", "MatMul", "BatchMatMul", "BatchMatMulV2",
                          "BatchMatMulV3", "Einsum"}) {
    if (op == own) return complex_arithmetic(call);
  }
  if (op == "Shape" || op == "Rank" || op == "Size") {
    if (is_pair(call.inputs[0])) call.inputs[0] = pair(call.inputs[0]).first;
    return call.row.emit(call);
  }
  const auto emit = call.row.emit;
  call.refuse_if(pairs && emit != complex_part_of && emit != fourier && emit != inverse_real_fourier,
                 "computes with complex numbers, which is not converted; give it tf.math.real and tf.math.imag");
  return call.row.emit(call);
}

/// An op whose conversion does not take its types (numbers of float64, strings) stays TensorFlow's own where that is
/// allowed and Leadline runs it. What its conversion had added by then is not used by anything, and removed as such.
Outputs Importer::emit_or_keep(OpCall& call) {
  if (!foreign_.select_tf_ops || !runs_as_flex(call.node.op)) return emit(call);
  try {
    return emit(call);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported || located_) throw;
    return flex_op(call);
  }
}

void Importer::run_node(const FlatFunction& function, size_t index, std::vector<std::vector<int>>& made,
                        const std::vector<int>& inputs) {
  const FlatNode& node = function.nodes[index];
  const std::string outer = emitter_.prefix();
  try {
    const OpRow* row = find_op(node.op);
    if (row == nullptr) row = foreign_row(node.op, foreign_);
    require(row != nullptr, ErrorCode::kUnsupported,
            "Leadline has no conversion for this op; express it with other ops of TensorFlow, let it stay TensorFlow's "
            "own (SELECT_TF_OPS in target_spec.supported_ops, select_tf_ops), or let it become a custom op "
            "(allow_custom_ops) and register a kernel for it");
    const size_t slash = node.name.rfind('/');
    emitter_.set_prefix(slash == std::string::npos ? node.name : node.name.substr(0, slash));
    OpCall call(*this, emitter_, function, node, *row,
                [&](const ValueRef& ref) { return value_of(ref, made, inputs); });
    const int first_new = builder_.value_count();
    made[index] = emit_or_keep(call);
    name_results(node, made[index], first_new);
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

/// What a node makes is called as TensorFlow calls it: "scope/node", and "scope/node:1" for its second result.
void Importer::name_results(const FlatNode& node, const std::vector<int>& results, int first_new) {
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i] < first_new) continue;  // a tensor that was there before: its node only handed it on
    builder_.rename(results[i], i == 0 ? node.name : fmt::format("{}:{}", node.name, i));
  }
}

/// Outputs have the names that the main graph or the caller has for them, unless they are inputs or constants too.
void Importer::name_outputs(const FlatFunction& function, const std::vector<int>& values) {
  std::set<int> named;
  for (size_t i = 0; i < values.size(); ++i) {
    const ir::Value& value = builder_.value(values[i]);
    if (value.constant || builder_.is_input(values[i]) || !named.insert(values[i]).second) continue;
    std::string name = function.outputs[i].tensor;
    for (const auto& [key, given] : interface_.outputs) {
      if (key == function.outputs[i].name) name = given;
    }
    if (!name.empty()) builder_.rename(values[i], name);
  }
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
  inputs.resize(function.inputs.size());
  for (const auto& [number, given] : in_order(function.inputs, interface_.inputs)) {
    const FlatTensor& tensor = function.inputs[number];
    const std::string what = fmt::format("the input '{}' of the signature '{}'", printable(tensor.name), key);
    const DType dtype = dtype_of(tensor.dtype, what);
    std::string name = given;
    if (name.empty()) name = tensor.tensor.empty() ? fmt::format("{}_{}:0", key, tensor.name) : tensor.tensor;
    inputs[number] = tensor.shape.unknown_rank ? builder_.unranked_input(name, dtype)
                                               : builder_.input(name, dtype, tensor.shape.dims);
    names.emplace_back(tensor.name, inputs[number]);
  }
  if (keeps_state(function)) fill_state();
  const std::vector<int> values = call(function, inputs);
  for (size_t i = 0; i < values.size(); ++i) {
    require(!is_pair(values[i]), ErrorCode::kUnsupported,
            "the output '{}' of the signature '{}' is complex; return tf.math.real and tf.math.imag of it",
            printable(function.outputs[i].name), key);
  }
  name_outputs(function, values);
  for (const auto& [number, given] : in_order(function.outputs, interface_.outputs)) {
    outputs.emplace_back(function.outputs[number].name, values[number]);
  }
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

std::shared_ptr<ir::Graph> import_flat_model(const FlatModel& model, ForeignOps foreign,
                                             const PlainInterface& interface) {
  require(interface.empty() || model.signatures.size() == 1, ErrorCode::kInvalidArgument,
          "an interface of its own is for models with one signature, this one has {}", model.signatures.size());
  ops::SizeSearch search;
  for (std::exception_ptr first;;) {
    Importer importer(model, foreign, interface, search.choices());
    try {
      return importer.import();
    } catch (const Error& error) {
      rethrow_if_fatal(error);
      if (!first) first = std::current_exception();
      if (!search.next(importer.conflict())) std::rethrow_exception(first);
    }
  }
}

std::shared_ptr<ir::Graph> import_saved_model(const std::string& directory, const ReadOptions& options) {
  return import_flat_model(read_saved_model(directory, options), {.allow_custom_ops = options.allow_custom_ops});
}

}  // namespace leadline::saved_model
