// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

#include <algorithm>

#include "ops/registry.h"

namespace leadline::ops {
namespace {

std::string names_of(std::initializer_list<DType> types) {
  std::string names;
  for (DType type : types) {
    if (!names.empty()) names += ", ";
    names += dtype_name(type);
  }
  return names;
}

bool contains(std::initializer_list<DType> types, DType type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

/// A kernel that consists of callables.
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(StoredFunction<std::byte*> pack, StoredFunction<RunContext&> run)
      : pack_(std::move(pack)), run_(std::move(run)) {}
  void pack(std::byte* packed) override {
    if (pack_) pack_(packed);
  }
  void run(RunContext& context) override { run_(context); }

 private:
  StoredFunction<std::byte*> pack_;
  StoredFunction<RunContext&> run_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(StoredFunction<RunContext&> run) {
  return std::make_unique<FunctionKernel>(StoredFunction<std::byte*>(), std::move(run));
}

std::unique_ptr<Kernel> make_kernel(StoredFunction<std::byte*> pack, StoredFunction<RunContext&> run) {
  return std::make_unique<FunctionKernel>(std::move(pack), std::move(run));
}

const OpDef* Host::find(const ir::Node& node) const { return registry().find(node.op); }

int64_t multiply_accumulates(const ContractionOperands& operands, const Shape& activations, const Shape& weights,
                             const Shape& output) {
  const bool fits = operands && weights.rank() > 0 && (operands.rank == 0 || weights.rank() == operands.rank);
  if (!fits || output.rank() == 0 || weights.elements() == 0 || output.elements() == 0) return 0;
  int64_t results = output.elements();
  int64_t each = 0;
  if (operands.kind == ContractionKind::kMatmul) {
    each = activations.elements() / std::max<int64_t>(results / output[output.rank() - 1], 1);
  } else if (operands.kind == ContractionKind::kTransposed) {
    results = activations.elements();
    each = weights.elements() / weights[operands.input_axis];
  } else {
    each = weights.elements() / weights[operands.output_axis];
  }
  int64_t products = 0;
  return __builtin_mul_overflow(results, each, &products) ? 0 : products;
}

UserNode& Host::user_node(int node_index) {
  leadline::fail(ErrorCode::kInternal, "node {}: this host has no ops of users", node_index);
}

std::shared_ptr<const void> Host::hold_memory(bool /*leave*/) { return nullptr; }

void OpContext::throw_error(ErrorCode code, fmt::string_view format, fmt::format_args args) const {
  throw Error(code, ir::describe_node(subgraph_, node_index_) + ": " + fmt::vformat(format, args));
}

void OpContext::require_input_type(int i, std::initializer_list<DType> allowed) const {
  if (contains(allowed, input(i).dtype())) return;
  fail(ErrorCode::kUnsupported, "input {} '{}' has type {}, expected {}", i, input(i).value->name,
       dtype_name(input(i).dtype()), names_of(allowed));
}

void OpContext::require_output_type(int i, std::initializer_list<DType> allowed) const {
  if (contains(allowed, output(i).dtype())) return;
  fail(ErrorCode::kUnsupported, "output {} '{}' has type {}, expected {}", i, output(i).value->name,
       dtype_name(output(i).dtype()), names_of(allowed));
}

void OpContext::require_quantized(const Operand& operand, const char* what) const {
  require(operand.quantization().scale.size() == 1, "{} '{}' has {} scales, expected one (quantized per tensor)", what,
          operand.value->name, operand.quantization().scale.size());
}

void InferContext::set_output_shape(int i, const Shape& shape) {
  Operand& result = outputs_[static_cast<size_t>(i)];
  const auto bytes = storage_bytes(result.dtype(), shape);
  if (!bytes) {
    fail(ErrorCode::kInvalidModel, "output {} '{}' of shape {} does not fit into memory", i, result.value->name,
         shape.to_string());
  }
  result.shape = shape;
  result.bytes = *bytes;
}

void InferContext::set_output_bytes(int i, int64_t bytes) { outputs_[static_cast<size_t>(i)].bytes = bytes; }

void RunContext::throw_error(fmt::string_view format, fmt::format_args args) const {
  throw Error(ErrorCode::kRuntime, ir::describe_node(subgraph_, node_index_) + ": " + fmt::vformat(format, args));
}

}  // namespace leadline::ops
