// SPDX-License-Identifier: Apache-2.0
#include "passes/conv_geometry.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

/// Taking every d-th pixel into a batch of its own, convolving without gaps and weaving the results together is a
/// convolution with dilation d. Padding that is cropped again was only there to make sizes divisible.
bool merge_around_conv(Editor& e, int n) {
  const ir::Node& after = e.node(n);
  if (after.op != op::kBatchToSpaceNd) return false;
  const int middle = e.producer(after.inputs[0]);
  if (middle < 0 || !e.used_once(after.inputs[0])) return false;
  const ir::Node& conv = e.node(middle);
  auto geometry = conv_geometry(e, conv);
  if (!geometry || geometry->padding != ir::Padding::kValid) return false;
  const int first = e.producer(conv.inputs[static_cast<size_t>(geometry->image)]);
  if (first < 0 || e.node(first).op != op::kSpaceToBatchNd) return false;
  const ir::Node& before = e.node(first);
  if (e.value(before.inputs[0]).dtype != DType::kFloat32) return false;
  const auto block = e.ints(before.inputs[1]);
  const auto pads = e.ints(before.inputs[2]);
  const auto back = e.ints(after.inputs[1]);
  const auto crops = e.ints(after.inputs[2]);
  if (!block || !pads || !back || !crops || *block != *back || block->size() != 2) return false;
  if (pads->size() != 4 || crops->size() != 4) return false;
  std::pair<int64_t, int64_t> pad[2];
  for (size_t axis = 0; axis < 2; ++axis) {
    pad[axis] = {(*pads)[2 * axis] - (*crops)[2 * axis], (*pads)[2 * axis + 1] - (*crops)[2 * axis + 1]};
  }
  for (const ConvAxis& axis : {geometry->rows, geometry->columns}) {
    if (axis.stride != 1 || axis.dilation != 1) return false;
  }
  geometry->rows.dilation = (*block)[0];
  geometry->columns.dilation = (*block)[1];
  const std::pair<int64_t, int64_t> none{0, 0};
  if (pad[0] == same_padding(geometry->rows, -1) && pad[1] == same_padding(geometry->columns, -1)) {
    geometry->padding = ir::Padding::kSame;
  } else if (pad[0] != none || pad[1] != none) {
    return false;
  }
  const int result = after.outputs[0];
  e.set_attributes(middle, with_geometry(conv, *geometry));
  e.set_input(middle, geometry->image, before.inputs[0]);
  e.remove(n);
  e.set_output(middle, result);
  return true;
}

}  // namespace

int merge_dilation(PassTarget target) { return for_each_node(target, merge_around_conv); }

}  // namespace leadline::passes
