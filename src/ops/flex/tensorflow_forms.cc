// SPDX-License-Identifier: Apache-2.0
#include "ops/flex/tensorflow_forms.h"

#include "core/error.h"
#include "ops/flex/node_def.h"
#include "ops/flex/node_def_writer.h"
#include "ops/op_ids.h"
#include "ops/registry.h"

namespace leadline::ops {
namespace {

struct Form {
  ir::OpId builtin;
  const char* op;  // TensorFlow's
};
// What LiteRT refuses with int64, and so TensorFlow's converter.
constexpr Form kInt64Forms[] = {{op::kFloorDiv, "FloorDiv"}, {op::kPow, "Pow"}};
constexpr uint64_t kTensorFlowInt64 = 9;  // DT_INT64

const char* tensorflow_op(const ir::Subgraph& subgraph, const ir::Node& node) {
  if (node.inputs.empty() || node.inputs[0] == ir::kAbsent) return nullptr;
  if (subgraph.value(node.inputs[0]).dtype != DType::kInt64) return nullptr;
  for (const Form& form : kInt64Forms) {
    if (node.op == form.builtin) return form.op;
  }
  return nullptr;
}

}  // namespace

int use_tensorflow_forms(ir::Graph& graph) {
  int changed = 0;
  for (ir::Subgraph& subgraph : graph.subgraphs) {
    for (ir::Node& node : subgraph.nodes) {
      const char* tensorflow = tensorflow_op(subgraph, node);
      if (tensorflow == nullptr) continue;
      const OpDef* row = registry().find(ir::OpId::custom(std::string("Flex") + tensorflow));
      require(row != nullptr, ErrorCode::kInternal, "there is no row of Flex{}", tensorflow);
      const auto options = NodeDefWriter(tensorflow).type("T", kTensorFlowInt64).options();
      graph.storage.push_back(std::make_shared<const std::vector<std::byte>>(options));
      node.op = row->id;
      node.version = 1;
      node.custom_options = *graph.storage.back();
      node.attributes = custom_attributes(row, node.custom_options);
      ++changed;
    }
  }
  return changed;
}

}  // namespace leadline::ops
