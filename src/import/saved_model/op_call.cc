// SPDX-License-Identifier: Apache-2.0
#include "import/saved_model/op_call.h"

#include <cstring>

#include "import/saved_model/op_functions.h"

namespace leadline::saved_model {
namespace {

const AttrValue* attr_of(const FlatNode& node, std::string_view name, AttrValue::Kind kind) {
  const AttrValue* value = find_attr(node.attrs, name);
  if (value == nullptr || value->kind == AttrValue::Kind::kNone) return nullptr;
  require(value->kind == kind, kBad, "the attribute '{}' has the wrong kind of value", printable(std::string(name)));
  return value;
}

}  // namespace

int32_t small(int64_t value) {
  require(value >= INT32_MIN && value <= INT32_MAX, kBad, "a number of {} does not fit in 32 bits", value);
  return static_cast<int32_t>(value);
}

OpCall::OpCall(Importer& the_importer, Emitter& emitter, const FlatFunction& its_function, const FlatNode& its_node,
               const OpRow& its_row, Resolve resolve)
    : importer(the_importer),
      e(emitter),
      function(its_function),
      node(its_node),
      row(its_row),
      resolve_(std::move(resolve)) {
  for (const ValueRef& ref : node.inputs) inputs.push_back(resolve_(ref));
  if (row.variable != VariableUse::kValue) return;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (variable(i) != nullptr) inputs[i] = read_now(*this, i);
  }
}

const FlatNode* OpCall::variable(size_t i) const {
  if (i >= node.inputs.size() || node.inputs[i].kind != ValueRef::Kind::kNode) return nullptr;
  const ValueRef& ref = node.inputs[i];
  const FlatNode& maker = function.nodes[static_cast<size_t>(ref.index)];
  return maker.variable >= 0 ? &maker : nullptr;
}

int OpCall::in(size_t i) const {
  require(i < inputs.size(), kBad, "it has {} inputs, input {} is needed", inputs.size(), i);
  return inputs[i];
}

std::vector<int64_t> OpCall::ints(size_t i, const char* what) const {
  const auto known = e.builder().known_ints(in(i));
  if (!known) unsupported(fmt::format("has {} that is not constant; make it a constant in the model", what));
  return *known;
}

int64_t OpCall::integer(size_t i, const char* what) const {
  const std::vector<int64_t> known = ints(i, what);
  require(known.size() == 1, kBad, "{} has {} values, expected one", what, known.size());
  return known[0];
}

std::optional<float> OpCall::number(int value) const {
  const auto bytes = e.builder().known(value);
  if (!bytes || e.dtype(value) != DType::kFloat32 || bytes->size() != sizeof(float)) return {};
  float result = 0;
  std::memcpy(&result, bytes->data(), sizeof(float));
  return result;
}

int64_t OpCall::attr_int(std::string_view name, int64_t otherwise) const {
  const AttrValue* value = attr_of(node, name, AttrValue::Kind::kInt);
  return value == nullptr ? otherwise : value->i;
}

bool OpCall::attr_bool(std::string_view name, bool otherwise) const {
  const AttrValue* value = attr_of(node, name, AttrValue::Kind::kBool);
  return value == nullptr ? otherwise : value->b;
}

float OpCall::attr_float(std::string_view name, float otherwise) const {
  const AttrValue* value = attr_of(node, name, AttrValue::Kind::kFloat);
  return value == nullptr ? otherwise : value->f;
}

std::string OpCall::attr_text(std::string_view name, std::string_view otherwise) const {
  const AttrValue* value = attr_of(node, name, AttrValue::Kind::kString);
  return std::string(value == nullptr ? otherwise : value->s);
}

std::vector<int64_t> OpCall::attr_ints(std::string_view name) const {
  const AttrValue* value = attr_of(node, name, AttrValue::Kind::kList);
  return value == nullptr || value->parts == nullptr ? std::vector<int64_t>{} : value->parts->ints;
}

DType OpCall::attr_type(std::string_view name, DType otherwise) const {
  const AttrValue* value = attr_of(node, name, AttrValue::Kind::kType);
  if (value == nullptr) return otherwise;
  const TfType type = tf_type(static_cast<int32_t>(value->i));
  const auto dtype = to_dtype(type);
  if (!dtype) unsupported(fmt::format("has the type {}, which .tflite files do not have", tf_type_name(type)));
  return *dtype;
}

const FlatNode* OpCall::made_by(const ValueRef& ref, std::string_view op, size_t input_count) const {
  if (ref.kind != ValueRef::Kind::kNode) return nullptr;
  const FlatNode& maker = function.nodes[static_cast<size_t>(ref.index)];
  return maker.op == op && maker.inputs.size() == input_count ? &maker : nullptr;
}

int OpCall::sized(const char* op, std::vector<int> operands, DType dtype, const Dims& dims,
                  std::shared_ptr<const ir::Attributes> attributes, std::optional<ops::SizeSamples> samples) {
  ops::NodeSpec spec;
  spec.op = op;
  spec.inputs = std::move(operands);
  spec.outputs = {{name(), dtype, {}, dims, samples}};
  spec.attributes = std::move(attributes);
  return builder().add(std::move(spec))[0];
}

Dims OpCall::unknown_like(int sizes) const {
  const Dims shape = e.dims(sizes);
  require(shape.size() == 1, kBad, "its sizes are a tensor of rank {}, expected a vector", shape.size());
  refuse_if(shape[0] < 0, "makes a tensor whose rank is not known before a run");
  require(shape[0] <= kMaxRank, ErrorCode::kUnsupported, "its result has rank {}, Leadline handles up to {}", shape[0],
          kMaxRank);
  return Dims(static_cast<size_t>(shape[0]), -1);
}

int OpCall::zero_of(DType dtype) const {
  const std::vector<std::byte> zero(static_cast<size_t>(dtype_bits(dtype)) / 8);
  refuse_if(zero.empty(), fmt::format("needs a zero of type {}, which is not converted", dtype_name(dtype)));
  return e.builder().constant(e.name("Const"), dtype, {}, std::span<const std::byte>(zero));
}

int OpCall::one_of(DType dtype) const {
  if (dtype != DType::kBool) return e.cast(e.scalar(1.0F), dtype);
  return e.builder().constant(e.name("Const"), dtype, {}, std::vector<uint8_t>{1});
}

void OpCall::unsupported(std::string_view why) const { fail(ErrorCode::kUnsupported, "{}", why); }

void OpCall::require_channels_last() const {
  const std::string format = attr_text("data_format", "NHWC");
  refuse_if(format.find('C') != std::string::npos && format.back() != 'C',
            fmt::format("has the data format {}; build the model with channels last", printable(format)));
}

}  // namespace leadline::saved_model
