// SPDX-License-Identifier: Apache-2.0
// What the ops on lists of tensors share: reading lists and shapes from inputs, and sizing lists that come out.
#pragma once

#include <functional>

#include "ops/flex/flex.h"
#include "ops/flex/tensor_list.h"

namespace leadline::ops {

/// The list in input `i`, checked.
inline ListView known_list(const OpContext& c, int i) {
  c.require_input_type(i, {DType::kVariant});
  const ListView list({c.input(i).data, static_cast<size_t>(c.input(i).bytes)});
  const std::string problem = list.problem();
  c.require(problem.empty(), "{}", problem);
  return list;
}
/// The same while running: infer has checked it.
inline ListView list_of(const TensorView& tensor) { return ListView({tensor.data, static_cast<size_t>(tensor.bytes)}); }

/// A shape given as a vector of sizes, -1 for unknown ones; as a scalar -1 when not even the rank is known.
inline PartialShape partial_shape(const OpContext& c, int i) {
  require_indices(c, i);
  PartialShape result;
  // Before the sizes are copied: a file may have any number of them, and the copy is in no budget.
  c.require(c.input(i).shape.elements() <= kMaxRank, "an element shape has rank {}, more than {}",
            c.input(i).shape.elements(), kMaxRank);
  const std::vector<int64_t> sizes = known_ints(c, i);
  if (c.input(i).shape.rank() == 0) {
    c.require(sizes[0] == -1, "an element shape is the number {}, expected a vector of sizes or -1", sizes[0]);
    return result;
  }
  result.rank = static_cast<int32_t>(sizes.size());
  for (size_t k = 0; k < sizes.size(); ++k) {
    c.require(sizes[k] >= -1, "an element shape has a size of {}", sizes[k]);
    result.dims[k] = sizes[k];
  }
  return result;
}

inline DType element_type(const OpContext& c) {
  const auto type = node_def(c).dtype("element_dtype");
  c.require(type.has_value(), "its attribute element_dtype is absent or of a type that .tflite files do not have");
  return *type;
}

inline void require_sized(const OpContext& c, DType type, const char* what) {
  if (dtype_bits(type) < 8) {
    c.fail(ErrorCode::kUnsupported, "{} a list of {} tensors is not supported", what, dtype_name(type));
  }
}

inline int64_t index_input(const OpContext& c, int i, const char* what) {
  require_indices(c, i);
  require_scalar(c, i, what);
  return known_ints(c, i)[0];
}

inline void set_list_output(InferContext& c, int i, int64_t count, int64_t data) {
  c.require_output_type(i, {DType::kVariant});
  const auto bytes = list_bytes(count, data);
  c.require(bytes.has_value(), "a list of {} elements is too large", count);
  c.set_output_shape(i, {});
  c.set_output_bytes(i, *bytes);
}

/// Rounded bytes of all elements of a list but those for which skip(i) holds.
inline int64_t data_bytes(const ListView& list, int64_t end, const std::function<bool(int64_t)>& skip = nullptr) {
  int64_t bytes = 0;
  for_items(std::min(end, list.size()), 4, [&](int64_t i) {
    const ListElement e = list.element(i);
    if (e.present() && !(skip && skip(i))) bytes += rounded_element(e.bytes);
  });
  return bytes;
}

inline void put_bytes(ListWriter& writer, int64_t i, const Shape& shape, const std::byte* from, int64_t bytes) {
  std::byte* to = writer.put(i, shape, bytes);
  if (bytes > 0) copy_bytes(to, from, bytes);
}

inline void put_element(ListWriter& writer, int64_t to, const ListView& list, int64_t from) {
  const ListElement e = list.element(from);
  if (e.present()) put_bytes(writer, to, e.shape.shape(), list.data(e), e.bytes);
}

/// The shape of an element that may be absent: what the list, the other elements and the node say.
inline PartialShape absent_shape(const OpContext& c, const ListView& list, const PartialShape& given) {
  auto merged = PartialShape::merge(list.header().element_shape, given);
  c.require(merged.has_value(), "its elements have shape {}, expected {}", list.header().element_shape.to_string(),
            given.to_string());
  for (int64_t i = 0; i < list.size() && !merged->fully_known(); ++i) {
    const ListElement e = list.element(i);
    if (!e.present()) continue;
    const auto with = PartialShape::merge(*merged, e.shape);
    c.require(with.has_value(), "element {} of the list has shape {}, expected {}", i, e.shape.to_string(),
              merged->to_string());
    merged = with;
  }
  return *merged;
}

/// The shape of a row of input `i`.
inline Shape row_shape(const OpContext& c, int i) {
  const Shape& shape = c.input(i).shape;
  c.require(shape.rank() >= 1, "a list is made of a scalar, expected at least a vector");
  return Shape(shape.dims().subspan(1));
}

}  // namespace leadline::ops
