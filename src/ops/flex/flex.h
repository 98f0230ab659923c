// SPDX-License-Identifier: Apache-2.0
// What the families of Flex ops share. A Flex op is an op of TensorFlow that its converter left in a .tflite file under
// the name "Flex<Op>"; its row is like all others, with the attributes of the node's NodeDef. Ops that a builtin one
// computes are passed on to its row (Translation); the others have kernels of their own, for all types of TensorFlow.
#pragma once

#include <complex>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/common.h"
#include "ops/elementwise.h"
#include "ops/flex/node_def.h"
#include "ops/movement.h"
#include "ops/registry.h"

namespace leadline::ops {

/// What one call of the C library costs (core/work.h).
inline constexpr double kFunctionCost = 12;

/// The attributes of a Flex node. Throws, naming the node, when its options are damaged.
const NodeDefAttributes& node_def(const OpContext& c);

using Infer = void (*)(InferContext&);
using Prepare = std::unique_ptr<Kernel> (*)(PrepareContext&);

/// A row of a Flex op with `inputs` inputs and `outputs` outputs; -1: any number. `name` lives as long as the program.
OpDef flex_row(std::string_view name, int inputs, int outputs, Infer infer, Prepare prepare, std::string_view types);

/// How another op, builtin as a rule, computes a Flex node.
struct Translation {
  ir::OpId op;
  std::shared_ptr<const ir::Attributes> attributes;  // null: the defaults
  std::vector<int> inputs;                           // which inputs of the Flex node the builtin op takes
  std::vector<std::byte> custom_options = {};        // of a custom op that is not Flex
};
/// Nothing: it needs data that is not known yet.
using Translate = std::optional<Translation> (*)(const OpContext&);

void infer_translated(InferContext& c, Translate translate);
std::unique_ptr<Kernel> prepare_translated(PrepareContext& c, Translate translate);

template <Translate kTranslate>
OpDef translated_row(std::string_view name, int inputs, int outputs, std::string_view types) {
  return flex_row(
      name, inputs, outputs, [](InferContext& c) { infer_translated(c, kTranslate); },
      [](PrepareContext& c) { return prepare_translated(c, kTranslate); }, types);
}

/// All inputs of the node, in their order.
std::vector<int> all_inputs(const OpContext& c);
/// The inputs [begin, end).
std::vector<int> input_range(int begin, int end);

/// Calls body with a value of the C++ type: real numbers and complex ones.
template <typename Body>
auto visit_number(const OpContext& c, DType type, Body&& body) {
  switch (type) {
    case DType::kFloat16:
      return body(kernels::Half{});
    case DType::kBFloat16:
      return body(kernels::BFloat16{});
    case DType::kComplex64:
      return body(std::complex<float>{});
    case DType::kComplex128:
      return body(std::complex<double>{});
    default:
      return visit_numeric(c, type, std::forward<Body>(body));
  }
}

/// The same for float32, float64, complex64 and complex128.
template <typename Body>
auto visit_analytic(const OpContext& c, DType type, Body&& body) {
  switch (type) {
    case DType::kFloat32:
      return body(float{});
    case DType::kFloat64:
      return body(double{});
    case DType::kComplex64:
      return body(std::complex<float>{});
    case DType::kComplex128:
      return body(std::complex<double>{});
    default:
      c.fail(ErrorCode::kUnsupported, "type {} is not supported, expected float32, float64, complex64 or complex128",
             dtype_name(type));
  }
}

template <typename T>
inline constexpr bool kIsComplex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// The sizes that known input `i` holds: a vector of integers, none negative.
Shape shape_of_input(const OpContext& c, int i);
/// The one integer that known input `i` holds.
int64_t integer_of_input(const OpContext& c, int i);
/// Throws unless input `i` is one number.
void require_scalar(const OpContext& c, int i, const char* what);
/// Integer `i` of an input while running: int32 or int64.
inline int64_t index_at(const TensorView& tensor, int64_t i) { return load_index(tensor.data, tensor.dtype, i); }
inline void put_index(const TensorView& tensor, int64_t i, int64_t value) {
  if (tensor.dtype == DType::kInt64)
    tensor.mutable_as<int64_t>()[i] = value;
  else
    tensor.mutable_as<int32_t>()[i] = static_cast<int32_t>(value);
}

/// Are the contents of all inputs known?
inline bool all_known(const InferContext& c) {
  for (int i = 0; i < c.input_count(); ++i) {
    if (!c.known(i)) return false;
  }
  return true;
}

/// Throws unless input `i` has integers for indices.
void require_indices(const OpContext& c, int i);

}  // namespace leadline::ops
