// SPDX-License-Identifier: Apache-2.0
// Variables that a model changes: VAR_HANDLE, READ_VARIABLE and ASSIGN_VARIABLE, and the subgraph that gives them the
// values they were saved with, once, before anything reads them.
#include <set>

#include "import/saved_model/op_functions.h"
#include "ops/variables.h"

namespace leadline::saved_model {
namespace {

/// Reads a variable now. Its sizes are those that every assignment keeps.
int read(OpCall& call, int handle, const FlatNode& variable) {
  const FlatConstant& saved = call.importer.model().constants[static_cast<size_t>(variable.variable)];
  const auto dtype = to_dtype(saved.dtype);
  call.refuse_if(!dtype,
                 fmt::format("is a variable of type {}, which .tflite files do not have", tf_type_name(saved.dtype)));
  Dims dims = saved.shape.dims;
  if (const AttrValue* shape = find_attr(variable.attrs, "shape"); shape && shape->kind == AttrValue::Kind::kShape) {
    call.refuse_if(shape->shape().unknown_rank, "changes a variable of unknown rank");
    if (shape->shape().dims.size() == dims.size()) dims = shape->shape().dims;
  }
  return call.sized("READ_VARIABLE", {handle}, *dtype, dims);
}

void assign(OpCall& call, int handle, int value) {
  ops::NodeSpec spec;
  spec.op = "ASSIGN_VARIABLE";
  spec.inputs = {handle, value};
  call.builder().add(std::move(spec));
}

const FlatNode& variable_of(const OpCall& call) {
  const FlatNode* variable = call.variable(0);
  require(variable != nullptr, ErrorCode::kUnsupported, "the variable is not known before running");
  return *variable;
}

}  // namespace

Outputs variable_handle(OpCall& call) {
  require(call.node.variable >= 0, ErrorCode::kInvalidModel, "it is not a variable of the model");
  return {call.importer.variable_handle(call.node.variable)};
}

Outputs read_variable(OpCall& call) { return {read(call, call.in(0), variable_of(call))}; }

Outputs assign_variable(OpCall& call) {
  assign(call, call.in(0), call.in(1));
  return {};
}

Outputs update_variable(OpCall& call) {
  const int before = read(call, call.in(0), variable_of(call));
  assign(call, call.in(0), call.e.binary(call.row.target, before, call.in(1)));
  return {};
}

/// ResourceScatterUpdate takes indices of rows, ResourceScatterNdUpdate vectors of indices as TensorScatterUpdate does.
Outputs scatter_into_variable(OpCall& call) {
  const int before = read(call, call.in(0), variable_of(call));
  int indices = call.in32(1);
  if (!call.node.op.starts_with("ResourceScatterNd")) {
    call.refuse_if(call.e.rank(call.in(2)) == 0, "scatters one number over whole rows; give it a row for each");
    indices = call.e.expand_dims(indices, call.e.rank(indices));
  }
  assign(call, call.in(0), scattered_into(call, before, indices, call.in(2)));
  return {};
}

Outputs slice_into_variable(OpCall& call) {
  assign(call, call.in(0), with_slice_replaced(call, read(call, call.in(0), variable_of(call))));
  return {};
}

int read_now(OpCall& call, size_t i) { return read(call, call.in(i), *call.variable(i)); }

int Importer::variable_handle(int constant) {
  ops::VarHandleAttributes attributes;
  attributes.shared_name = model_.constants[static_cast<size_t>(constant)].name;
  return builder_.node("VAR_HANDLE", {}, emitter_.name("VarHandleOp"),
                       std::make_shared<ops::VarHandleAttributes>(attributes), DType::kResource);
}

/// In the open subgraph, which is the one that runs once.
void Importer::fill_variables() {
  std::set<int> filled;
  for (const FlatFunction& function : model_.functions) {
    for (const FlatNode& node : function.nodes) {
      if (node.variable < 0 || !filled.insert(node.variable).second) continue;
      ops::NodeSpec spec;
      spec.op = "ASSIGN_VARIABLE";
      spec.inputs = {variable_handle(node.variable), constant(node.variable)};
      builder_.add(std::move(spec));
    }
  }
}

}  // namespace leadline::saved_model
