// SPDX-License-Identifier: Apache-2.0
// The values of a TensorProto: raw bytes, or a list of numbers or strings of which the last repeats to the end.
#pragma once

#include <memory>
#include <string>

#include "import/saved_model/protos.h"
#include "ir/constant_source.h"

namespace leadline::saved_model {

/// Bytes of a tensor with this type and shape; `what` names it in errors. Unknown dimensions, overflow and types
/// without values of fixed size (strings excepted, which give 0) are errors.
int64_t tensor_bytes(TfType type, const TensorShape& shape, const std::string& what);

/// The number of elements. Throws Error(kInvalidModel) when it is unknown or does not fit.
int64_t element_count(const TensorShape& shape, const std::string& what);

/// Checks the tensor against its type and shape. Values come as elements in memory order, strings in the layout of
/// core/string_tensor.h. `file` holds the tensor and is kept alive.
std::shared_ptr<const ir::ConstantSource> make_tensor_source(std::shared_ptr<WireFile> file, const TensorProto& tensor,
                                                             const std::string& what);

}  // namespace leadline::saved_model
