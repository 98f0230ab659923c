// SPDX-License-Identifier: Apache-2.0
// VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE: named state that outlives a run.
#include "ops/variables.h"

#include <cstring>

#include "ops/families.h"
#include "ops/resources.h"

namespace leadline::ops {
namespace {

/// A resource tensor holds the variable's number.
int32_t id_of(const Operand& resource) { return resource.values<int32_t>()[0]; }

void check_resource(const OpContext& c, int i) {
  c.require_input_type(i, {DType::kResource});
  c.require(c.input(i).shape.elements() == 1, "input {} '{}' has shape {}, expected one resource", i,
            c.input(i).value->name, c.input(i).shape.to_string());
}

void check_id(const OpContext& c, int32_t id) {
  c.require(c.host().resources().valid(id), "its resource is not a variable of this model");
}

void infer_handle(InferContext& c) {
  c.require_output_type(0, {DType::kResource});
  c.set_output_shape(0, {1});
}

std::unique_ptr<Kernel> prepare_handle(PrepareContext& c) {
  const auto& a = c.attributes<VarHandleAttributes>();
  // A separator that cannot be typed by accident keeps ("a", "bc") and ("ab", "c") apart.
  const int32_t id = c.host().resources().handle(a.container + '\x1f' + a.shared_name);
  return make_kernel([id](RunContext& run) { std::memcpy(run.output(0).data, &id, sizeof(id)); });
}

void infer_read(InferContext& c) {
  check_resource(c, 0);
  if (!c.known(0)) return c.defer();
  const int32_t id = id_of(c.input(0));
  check_id(c, id);
  // Without an assignment in sight the file's own shape is the best guess; the kernel checks it.
  const Resources& resources = c.host().resources();
  const Shape& declared = c.output(0).value->shape;
  if (c.output(0).dtype() == DType::kString) {
    // The bytes of strings are known once all assignments before this node have run.
    if (!resources.running() || resources.reserved(id)) return c.defer();
    const TensorView held = resources.read(id);
    c.require(held.quantization != nullptr, "the variable was never assigned");
    c.set_output_shape(0, held.shape);
    return c.set_output_bytes(0, held.bytes);
  }
  const Shape* shape = resources.shape(id);
  // Files give the shape [] to what they do not know: such a variable may have another shape in every run.
  if (shape != nullptr && declared.rank() == 0 && shape->rank() > 0 && !resources.running()) return c.defer();
  c.set_output_shape(0, shape != nullptr ? *shape : declared);
}

std::unique_ptr<Kernel> prepare_read(PrepareContext& c) {
  const int32_t id = id_of(c.input(0));
  return make_kernel([id](RunContext& run) {
    const TensorView held = run.host().resources().read(id);
    const TensorView& out = run.output(0);
    if (held.quantization == nullptr) {
      // TFLite returns zeros for a variable that was never assigned.
      if (out.bytes > 0) fill_bytes(out.data, std::byte{0}, out.bytes);
      return;
    }
    run.require(held.dtype == out.dtype && held.bytes == out.bytes,
                "the variable holds {}{}, but the tensor that reads it is {}{}", dtype_name(held.dtype),
                held.shape.to_string(), dtype_name(out.dtype), out.shape.to_string());
    if (out.bytes > 0) copy_bytes(out.data, held.data, out.bytes);
  });
}

void infer_assign(InferContext& c) {
  check_resource(c, 0);
  if (!c.known(0)) return c.defer();
  check_id(c, id_of(c.input(0)));
}

std::unique_ptr<Kernel> prepare_assign(PrepareContext& c) {
  const int32_t id = id_of(c.input(0));
  const Operand& value = c.input(1);
  const int64_t bytes = dtype_bits(value.dtype()) > 0 ? storage_bytes(value.dtype(), value.shape).value_or(0) : 0;
  c.host().resources().reserve(id, value.dtype(), value.shape, bytes);
  return make_kernel([id](RunContext& run) { run.host().resources().assign(id, run.input(1)); });
}

}  // namespace

void register_variables(Registry& registry) {
  registry.add({.id = op::kVarHandle,
                .options = builtin_options(111),
                .make_attributes = make_attributes<VarHandleAttributes>,
                .infer = infer_handle,
                .prepare = prepare_handle,
                .types = "resource"});
  registry.add({.id = op::kReadVariable,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(112),
                .infer = infer_read,
                .prepare = prepare_read,
                .pure = false,
                .types = "any"});
  registry.add({.id = op::kAssignVariable,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .min_outputs = 0,
                .max_outputs = 0,
                .options = builtin_options(113),
                .infer = infer_assign,
                .prepare = prepare_assign,
                .pure = false,
                .types = "any"});
}

}  // namespace leadline::ops
