// SPDX-License-Identifier: Apache-2.0
#include "passes/conv_geometry.h"
#include "passes/passes.h"

namespace leadline::passes {
namespace {

/// The bytes of a constant that has one element.
std::span<const std::byte> element(Editor& e, int v) {
  const bool one = e.is_constant(v) && !e.value(v).source && e.value(v).shape.elements() == 1;
  return one ? e.value(v).data : std::span<const std::byte>();
}

bool pads_with_zero(Editor& e, const ir::Node& pad) {
  if (pad.op == op::kPad) return true;
  if (pad.op != op::kPadV2) return false;
  const DType type = e.value(pad.inputs[0]).dtype;
  if (type == DType::kFloat32) {
    const auto value = e.floats(pad.inputs[2], 1);
    return value && value->size() == 1 && (*value)[0] == 0.0F;
  }
  const auto value = element(e, pad.inputs[2]);
  const int zero = e.value(pad.inputs[0]).quantization.zero_point0();
  if (type == DType::kInt8) return value.size() == 1 && std::to_integer<int8_t>(value[0]) == zero;
  return type == DType::kUInt8 && value.size() == 1 && std::to_integer<uint8_t>(value[0]) == zero;
}

/// A window must reach into the image wherever it lies; an empty image has no window.
bool is_border(const ConvAxis& axis, int64_t before, int64_t after) {
  const int64_t reach = (axis.filter - 1) * axis.dilation + 1;
  constexpr int64_t kMost = 1 << 20;
  return before >= 0 && after >= 0 && before <= kMost && after <= kMost && before + after < reach;
}

/// For runs: zeros of any size become the convolution's own.
bool merge_border(Editor& e, int n, const ConvGeometry& geometry, const ir::Node& pad,
                  const std::vector<int64_t>& pads) {
  const ir::Value& image = e.value(pad.inputs[0]);
  const bool plain = image.dtype == DType::kFloat32 || image.dtype == DType::kInt8 || image.dtype == DType::kUInt8;
  const int padded = pad.outputs[0];
  if (!plain || image.variable || e.value(padded).variable || !e.used_once(padded)) return false;
  if (e.value(padded).dtype != image.dtype || !(e.value(padded).quantization == image.quantization)) return false;
  if (!is_border(geometry.rows, pads[2], pads[3]) || !is_border(geometry.columns, pads[4], pads[5])) return false;
  ConvGeometry bordered = geometry;
  bordered.border = {static_cast<int32_t>(pads[2]), static_cast<int32_t>(pads[3]), static_cast<int32_t>(pads[4]),
                     static_cast<int32_t>(pads[5])};
  e.set_attributes(n, with_geometry(e.node(n), bordered));
  const int maker = e.producer(padded);
  e.set_input(n, geometry.image, pad.inputs[0]);
  e.remove(maker);
  return true;
}

bool merge_into_window(Editor& e, int n) {
  const ir::Node& node = e.node(n);
  auto geometry = conv_geometry(e, node);
  if (!geometry || geometry->padding != ir::Padding::kValid) return false;
  const int before = e.producer(node.inputs[static_cast<size_t>(geometry->image)]);
  if (before < 0) return false;
  const ir::Node& pad = e.node(before);
  if (!pads_with_zero(e, pad)) return false;
  const auto pads = e.ints(pad.inputs[1]);
  const auto dims = dims_of(e.value(pad.inputs[0]));
  if (!pads || pads->size() != 8 || dims.size() != 4) return false;
  if ((*pads)[0] != 0 || (*pads)[1] != 0 || (*pads)[6] != 0 || (*pads)[7] != 0) return false;
  if (e.for_runs()) return !geometry->border.any() && merge_border(e, n, *geometry, pad, *pads);
  if (e.value(pad.inputs[0]).dtype != DType::kFloat32) return false;
  if (same_padding(geometry->rows, dims[1]) != std::pair{(*pads)[2], (*pads)[3]}) return false;
  if (same_padding(geometry->columns, dims[2]) != std::pair{(*pads)[4], (*pads)[5]}) return false;
  geometry->padding = ir::Padding::kSame;
  e.set_attributes(n, with_geometry(node, *geometry));
  e.set_input(n, geometry->image, pad.inputs[0]);
  return true;
}

}  // namespace

int merge_padding(PassTarget target) { return for_each_node(target, merge_into_window); }

}  // namespace leadline::passes
