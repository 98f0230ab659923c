// SPDX-License-Identifier: Apache-2.0
// One node of TensorFlow on its way into a graph: its inputs, and its attributes with TensorFlow's defaults.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "import/saved_model/importer.h"
#include "ir/attributes.h"

namespace leadline::saved_model {

using Outputs = std::vector<int>;
class OpCall;

/// What an op takes of a variable: its value, like a constant's, or its handle, to read it in order or to write to it.
enum class VariableUse : uint8_t { kValue, kHandle, kWrite };

/// How an op is expressed: a function, and the name of the op in the .tflite format for functions that serve several.
struct OpRow {
  std::string_view op;
  Outputs (*emit)(OpCall& call);
  const char* target = "";
  VariableUse variable = VariableUse::kValue;
};

/// Null when the op is not known.
const OpRow* find_op(std::string_view op);

class OpCall {
 public:
  /// Returns the tensor that a reference of the same function became.
  using Resolve = std::function<int(const ValueRef&)>;
  OpCall(Importer& the_importer, Emitter& emitter, const FlatFunction& its_function, const FlatNode& its_node,
         const OpRow& its_row, Resolve resolve);

  Importer& importer;
  Emitter& e;
  const FlatFunction& function;
  const FlatNode& node;
  const OpRow& row;
  std::vector<int> inputs;

  ops::GraphBuilder& builder() { return e.builder(); }
  /// Input `i`; throws when the node has fewer.
  int in(size_t i = 0) const;
  /// The same as an int32 tensor.
  int in32(size_t i) { return e.cast(in(i), DType::kInt32); }
  /// The numbers of an input that must be constant; `what` names it in errors.
  std::vector<int64_t> ints(size_t i, const char* what) const;
  int64_t integer(size_t i, const char* what) const;
  /// The value of a constant float of one element, or nothing.
  std::optional<float> number(int value) const;

  int64_t attr_int(std::string_view name, int64_t otherwise) const;
  bool attr_bool(std::string_view name, bool otherwise) const;
  float attr_float(std::string_view name, float otherwise) const;
  std::string attr_text(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> attr_ints(std::string_view name) const;
  DType attr_type(std::string_view name, DType otherwise) const;

  /// The node that makes `ref`, when it has this op and this number of inputs; null otherwise.
  const FlatNode* made_by(const ValueRef& ref, std::string_view op, size_t input_count) const;
  int value(const ValueRef& ref) const { return resolve_(ref); }

  /// The variable whose handle input `i` is; null when it is none.
  const FlatNode* variable(size_t i) const;

  std::string name() const { return e.name(node.op); }
  /// Adds a node whose result has these sizes when they depend on data of the run; null attributes are the defaults.
  int sized(const char* op, std::vector<int> inputs, DType dtype, const Dims& dims,
            std::shared_ptr<const ir::Attributes> attributes = nullptr, std::optional<ops::SizeSamples> samples = {});
  /// As many unknown sizes as the vector `sizes` has elements; throws when even that is not known.
  Dims unknown_like(int sizes) const;
  /// A constant of all bits zero, and of one; of any type with a size.
  int zero_of(DType dtype) const;
  int one_of(DType dtype) const;
  /// Throws Error(kUnsupported); the text continues "node ... (op) ".
  [[noreturn]] void unsupported(std::string_view why) const;
  void refuse_if(bool bad, std::string_view why) const {
    if (bad) unsupported(why);
  }
  /// Refuses layouts that have channels before pixels.
  void require_channels_last() const;

 private:
  Resolve resolve_;
};

int32_t small(int64_t value);

}  // namespace leadline::saved_model
