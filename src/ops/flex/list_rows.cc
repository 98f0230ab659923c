// SPDX-License-Identifier: Apache-2.0
// Flex ops between lists of tensors and tensors whose rows are their elements: TensorListScatter and its versions,
// TensorListConcat, TensorListSplit.
#include <algorithm>

#include "ops/flex/families.h"
#include "ops/flex/lists_common.h"

namespace leadline::ops {
namespace {

// TensorListScatter(tensor, indices, element_shape), TensorListScatterV2(..., num_elements),
// TensorListScatterIntoExistingList(list, tensor, indices)

enum class Scatter : uint8_t { kNew, kNewOfSize, kExisting };

/// Checks the places that the rows of a tensor go to and returns how many the list has. The indices are read where they
/// are: as many as the data says, and a copy of them would be in no budget.
template <Scatter kKind>
int64_t scattered_count(const OpContext& c) {
  constexpr int kTensor = kKind == Scatter::kExisting ? 1 : 0;
  require_sized(c, c.input(kTensor).dtype(), "scattering into");
  require_indices(c, kTensor + 1);
  const Operand& indices = c.input(kTensor + 1);
  row_shape(c, kTensor);
  c.require(indices.shape.elements() == c.input(kTensor).shape[0], "there are {} indices for {} elements",
            indices.shape.elements(), c.input(kTensor).shape[0]);
  int64_t count = 0;
  if (kKind == Scatter::kExisting) count = known_list(c, 0).size();
  if (kKind == Scatter::kNewOfSize) count = std::max<int64_t>(integer_of_input(c, 3), 0);
  constexpr int64_t kLargestIndex = (int64_t{1} << 31) - 1;
  for_items(indices.shape.elements(), 4, [&](int64_t i) {
    const int64_t index = load_index(indices.data, indices.dtype(), i);
    c.require(index >= 0 && index <= kLargestIndex, "index {} is outside a list, expected 0 to {}", index,
              kLargestIndex);
    count = std::max(count, index + 1);
  });
  return count;
}

template <Scatter kKind>
void infer_list_scatter(InferContext& c) {
  constexpr int kTensor = kKind == Scatter::kExisting ? 1 : 0;
  element_type(c);
  if (!all_known(c)) return c.defer();
  const int64_t count = scattered_count<kKind>(c);
  const int64_t each = rounded_element(storage_bytes(element_type(c), row_shape(c, kTensor)).value_or(0));
  int64_t data = checked_multiply(c, c.input(kTensor).shape[0], each);
  if constexpr (kKind == Scatter::kExisting) {
    const ListView list = known_list(c, 0);
    c.require(list.header().dtype == c.input(1).dtype(), "the tensor is {}, the list holds {}",
              dtype_name(c.input(1).dtype()), dtype_name(list.header().dtype));
    // Elements that rows take the place of count too: which they are would need a copy of the indices. The next op on
    // the list leaves their bytes out.
    data = checked_add(c, data, data_bytes(list, list.size()));
  }
  set_list_output(c, 0, count, data);
}

template <Scatter kKind>
std::unique_ptr<Kernel> prepare_list_scatter(PrepareContext& c) {
  constexpr int kTensor = kKind == Scatter::kExisting ? 1 : 0;
  ListHeader header;
  header.dtype = element_type(c);
  header.element_shape = kKind == Scatter::kExisting ? known_list(c, 0).header().element_shape : partial_shape(c, 2);
  header.count = scattered_count<kKind>(c);
  return make_kernel([header, row = row_shape(c, kTensor)](RunContext& run) {
    ListWriter writer(run.output(0).data, header);
    const TensorView& tensor = run.input(kTensor);
    const int64_t rows = tensor.shape[0];
    const int64_t bytes = rows == 0 ? 0 : tensor.bytes / rows;
    if constexpr (kKind == Scatter::kExisting) {
      const ListView list = list_of(run.input(0));
      for_items(list.size(), 16, [&](int64_t i) { put_element(writer, i, list, i); });
    }
    // Later rows take the place of earlier ones, and of what was there.
    for (int64_t i = 0; i < rows; ++i) {
      put_bytes(writer, index_at(run.input(kTensor + 1), i), row, tensor.data + i * bytes, bytes);
    }
  });
}

// TensorListConcat(list), TensorListConcatV2(list, element_shape, leading_dims) -> tensor, lengths

void infer_concat(InferContext& c) {
  node_def(c);
  c.require_output_type(1, {DType::kInt64});
  if (!all_known(c)) return c.defer();
  const ListView list = known_list(c, 0);
  require_sized(c, list.header().dtype, "joining");
  c.require(c.output(0).dtype() == list.header().dtype, "the result is {}, the list holds {}",
            dtype_name(c.output(0).dtype()), dtype_name(list.header().dtype));
  std::optional<Shape> result;
  int64_t length = 0;
  for (int64_t i = 0; i < list.size(); ++i) {
    const ListElement e = list.element(i);
    c.require(e.present() && e.shape.rank >= 1, "element {} of the list is {}, expected at least a vector", i,
              e.present() ? "a scalar" : "not written");
    const Shape shape = e.shape.shape();
    length = checked_add(c, length, shape[0]);
    Shape tail = shape;
    tail.set(0, 0);
    c.require(!result || *result == tail, "element {} of the list has shape {}, which does not fit the others", i,
              shape.to_string());
    result = tail;
  }
  c.require(result.has_value(), "the list is empty: the shape of its elements is not known");
  result->set(0, length);
  c.set_output_shape(0, *result);
  c.set_output_shape(1, {list.size()});
}

std::unique_ptr<Kernel> prepare_concat(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    const ListView list = list_of(run.input(0));
    std::byte* to = run.output(0).data;
    for (int64_t i = 0; i < list.size(); ++i) {
      const ListElement e = list.element(i);
      if (e.bytes > 0) copy_bytes(to, list.data(e), e.bytes);
      to += e.bytes;
      run.output(1).mutable_as<int64_t>()[i] = e.shape.dims[0];
    }
  });
}

// TensorListSplit(tensor, element_shape, lengths), TensorListConcatLists(a, b)

void infer_list_split(InferContext& c) {
  element_type(c);
  if (!all_known(c)) return c.defer();
  require_sized(c, c.input(0).dtype(), "making");
  const Shape row = row_shape(c, 0);
  const int64_t each = storage_bytes(c.input(0).dtype(), row).value_or(0);
  int64_t total = 0;
  int64_t data = 0;
  require_indices(c, 2);
  const Operand& lengths = c.input(2);
  for_items(lengths.shape.elements(), 4, [&](int64_t i) {
    const int64_t length = load_index(lengths.data, lengths.dtype(), i);
    c.require(length >= 0, "a length is {}, expected 0 or more", length);
    total = checked_add(c, total, length);
    data = checked_add(c, data, rounded_element(checked_multiply(c, length, each)));
  });
  c.require(total == c.input(0).shape[0], "the lengths sum up to {}, the tensor has {} rows", total,
            c.input(0).shape[0]);
  set_list_output(c, 0, lengths.shape.elements(), data);
}

std::unique_ptr<Kernel> prepare_list_split(PrepareContext& c) {
  const ListHeader header{
      .dtype = c.input(0).dtype(), .count = c.input(2).shape.elements(), .element_shape = partial_shape(c, 1)};
  return make_kernel([header](RunContext& run) {
    ListWriter writer(run.output(0).data, header);
    const TensorView& tensor = run.input(0);
    const int64_t each = tensor.shape[0] == 0 ? 0 : tensor.bytes / tensor.shape[0];
    const std::byte* from = tensor.data;
    for (int64_t i = 0; i < header.count; ++i) {
      Shape shape = tensor.shape;
      shape.set(0, index_at(run.input(2), i));
      put_bytes(writer, i, shape, from, shape[0] * each);
      from += shape[0] * each;
    }
  });
}

}  // namespace

void register_flex_list_rows(Registry& registry) {
  const auto add = [&](std::string_view name, int inputs, int outputs, Infer infer, Prepare prepare) {
    registry.add(flex_row(name, inputs, outputs, infer, prepare, "lists of fixed-size types"));
  };
  add("FlexTensorListScatter", 3, 1, infer_list_scatter<Scatter::kNew>, prepare_list_scatter<Scatter::kNew>);
  add("FlexTensorListScatterV2", 4, 1, infer_list_scatter<Scatter::kNewOfSize>,
      prepare_list_scatter<Scatter::kNewOfSize>);
  add("FlexTensorListScatterIntoExistingList", 3, 1, infer_list_scatter<Scatter::kExisting>,
      prepare_list_scatter<Scatter::kExisting>);
  add("FlexTensorListConcat", 1, 2, infer_concat, prepare_concat);
  add("FlexTensorListConcatV2", 3, 2, infer_concat, prepare_concat);
  add("FlexTensorListSplit", 3, 1, infer_list_split, prepare_list_split);
}

}  // namespace leadline::ops
