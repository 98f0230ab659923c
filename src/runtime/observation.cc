// SPDX-License-Identifier: Apache-2.0
#include "runtime/observation.h"

namespace leadline::runtime {
namespace {

std::vector<ObservedTensor> observe(const ir::Subgraph& subgraph, const std::vector<int>& values,
                                    const std::vector<TensorView>& views) {
  std::vector<ObservedTensor> tensors(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    tensors[i].index = values[i];
    if (values[i] == ir::kAbsent) continue;
    tensors[i].name = subgraph.value(values[i]).name;
    tensors[i].dtype = views[i].dtype;
    tensors[i].shape = views[i].shape;
    tensors[i].data = {views[i].data, static_cast<size_t>(views[i].bytes)};
    if (views[i].quantization->scale.size() == 1) {
      tensors[i].scale = views[i].quantization->scale0();
      tensors[i].zero_point = views[i].quantization->zero_point0();
    }
  }
  return tensors;
}

}  // namespace

void notify(const std::vector<Observer*>& observers, const plan::Outline& outline, int index, const BoundStep& bound,
            Moment moment) {
  const ir::Node& node = outline.node(index);
  const std::vector<ObservedTensor> inputs = observe(outline.subgraph(), node.inputs, bound.inputs);
  const std::vector<ObservedTensor> outputs = observe(outline.subgraph(), node.outputs, bound.outputs);
  ObservedNode observed{outline.subgraph_index(), index, node.op.name(), {}, inputs, outputs};
  if (!outputs.empty()) observed.name = outputs[0].name;
  for (Observer* observer : observers) {
    moment == Moment::kBefore ? observer->before_node(observed) : observer->after_node(observed);
  }
}

}  // namespace leadline::runtime
