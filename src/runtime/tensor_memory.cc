// SPDX-License-Identifier: Apache-2.0
#include "leadline/tensor_memory.h"

#include "core/error.h"

namespace leadline {

void TensorMemory::check_elements(std::optional<DType> wanted, bool write) const {
  require(!wanted.has_value() || *wanted == dtype, ErrorCode::kInvalidArgument,
          "the tensor of shape {} has elements of type {}, got {} for them", shape.to_string(), dtype_name(dtype),
          dtype_name(wanted.value_or(dtype)));
  require(!write || !read_only, ErrorCode::kInvalidArgument, "the tensor of shape {} is read-only", shape.to_string());
}

}  // namespace leadline
