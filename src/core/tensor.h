// SPDX-License-Identifier: Apache-2.0
// A tensor as kernels see it: type, shape and a borrowed pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/quantization.h"
#include "leadline/types.h"

namespace leadline {

/// Non-owning view; the memory and the quantization belong to the session or the graph and outlive it.
struct TensorView {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::byte* data = nullptr;
  int64_t bytes = 0;
  const Quantization* quantization = nullptr;  // never null inside a run

  template <typename T>
  const T* as() const noexcept {
    return reinterpret_cast<const T*>(data);
  }
  template <typename T>
  T* mutable_as() const noexcept {
    return reinterpret_cast<T*>(data);
  }
  int64_t elements() const noexcept { return shape.elements(); }
};

}  // namespace leadline
