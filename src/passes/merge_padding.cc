// SPDX-License-Identifier: Apache-2.0
#include "passes/conv_geometry.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

bool pads_with_zero(Editor& e, const ir::Node& pad) {
  if (pad.op == "PAD") return true;
  if (pad.op != "PADV2") return false;
  const auto value = e.floats(pad.inputs[2], 1);
  return value && value->size() == 1 && (*value)[0] == 0.0F;
}

bool merge(Editor& e, int n) {
  const ir::Node& node = e.node(n);
  auto geometry = conv_geometry(e, node);
  if (!geometry || geometry->padding != ir::Padding::kValid) return false;
  const int before = e.producer(node.inputs[0]);
  if (before < 0) return false;
  const ir::Node& pad = e.node(before);
  if (!pads_with_zero(e, pad) || e.value(pad.inputs[0]).dtype != DType::kFloat32) return false;
  const auto pads = e.ints(pad.inputs[1]);
  const auto dims = dims_of(e.value(pad.inputs[0]));
  if (!pads || pads->size() != 8 || dims.size() != 4) return false;
  if ((*pads)[0] != 0 || (*pads)[1] != 0 || (*pads)[6] != 0 || (*pads)[7] != 0) return false;
  if (same_padding(geometry->rows, dims[1]) != std::pair{(*pads)[2], (*pads)[3]}) return false;
  if (same_padding(geometry->columns, dims[2]) != std::pair{(*pads)[4], (*pads)[5]}) return false;
  geometry->padding = ir::Padding::kSame;
  e.set_attributes(n, with_geometry(node, *geometry));
  e.set_input(n, 0, pad.inputs[0]);
  return true;
}

}  // namespace

int merge_padding(ir::Graph& graph) { return for_each_node(graph, merge); }

}  // namespace leadline::passes
