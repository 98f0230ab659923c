// SPDX-License-Identifier: Apache-2.0
// While, If and Case: their functions become subgraphs.
#include "import/saved_model/op_functions.h"
#include "ops/control_flow.h"

namespace leadline::saved_model {
namespace {

constexpr ErrorCode kBad = ErrorCode::kInvalidModel;

const FlatFunction& function_of(OpCall& call, size_t i) {
  require(i < call.node.functions.size(), kBad, "it has {} functions", call.node.functions.size());
  return call.importer.model().functions[static_cast<size_t>(call.node.functions[i])];
}

std::vector<Dims> dims_of(Emitter& e, const std::vector<int>& values) {
  std::vector<Dims> result;
  for (const int v : values) result.push_back(e.dims(v));
  return result;
}

/// Where two shapes differ the size is unknown; ranks must agree.
Dims common(const Dims& a, const Dims& b) {
  require(a.size() == b.size(), ErrorCode::kUnsupported,
          "its functions give results of rank {} and {}; LiteRT runs only results of one rank", a.size(), b.size());
  Dims result = a;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) result[i] = -1;
  }
  return result;
}

/// Sizes of the state of a loop: what TensorFlow knows to stay the same.
std::vector<Dims> loop_dims(OpCall& call) {
  std::vector<Dims> result = dims_of(call.e, call.inputs);
  const AttrValue* shapes = find_attr(call.node.attrs, "output_shapes");
  if (shapes == nullptr || shapes->parts == nullptr || shapes->parts->shapes.size() != result.size()) return result;
  for (size_t i = 0; i < result.size(); ++i) {
    const TensorShape& shape = shapes->parts->shapes[i];
    if (!shape.unknown_rank && shape.dims.size() == result[i].size()) result[i] = common(result[i], Dims(shape.dims));
  }
  return result;
}

using Emit = std::function<std::vector<int>(const std::vector<int>&)>;

std::vector<int> emit_if(OpCall& call, int condition, const std::vector<int>& arguments, const Emit& then_emit,
                         const Emit& else_emit) {
  Emitter& e = call.e;
  const std::vector<Dims> dims = dims_of(e, arguments);
  const std::string name = call.node.name;
  const Importer::Body then_body = call.importer.body(name + "_then", arguments, dims, then_emit);
  const Importer::Body else_body = call.importer.body(name + "_else", arguments, dims, else_emit);
  require(then_body.dims.size() == else_body.dims.size() && then_body.dtypes == else_body.dtypes, kBad,
          "its functions give different results");
  auto attributes = std::make_shared<ops::IfAttributes>();
  attributes->then_subgraph = then_body.subgraph;
  attributes->else_subgraph = else_body.subgraph;
  ops::NodeSpec spec;
  spec.op = "IF";
  spec.inputs = {condition};
  spec.inputs.insert(spec.inputs.end(), arguments.begin(), arguments.end());
  for (size_t i = 0; i < then_body.dims.size(); ++i) {
    spec.outputs.push_back({call.name(), then_body.dtypes[i], {}, common(then_body.dims[i], else_body.dims[i])});
  }
  spec.attributes = attributes;
  return call.builder().add(std::move(spec));
}

std::vector<int> rest(const std::vector<int>& values) { return {values.begin() + 1, values.end()}; }

/// Branches from `first` on; `arguments` begin with the number of the branch. Numbers out of range take the last.
std::vector<int> emit_case(OpCall& call, size_t first, const std::vector<int>& arguments) {
  Emitter& e = call.e;
  if (first + 1 == call.node.functions.size()) return call.importer.call(function_of(call, first), rest(arguments));
  const int taken = e.compare("EQUAL", arguments[0], e.integer(static_cast<int32_t>(first)));
  return emit_if(
      call, taken, arguments,
      [&](const std::vector<int>& inside) { return call.importer.call(function_of(call, first), rest(inside)); },
      [&](const std::vector<int>& inside) { return emit_case(call, first + 1, inside); });
}

}  // namespace

Outputs while_loop(OpCall& call) {
  const std::vector<Dims> dims = loop_dims(call);
  const auto emit = [&](size_t i) {
    return [&call, i](const std::vector<int>& inside) { return call.importer.call(function_of(call, i), inside); };
  };
  const Importer::Body condition = call.importer.body(call.node.name + "_cond", call.inputs, dims, emit(0));
  const Importer::Body body = call.importer.body(call.node.name + "_body", call.inputs, dims, emit(1));
  require(body.dims.size() == call.inputs.size(), kBad, "the body gives {} results for {} inputs", body.dims.size(),
          call.inputs.size());
  auto attributes = std::make_shared<ops::WhileAttributes>();
  attributes->cond_subgraph = condition.subgraph;
  attributes->body_subgraph = body.subgraph;
  ops::NodeSpec spec;
  spec.op = "WHILE";
  spec.inputs = call.inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    spec.outputs.push_back({call.name(), call.e.dtype(call.inputs[i]), {}, common(dims[i], body.dims[i])});
  }
  spec.attributes = attributes;
  return call.builder().add(std::move(spec));
}

Outputs if_else(OpCall& call) {
  Emitter& e = call.e;
  int condition = call.in();
  if (e.dtype(condition) != DType::kBool) {
    condition = e.compare("NOT_EQUAL", condition, e.scalar_like(condition, 0.0));
  }
  require(e.rank(condition) == 0, ErrorCode::kUnsupported, "the condition has rank {}, expected a scalar",
          e.rank(condition));
  const auto emit = [&](size_t i) {
    return [&call, i](const std::vector<int>& inside) { return call.importer.call(function_of(call, i), inside); };
  };
  return emit_if(call, condition, rest(call.inputs), emit(0), emit(1));
}

Outputs switch_case(OpCall& call) {
  require(!call.node.functions.empty() && call.node.functions.size() <= 16, ErrorCode::kUnsupported,
          "it has {} branches; Leadline converts 1 to 16", call.node.functions.size());
  call.in();
  return emit_case(call, 0, call.inputs);
}

}  // namespace leadline::saved_model
