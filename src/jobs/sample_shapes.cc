// SPDX-License-Identifier: Apache-2.0
#include "jobs/sample_shapes.h"

#include <algorithm>
#include <utility>

namespace leadline::jobs {

std::vector<Shape> largest_shapes(const std::vector<Shape>& a, const std::vector<Shape>& b) {
  if (a.size() != b.size()) return b.empty() ? a : b;
  std::vector<Shape> largest = b;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].rank() != b[i].rank()) continue;
    for (int axis = 0; axis < a[i].rank(); ++axis) largest[i].set(axis, std::max(a[i][axis], b[i][axis]));
  }
  return largest;
}

Sample sample_of(const std::vector<Shape>& shapes) {
  Sample sample;
  for (const Shape& shape : shapes) sample.inputs.push_back({.shape = shape});
  return sample;
}

std::vector<Shape> shapes_of(const Sample& sample) {
  std::vector<Shape> shapes;
  for (const SampleTensor& tensor : sample.inputs) shapes.push_back(tensor.shape);
  return shapes;
}

std::vector<Shape> shapes_from(const Model& model, const SampleSource* samples) {
  return samples != nullptr ? sample_shapes(model, *samples) : std::vector<Shape>();
}

bool leaves_sizes_open(const Model& model, int subgraph) {
  const SubgraphInfo info = model.subgraph(subgraph);
  return std::any_of(info.inputs.begin(), info.inputs.end(), [&](int index) {
    const TensorInfo& tensor = info.tensors[static_cast<size_t>(index)];
    const auto& sizes = tensor.shape_signature;
    return sizes.empty() ? tensor.shape.rank() == 0 : std::find(sizes.begin(), sizes.end(), -1) != sizes.end();
  });
}

void resize_inputs(Interpreter& interpreter, const std::vector<Shape>& shapes, const std::vector<int>& places) {
  const std::vector<int>& inputs = interpreter.inputs();
  for (size_t i = 0; i < shapes.size(); ++i) {
    const size_t place = i < places.size() ? static_cast<size_t>(places[i]) : i;
    if (place >= inputs.size()) continue;
    const TensorInfo input = interpreter.tensor_info(inputs[place]);
    if (!input.constant && !input.variable) interpreter.resize_input(inputs[place], shapes[i]);
  }
}

}  // namespace leadline::jobs
