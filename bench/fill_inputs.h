// SPDX-License-Identifier: Apache-2.0
// Inputs that are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "leadline/interpreter.h"

namespace leadline::bench {

/// Fills float32 and one-byte inputs of an allocated interpreter with numbers of both signs.
inline void fill_inputs(Interpreter& interpreter) {
  for (const int index : interpreter.inputs()) {
    const TensorMemory memory = interpreter.tensor(index);
    uint32_t state = 54321;
    for (int64_t i = 0; i < memory.shape.elements(); ++i) {
      state = state * 1664525U + 1013904223U;  // the generator of Numerical Recipes
      const int32_t value = static_cast<int32_t>(state >> 24) - 128;
      if (memory.dtype == DType::kFloat32) {
        const float number = static_cast<float>(value) / 64.0F;
        std::memcpy(memory.data + i * 4, &number, 4);
      } else if (memory.bytes == memory.shape.elements()) {
        memory.data[i] = static_cast<std::byte>(value);
      }
    }
  }
}

}  // namespace leadline::bench
