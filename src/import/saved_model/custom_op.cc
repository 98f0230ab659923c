// SPDX-License-Identifier: Apache-2.0
// Ops of TensorFlow that Leadline has no conversion for, as custom ops: the op's name, its inputs, and a FlexBuffers
// map of its attributes, as tf.lite writes them. Attributes that are types or shapes are left out there, and here.
#include "import/saved_model/custom_op.h"

#include <algorithm>

#include "io/flexbuffer_map_builder.h"

namespace leadline::saved_model {
namespace {

int32_t option(std::string_view name, int64_t value) {
  require(value >= INT32_MIN && value <= INT32_MAX, ErrorCode::kUnsupported,
          "its attribute '{}' is {}, which does not fit into the options of a custom op", printable(name), value);
  return static_cast<int32_t>(value);
}

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

}  // namespace

Outputs custom_op(OpCall& call) {
  ops::NodeSpec spec;
  spec.op = std::string(call.node.op);
  spec.custom = true;
  spec.inputs = call.inputs;
  spec.custom_options = options_of(call.node.attrs);
  call.refuse_if(call.node.output_tensors.empty(), "has no outputs, or the model does not define it");
  for (const FlatTensor& tensor : call.node.output_tensors) {
    const auto dtype = to_dtype(tensor.dtype);
    call.refuse_if(!dtype, fmt::format("is to become a custom op, but the type of its output '{}' is not known, or "
                                       "none that .tflite files have",
                                       printable(tensor.name)));
    call.refuse_if(tensor.shape.unknown_rank,
                   "is to become a custom op, but the model does not say the rank of its results");
    spec.outputs.push_back({call.name(), *dtype, {}, Dims(tensor.shape.dims), {}});
  }
  return call.builder().add(std::move(spec));
}

}  // namespace leadline::saved_model
