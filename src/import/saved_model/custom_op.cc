// SPDX-License-Identifier: Apache-2.0
// Ops of TensorFlow that Leadline has no conversion for. As custom ops: the op's name, its inputs, and a FlexBuffers
// map of its attributes, as tf.lite writes them. Attributes that are types or shapes are left out there, and here. As
// TensorFlow's own ops (Flex): the attributes are a NodeDef, with everything that the model says.
#include "import/saved_model/custom_op.h"

#include <algorithm>

#include "io/flexbuffer_map_builder.h"
#include "ops/flex/node_def_writer.h"

namespace leadline::saved_model {
namespace {

int32_t option(std::string_view name, int64_t value) {
  require(value >= INT32_MIN && value <= INT32_MAX, ErrorCode::kUnsupported,
          "its attribute '{}' is {}, which does not fit into the options of a custom op", printable(name), value);
  return static_cast<int32_t>(value);
}

std::string flex_name(std::string_view op) { return fmt::format("Flex{}", op); }

std::vector<std::byte> options_of(const Attrs& attrs) {
  std::vector<FlexEntry> entries;
  for (const Attr& attr : attrs) {
    const std::string name(attr.name);
    const bool named_before = std::any_of(entries.begin(), entries.end(), [&](auto& e) { return e.first == name; });
    if (named_before || name.find('\0') != std::string::npos) continue;
    switch (attr.value.kind) {
      case AttrValue::Kind::kString:
        entries.emplace_back(name, std::string(attr.value.s));
        break;
      case AttrValue::Kind::kInt:
        entries.emplace_back(name, option(name, attr.value.i));
        break;
      case AttrValue::Kind::kFloat:
        entries.emplace_back(name, attr.value.f);
        break;
      case AttrValue::Kind::kBool:
        entries.emplace_back(name, attr.value.b);
        break;
      case AttrValue::Kind::kList: {
        std::vector<int32_t> numbers;
        for (const int64_t number : attr.value.parts->ints) numbers.push_back(option(name, number));
        const bool other = !attr.value.parts->floats.empty() || !attr.value.parts->strings.empty();
        require(!other, ErrorCode::kUnsupported,
                "its attribute '{}' is a list of other things than integers, which the options of a custom op do not "
                "hold here",
                printable(name));
        entries.emplace_back(name, std::move(numbers));
        break;
      }
      default:
        break;
    }
  }
  std::sort(entries.begin(), entries.end(), [](auto& a, auto& b) { return a.first < b.first; });
  return build_flex_map(entries);
}

/// The attribute as it is in the file; values that were filled in later have no message there.
void write_attr(OpCall& call, ops::NodeDefWriter& writer, const Attr& attr) {
  const AttrValue& value = attr.value;
  if (!value.message.empty()) {
    writer.written(attr.name, {reinterpret_cast<const char*>(value.message.data()), value.message.size()});
    return;
  }
  switch (value.kind) {
    case AttrValue::Kind::kString:
      writer.text(attr.name, value.s);
      break;
    case AttrValue::Kind::kInt:
      writer.integer(attr.name, value.i);
      break;
    case AttrValue::Kind::kFloat:
      writer.number(attr.name, value.f);
      break;
    case AttrValue::Kind::kBool:
      writer.flag(attr.name, value.b);
      break;
    case AttrValue::Kind::kType:
      writer.type(attr.name, static_cast<uint64_t>(value.i));
      break;
    default:
      call.refuse_if(value.kind != AttrValue::Kind::kNone,
                     fmt::format("is to stay TensorFlow's own op, but its attribute '{}' cannot be written",
                                 printable(attr.name)));
  }
}

/// What the model says of the results. Ranks may be unknown only where `inferred`: a row of Leadline's finds the
/// shapes.
std::vector<ops::NodeOutput> outputs_of(OpCall& call, const char* becomes, bool inferred) {
  call.refuse_if(call.node.output_tensors.empty(), "has no outputs, or the model does not define it");
  std::vector<ops::NodeOutput> outputs;
  for (const FlatTensor& tensor : call.node.output_tensors) {
    const auto dtype = to_dtype(tensor.dtype);
    call.refuse_if(!dtype, fmt::format("is to {}, but the type of its output '{}' is not known, or none that .tflite "
                                       "files have",
                                       becomes, printable(tensor.name)));
    call.refuse_if(tensor.shape.unknown_rank && !inferred,
                   fmt::format("is to {}, but the model does not say the rank of its results", becomes));
    ops::NodeOutput output{call.name(), *dtype, {}, {}, {}};
    if (!tensor.shape.unknown_rank) output.dims = Dims(tensor.shape.dims);
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace

Outputs custom_op(OpCall& call) {
  ops::NodeSpec spec;
  spec.op = std::string(call.node.op);
  spec.custom = true;
  spec.inputs = call.inputs;
  spec.custom_options = options_of(call.node.attrs);
  spec.outputs = outputs_of(call, "become a custom op", false);
  return call.builder().add(std::move(spec));
}

bool runs_as_flex(std::string_view op) { return ops::registry().find(ir::OpId::custom(flex_name(op))) != nullptr; }

Outputs flex_op(OpCall& call) {
  ops::NodeDefWriter writer{std::string(call.node.op)};
  writer.name(call.node.name);
  for (const Attr& attr : call.node.attrs) write_attr(call, writer, attr);
  ops::NodeSpec spec;
  spec.op = flex_name(call.node.op);
  spec.custom = true;
  spec.inputs = call.inputs;
  spec.custom_options = writer.options();
  spec.outputs = outputs_of(call, "stay TensorFlow's own op", runs_as_flex(call.node.op));
  return call.builder().add(std::move(spec));
}

}  // namespace leadline::saved_model
