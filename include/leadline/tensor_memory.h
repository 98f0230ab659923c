// SPDX-License-Identifier: Apache-2.0
// The bytes of a tensor, and who owns them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "leadline/types.h"

namespace leadline {

/// Memory of an input, output or variable. The bytes live as long as someone holds `owner`, also when the interpreter
/// is resized or destroyed.
struct TensorMemory {
  std::shared_ptr<const void> owner;
  std::byte* data = nullptr;
  int64_t bytes = 0;
  DType dtype = DType::kFloat32;
  Shape shape;
  bool read_only = false;  ///< constants, and inputs that the caller bound as such: must not be written to
};

}  // namespace leadline
