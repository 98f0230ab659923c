// SPDX-License-Identifier: Apache-2.0
// Between the public interface of user-defined ops and the engine's: views in, results out, exceptions named.
#include "leadline/custom_op.h"

#include <exception>
#include <new>

#include "core/boundary.h"
#include "core/error.h"
#include "core/string_tensor.h"
#include "ops/user_ops.h"

namespace leadline {
namespace {

constexpr ErrorCode kModel = ErrorCode::kInvalidModel;
/// Calls code of the user; what it throws gets the node's name in front.
template <typename Body>
void call_user(const std::string& node, const Body& body) {
  try {
    body();
  } catch (const BudgetError& error) {
    throw BudgetError(fmt::format("{}: {}", node, error.what()), error.needed(), error.limit());
  } catch (const Error& error) {
    std::throw_with_nested(Error(error.code(), fmt::format("{}: {}", node, error.what())));
  } catch (const std::bad_alloc&) {
    throw_out_of_memory();
  } catch (const std::exception& error) {
    std::throw_with_nested(Error(ErrorCode::kRuntime, fmt::format("{}: {}", node, error.what())));
  } catch (...) {
    if (std::current_exception() == nullptr) throw;  // the thread is being ended: not for us to stop
    std::throw_with_nested(
        Error(ErrorCode::kRuntime, fmt::format("{}: the op threw something that is not a std::exception", node)));
  }
}

void describe(OpTensor& tensor, const ir::Value& value) {
  tensor.present = true;
  tensor.name = value.name;
  tensor.dtype = value.dtype;
  tensor.shape = value.shape;
  tensor.scales = value.quantization.scale;
  tensor.zero_points = value.quantization.zero_point;
  tensor.quantized_dimension = value.quantization.axis;
}

class Node final : public ops::UserNode {
 public:
  Node(const CustomOpFactory& factory, const ir::Subgraph& subgraph, int index)
      : description_(ir::describe_node(subgraph, index)) {
    const ir::Node& node = subgraph.nodes[static_cast<size_t>(index)];
    info_.op = node.op.name();
    info_.index = index;
    if (!node.outputs.empty()) info_.name = subgraph.value(node.outputs[0]).name;
    info_.version = node.version;
    info_.options = OpOptions(node.custom_options);
    call_user(description_, [&] {
      op_ = factory(info_);
      leadline::require(op_ != nullptr, kBadArgument, "the factory of the op returned no object");
    });
  }

  void infer(ops::InferContext& context) override;
  std::unique_ptr<ops::Kernel> prepare(ops::PrepareContext& context) override;
  void reset() override {
    call_user(description_, [&] { op_->reset(); });
  }

 private:
  void run(ops::RunContext& context);
  void take_shapes(const InferCall& call, ops::InferContext& context) const;

  const std::string description_;
  OpNode info_;
  std::unique_ptr<CustomOp> op_;
  // Of the last infer(); prepare() follows it.
  int64_t scratch_bytes_ = 0;
  int64_t kept_bytes_ = 0;
};

void Node::infer(ops::InferContext& context) {
  std::vector<OpTensor> inputs(static_cast<size_t>(context.input_count()));
  std::vector<OpTensor> outputs(static_cast<size_t>(context.output_count()));
  bool all_known = true;
  for (int i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i)) continue;
    const ops::Operand& operand = context.input(i);
    OpTensor& tensor = inputs[static_cast<size_t>(i)];
    describe(tensor, *operand.value);
    tensor.shape = operand.shape;
    tensor.known = operand.known;
    if (operand.known) tensor.data = {operand.data, static_cast<size_t>(operand.bytes)};
    all_known = all_known && operand.known;
  }
  for (int i = 0; i < context.output_count(); ++i) {
    describe(outputs[static_cast<size_t>(i)], *context.output(i).value);
  }
  InferCall call(info_, std::move(inputs), std::move(outputs),
                 [&](bool leave) { return context.host().hold_memory(leave); });
  call_user(description_, [&] { op_->infer(call); });
  scratch_bytes_ = call.scratch_bytes();
  kept_bytes_ = call.persistent_bytes();
  if (call.deferred()) {
    if (all_known) context.fail(kBadArgument, "the op waits for data though all its inputs are known");
    context.defer();
    return;
  }
  take_shapes(call, context);
}

void Node::take_shapes(const InferCall& call, ops::InferContext& context) const {
  for (int i = 0; i < context.output_count(); ++i) {
    const std::optional<Shape>& shape = call.shapes()[static_cast<size_t>(i)];
    if (!shape) {
      context.fail(kBadArgument, "the op returned no shape for output {} '{}'", i, context.output(i).value->name);
    }
    context.set_output_shape(i, *shape);
    if (dtype_bits(context.output(i).dtype()) > 0) continue;
    const int64_t bytes = call.string_bytes()[static_cast<size_t>(i)];
    if (bytes < 0) {
      context.fail(kBadArgument, "the op returned no size in bytes for output {} '{}' of type {}", i,
                   context.output(i).value->name, dtype_name(context.output(i).dtype()));
    }
    context.set_output_bytes(i, bytes);
  }
}

std::unique_ptr<ops::Kernel> Node::prepare(ops::PrepareContext& context) {
  context.request_scratch(scratch_bytes_);
  context.request_persistent(kept_bytes_);
  return ops::make_kernel([this](ops::RunContext& run_context) { run(run_context); });
}

void Node::run(ops::RunContext& context) {
  const auto view = [](OpTensor& tensor, const TensorView& source) {
    tensor.present = true;
    tensor.dtype = source.dtype;
    tensor.shape = source.shape;
    tensor.scales = source.quantization->scale;
    tensor.zero_points = source.quantization->zero_point;
    tensor.quantized_dimension = source.quantization->axis;
    tensor.known = true;
    tensor.data = {source.data, static_cast<size_t>(source.bytes)};
  };
  std::vector<OpTensor> inputs(static_cast<size_t>(context.input_count()));
  std::vector<OpOutput> outputs(static_cast<size_t>(context.output_count()));
  for (int i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i)) continue;
    view(inputs[static_cast<size_t>(i)], context.input(i));
    inputs[static_cast<size_t>(i)].name = context.input_name(i);
  }
  for (int i = 0; i < context.output_count(); ++i) {
    OpOutput& output = outputs[static_cast<size_t>(i)];
    view(output, context.output(i));
    output.name = context.output_name(i);
    output.address = context.output(i).data;
  }
  RunCall call(info_, std::move(inputs), std::move(outputs), {context.scratch(), static_cast<size_t>(scratch_bytes_)},
               {context.persistent(), static_cast<size_t>(kept_bytes_)},
               [&](bool leave) { return context.host().hold_memory(leave); });
  call_user(description_, [&] { op_->run(call); });
}

}  // namespace

void OpTensor::check_elements(size_t bytes, bool floating) const {
  const bool is_float = dtype == DType::kFloat32 || dtype == DType::kFloat64;
  const bool is_raw = dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype_bits(dtype) < 8;
  require(known, kBadArgument, "the data of tensor '{}' is not known yet", name);
  const bool sized = is_raw ? bytes == 1 || bytes * 8 == static_cast<size_t>(dtype_bits(dtype))
                            : bytes * 8 == static_cast<size_t>(dtype_bits(dtype));
  require((sized && is_float == floating) || (bytes == 1 && !floating), kBadArgument,
          "tensor '{}' of type {} cannot be taken as {} of {} bytes", name, dtype_name(dtype),
          floating ? "floating-point numbers" : "integers", bytes);
}

std::vector<std::string_view> OpTensor::strings() const {
  require(dtype == DType::kString && known, kBadArgument, "tensor '{}' has no strings that could be read", name);
  const std::string problem = string_tensor_problem(data, shape.elements());
  require(problem.empty(), kBadArgument, "tensor '{}': {}", name, problem);
  const StringTensorReader reader(data);
  std::vector<std::string_view> result;
  for (int64_t i = 0; i < reader.size(); ++i) result.push_back(reader[i]);
  return result;
}

void OpOutput::write_strings(std::span<const std::string> strings) const {
  require(dtype == DType::kString && static_cast<int64_t>(strings.size()) == shape.elements() &&
              string_tensor_size(strings) == static_cast<int64_t>(data.size()),
          kBadArgument, "{} strings do not fill tensor '{}' of type {}, shape {} and {} bytes", strings.size(), name,
          dtype_name(dtype), shape.to_string(), data.size());
  StringTensorWriter writer({address, data.size()}, static_cast<int64_t>(strings.size()));
  for (const std::string& text : strings) writer.add(text);
}

int64_t string_tensor_size(std::span<const std::string> strings) {
  int64_t characters = 0;
  for (const std::string& text : strings) characters += static_cast<int64_t>(text.size());
  const auto bytes = string_tensor_bytes(static_cast<int64_t>(strings.size()), characters);
  require(bytes.has_value(), kBadArgument, "{} strings of {} bytes do not fit into a tensor", strings.size(),
          characters);
  return *bytes;
}

OpCall::OpCall(const OpNode& node, std::vector<OpTensor> inputs, int output_count, HoldMemory hold_memory)
    : node_(node), inputs_(std::move(inputs)), output_count_(output_count), hold_memory_(std::move(hold_memory)) {}

bool OpCall::has_input(int i) const { return i >= 0 && i < input_count() && inputs_[static_cast<size_t>(i)].present; }

const OpTensor& OpCall::input(int i) const {
  leadline::require(has_input(i), kModel, "the op needs input {}, the node has {} inputs{}", i, input_count(),
                    i >= 0 && i < input_count() ? " and this one is absent" : "");
  return inputs_[static_cast<size_t>(i)];
}

void OpCall::require(bool ok, const std::string& message) const { leadline::require(ok, kModel, "{}", message); }

InferCall::InferCall(const OpNode& node, std::vector<OpTensor> inputs, std::vector<OpTensor> outputs,
                     HoldMemory hold_memory)
    : OpCall(node, std::move(inputs), static_cast<int>(outputs.size()), std::move(hold_memory)),
      outputs_(std::move(outputs)),
      shapes_(outputs_.size()),
      string_bytes_(outputs_.size(), -1) {}

const OpTensor& InferCall::output(int i) const {
  leadline::require(i >= 0 && i < output_count(), kModel, "the op needs output {}, the node has {}", i, output_count());
  return outputs_[static_cast<size_t>(i)];
}

void InferCall::set_output_shape(int i, const Shape& shape) {
  output(i);
  shapes_[static_cast<size_t>(i)] = shape;
}

void InferCall::set_output_bytes(int i, int64_t bytes) {
  leadline::require(dtype_bits(output(i).dtype) == 0, kBadArgument, "output {} of type {} has the size of its shape", i,
                    dtype_name(output(i).dtype));
  leadline::require(bytes >= 0, kBadArgument, "output {} cannot take {} bytes", i, bytes);
  string_bytes_[static_cast<size_t>(i)] = bytes;
}

void InferCall::request_scratch(int64_t bytes) {
  leadline::require(bytes >= 0, kBadArgument, "scratch must have 0 bytes or more, got {}", bytes);
  scratch_bytes_ = bytes;
}

void InferCall::request_persistent(int64_t bytes) {
  leadline::require(bytes >= 0, kBadArgument, "kept memory must have 0 bytes or more, got {}", bytes);
  kept_bytes_ = bytes;
}

RunCall::RunCall(const OpNode& node, std::vector<OpTensor> inputs, std::vector<OpOutput> outputs,
                 std::span<std::byte> scratch, std::span<std::byte> kept, HoldMemory hold_memory)
    : OpCall(node, std::move(inputs), static_cast<int>(outputs.size()), std::move(hold_memory)),
      outputs_(std::move(outputs)),
      scratch_(scratch),
      kept_(kept) {}

const OpOutput& RunCall::output(int i) const {
  leadline::require(i >= 0 && i < output_count(), kModel, "the op needs output {}, the node has {}", i, output_count());
  return outputs_[static_cast<size_t>(i)];
}

void register_op(const std::string& name, CustomOpFactory factory) try {
  require(!name.empty(), kBadArgument, "an op cannot be registered without a name");
  require(factory != nullptr, kBadArgument, "op '{}' cannot be registered without an implementation", name);
  ops::add_user_op(name, [factory = std::move(factory)](const ir::Subgraph& subgraph, int node) {
    return std::make_unique<Node>(factory, subgraph, node);
  });
} catch (...) {
  rethrow_as_error();
}

bool unregister_op(std::string_view name) try { return ops::remove_user_op(name); } catch (...) {
  rethrow_as_error();
}

std::vector<std::string> registered_ops() try { return ops::user_op_names(); } catch (...) {
  rethrow_as_error();
}

}  // namespace leadline
