// SPDX-License-Identifier: Apache-2.0
// Tensors of samples as tuples of Python.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "leadline/sample_reader.h"
#include "leadline/samples.h"
#include "module.h"

namespace leadline::python {

Shape shape_of(nb::handle sizes);
/// (DType, shape, bytes), which are copied.
nb::tuple to_tuple(const SampleTensor& tensor);
nb::list to_list(std::span<const SampleTensor> tensors);
/// Each as (severity, message, sample, input).
nb::list to_list(const std::vector<SampleFinding>& findings);

/// Tensors in the buffers of such tuples.
struct HeldTensors {
  explicit HeldTensors(nb::handle tuples);
  /// As inputs in the order of the subgraph.
  Sample sample(int subgraph) const;

  std::vector<std::shared_ptr<const BufferView>> buffers;
  std::vector<SampleTensor> tensors;
};

}  // namespace leadline::python
