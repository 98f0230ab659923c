// SPDX-License-Identifier: Apache-2.0
// Flex ops on lists of tensors (TensorListReserve, TensorListSetItem, TensorListStack, ...), as loops of Keras layers
// and TensorArrays use them. How large a list is depends on what is in it: these ops are planned when their inputs are
// computed.
#include <algorithm>
#include <functional>

#include "ops/flex/families.h"
#include "ops/flex/lists_common.h"

namespace leadline::ops {
namespace {

// TensorListReserve(element_shape, num_elements), EmptyTensorList(element_shape, max_num_elements)

template <bool kEmpty>
void infer_new(InferContext& c) {
  element_type(c);
  if (!all_known(c)) return c.defer();
  partial_shape(c, 0);
  const int64_t count = index_input(c, 1, "the number of elements");
  c.require(kEmpty || count >= 0, "the number of elements is {}, expected 0 or more", count);
  set_list_output(c, 0, kEmpty ? 0 : count, 0);
}

template <bool kEmpty>
std::unique_ptr<Kernel> prepare_new(PrepareContext& c) {
  const ListHeader header{
      .dtype = element_type(c), .count = kEmpty ? 0 : integer_of_input(c, 1), .element_shape = partial_shape(c, 0)};
  return make_kernel([header](RunContext& run) { ListWriter(run.output(0).data, header); });
}

// TensorListFromTensor(tensor, element_shape)

void infer_from_tensor(InferContext& c) {
  require_sized(c, c.input(0).dtype(), "making");
  require_indices(c, 1);
  c.require(c.input(0).dtype() == element_type(c), "the tensor is {}, but element_dtype is {}",
            dtype_name(c.input(0).dtype()), dtype_name(element_type(c)));
  const Shape row = row_shape(c, 0);
  if (c.known(1)) {
    c.require(partial_shape(c, 1).fits(row), "the elements have shape {}, expected {}", row.to_string(),
              partial_shape(c, 1).to_string());
  }
  const int64_t count = c.input(0).shape[0];
  const int64_t each = rounded_element(storage_bytes(c.input(0).dtype(), row).value_or(0));
  set_list_output(c, 0, count, checked_multiply(c, count, each));
}

std::unique_ptr<Kernel> prepare_from_tensor(PrepareContext& c) {
  const ListHeader header{
      .dtype = c.input(0).dtype(), .count = c.input(0).shape[0], .element_shape = PartialShape::of(row_shape(c, 0))};
  const Shape row = row_shape(c, 0);
  return make_kernel([header, row](RunContext& run) {
    ListWriter writer(run.output(0).data, header);
    const int64_t bytes = header.count == 0 ? 0 : run.input(0).bytes / header.count;
    for (int64_t i = 0; i < header.count; ++i) put_bytes(writer, i, row, run.input(0).data + i * bytes, bytes);
  });
}

// TensorListSetItem(list, index, item)

void check_item(const OpContext& c, const ListView& list, int i) {
  const ListHeader header = list.header();
  c.require(c.input(i).dtype() == header.dtype, "the item is {}, the list holds {}", dtype_name(c.input(i).dtype()),
            dtype_name(header.dtype));
  c.require(header.element_shape.fits(c.input(i).shape), "the item has shape {}, the elements of the list have {}",
            c.input(i).shape.to_string(), header.element_shape.to_string());
}

void infer_set(InferContext& c) {
  if (!all_known(c)) return c.defer();
  const ListView list = known_list(c, 0);
  check_item(c, list, 2);
  const int64_t index = index_input(c, 1, "the index");
  const bool grows = node_def(c).flag("resize_if_index_out_of_bounds", false);
  constexpr int64_t kLargestIndex = (int64_t{1} << 31) - 1;
  c.require(index >= 0 && index <= kLargestIndex && (grows || index < list.size()),
            "index {} is outside a list of {} elements", index, list.size());
  const int64_t kept = data_bytes(list, list.size(), [&](int64_t i) { return i == index; });
  set_list_output(c, 0, std::max(list.size(), index + 1), checked_add(c, kept, rounded_element(c.input(2).bytes)));
}

std::unique_ptr<Kernel> prepare_set(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    const ListView list = list_of(run.input(0));
    const int64_t index = index_at(run.input(1), 0);
    ListHeader header = list.header();
    header.count = std::max(header.count, index + 1);
    ListWriter writer(run.output(0).data, header);
    for_items(list.size(), 8, [&](int64_t i) {
      if (i != index) put_element(writer, i, list, i);
    });
    put_bytes(writer, index, run.input(2).shape, run.input(2).data, run.input(2).bytes);
  });
}

// TensorListGetItem(list, index, element_shape)

/// Element `index` becomes output `out`.
void infer_element(InferContext& c, const ListView& list, int64_t index, int shape_input, int out) {
  const ListHeader header = list.header();
  c.require(c.output(out).dtype() == header.dtype, "the result is {}, the list holds {}",
            dtype_name(c.output(out).dtype()), dtype_name(header.dtype));
  const ListElement e = list.element(index);
  const PartialShape given = partial_shape(c, shape_input);
  if (e.present()) {
    c.require(given.fits(e.shape.shape()), "element {} has shape {}, expected {}", index, e.shape.to_string(),
              given.to_string());
    c.set_output_shape(out, e.shape.shape());
    return c.set_output_bytes(out, e.bytes);
  }
  require_sized(c, header.dtype, "reading an empty place of");
  const PartialShape shape = absent_shape(c, list, given);
  c.require(shape.fully_known(), "element {} was never written, and its shape {} is not known", index,
            shape.to_string());
  c.set_output_shape(out, shape.shape());
}

/// Elements that were never written are zeros.
void copy_element(const TensorView& to, const ListView& list, int64_t index) {
  const ListElement e = list.element(index);
  if (to.bytes == 0) return;
  if (e.present())
    copy_bytes(to.data, list.data(e), to.bytes);
  else
    fill_bytes(to.data, std::byte{0}, to.bytes);
}

void infer_get(InferContext& c) {
  if (!all_known(c)) return c.defer();
  const ListView list = known_list(c, 0);
  const int64_t index = index_input(c, 1, "the index");
  c.require(index >= 0 && index < list.size(), "index {} is outside a list of {} elements", index, list.size());
  infer_element(c, list, index, 2, 0);
}

std::unique_ptr<Kernel> prepare_get(PrepareContext&) {
  return make_kernel(
      [](RunContext& run) { copy_element(run.output(0), list_of(run.input(0)), index_at(run.input(1), 0)); });
}

// TensorListStack(list, element_shape), TensorListGather(list, indices, element_shape)

/// Output 0 is the elements `count` one after the other; `index` says which.
void infer_stacked(InferContext& c, const ListView& list, int64_t count, int shape_input,
                   const std::function<int64_t(int64_t)>& index) {
  require_sized(c, list.header().dtype, "stacking");
  c.require(c.output(0).dtype() == list.header().dtype, "the result is {}, the list holds {}",
            dtype_name(c.output(0).dtype()), dtype_name(list.header().dtype));
  const PartialShape shape = absent_shape(c, list, partial_shape(c, shape_input));
  c.require(shape.fully_known(), "the elements of the list have shape {}, which is not known enough to stack them",
            shape.to_string());
  const Shape each = shape.shape();
  Shape result{count};
  for (int64_t size : each) {
    c.require(result.rank() < kMaxRank, "a stack of elements of shape {} has too many dimensions", each.to_string());
    result.push_back(size);
  }
  for_items(count, 4, [&](int64_t i) {
    const ListElement e = list.element(index(i));
    c.require(!e.present() || e.shape.shape() == each, "element {} of the list has shape {}, others {}", index(i),
              e.shape.to_string(), each.to_string());
  });
  c.set_output_shape(0, result);
}

void copy_stacked(RunContext& run, int64_t count, const std::function<int64_t(int64_t)>& index) {
  const ListView list = list_of(run.input(0));
  const TensorView& out = run.output(0);
  const int64_t each = count == 0 ? 0 : out.bytes / count;
  for (int64_t i = 0; i < count; ++i) {
    TensorView row = out;
    row.data += i * each;
    row.bytes = each;
    copy_element(row, list, index(i));
  }
}

void infer_stack(InferContext& c) {
  const int64_t expected = node_def(c).integer("num_elements", -1);
  if (!all_known(c)) return c.defer();
  const ListView list = known_list(c, 0);
  c.require(expected < 0 || expected == list.size(), "the list has {} elements, expected {}", list.size(), expected);
  infer_stacked(c, list, list.size(), 1, [](int64_t i) { return i; });
}

std::unique_ptr<Kernel> prepare_stack(PrepareContext&) {
  return make_kernel(
      [](RunContext& run) { copy_stacked(run, list_of(run.input(0)).size(), [](int64_t i) { return i; }); });
}

void infer_gather(InferContext& c) {
  node_def(c);
  if (!all_known(c)) return c.defer();
  const ListView list = known_list(c, 0);
  require_indices(c, 1);
  // Read where they are: as many as the data says, and a copy of them would be in no budget.
  const Operand& indices = c.input(1);
  const auto index = [&](int64_t i) { return load_index(indices.data, indices.dtype(), i); };
  for_items(indices.shape.elements(), 4, [&](int64_t i) {
    c.require(index(i) >= 0 && index(i) < list.size(), "index {} is outside a list of {} elements", index(i),
              list.size());
  });
  infer_stacked(c, list, indices.shape.elements(), 2, index);
}

std::unique_ptr<Kernel> prepare_gather(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    copy_stacked(run, run.input(1).elements(), [&](int64_t i) { return index_at(run.input(1), i); });
  });
}

// TensorListPushBack(list, tensor), TensorListPopBack(list, element_shape) -> list, tensor

void infer_push(InferContext& c) {
  node_def(c);
  if (!all_known(c)) return c.defer();
  const ListView list = known_list(c, 0);
  check_item(c, list, 1);
  const int64_t kept = data_bytes(list, list.size());
  set_list_output(c, 0, list.size() + 1, checked_add(c, kept, rounded_element(c.input(1).bytes)));
}

std::unique_ptr<Kernel> prepare_push(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    const ListView list = list_of(run.input(0));
    ListHeader header = list.header();
    ++header.count;
    ListWriter writer(run.output(0).data, header);
    for_items(list.size(), 8, [&](int64_t i) { put_element(writer, i, list, i); });
    put_bytes(writer, list.size(), run.input(1).shape, run.input(1).data, run.input(1).bytes);
  });
}

void infer_pop(InferContext& c) {
  node_def(c);
  if (!all_known(c)) return c.defer();
  const ListView list = known_list(c, 0);
  c.require(list.size() > 0, "the list is empty");
  set_list_output(c, 0, list.size() - 1, data_bytes(list, list.size() - 1));
  infer_element(c, list, list.size() - 1, 1, 1);
}

/// The first elements of a list, with empty places when there are more.
void resize_list(const TensorView& from, const TensorView& to, int64_t count) {
  const ListView list = list_of(from);
  ListHeader header = list.header();
  header.count = count;
  ListWriter writer(to.data, header);
  for_items(std::min(count, list.size()), 8, [&](int64_t i) { put_element(writer, i, list, i); });
}

std::unique_ptr<Kernel> prepare_pop(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    const ListView list = list_of(run.input(0));
    resize_list(run.input(0), run.output(0), list.size() - 1);
    copy_element(run.output(1), list, list.size() - 1);
  });
}

// TensorListResize(list, size), TensorListLength(list), TensorListElementShape(list)

void infer_resize(InferContext& c) {
  node_def(c);
  if (!all_known(c)) return c.defer();
  const int64_t count = index_input(c, 1, "the number of elements");
  c.require(count >= 0, "the number of elements is {}, expected 0 or more", count);
  set_list_output(c, 0, count, data_bytes(known_list(c, 0), count));
}

std::unique_ptr<Kernel> prepare_resize(PrepareContext&) {
  return make_kernel([](RunContext& run) { resize_list(run.input(0), run.output(0), index_at(run.input(1), 0)); });
}

void infer_list_length(InferContext& c) {
  node_def(c);
  c.require_output_type(0, {DType::kInt32});
  c.require_input_type(0, {DType::kVariant});
  c.set_output_shape(0, {});
}

ListView running_list(const RunContext& run, int i) {
  const ListView list = list_of(run.input(i));
  const std::string problem = list.problem();
  run.require(problem.empty(), "{}", problem);
  return list;
}

std::unique_ptr<Kernel> prepare_list_length(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    *run.output(0).mutable_as<int32_t>() = static_cast<int32_t>(running_list(run, 0).size());
  });
}

void infer_element_shape(InferContext& c) {
  node_def(c);
  c.require_output_type(0, {DType::kInt32, DType::kInt64});
  if (!all_known(c)) return c.defer();
  const int32_t rank = known_list(c, 0).header().element_shape.rank;
  c.set_output_shape(0, rank < 0 ? Shape() : Shape{rank});
}

std::unique_ptr<Kernel> prepare_element_shape(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    const PartialShape shape = list_of(run.input(0)).header().element_shape;
    const TensorView& out = run.output(0);
    for (int64_t i = 0; i < out.elements(); ++i) {
      const int64_t size = shape.rank < 0 ? -1 : shape.dims[static_cast<size_t>(i)];
      if (out.dtype == DType::kInt64)
        out.mutable_as<int64_t>()[i] = size;
      else
        out.mutable_as<int32_t>()[i] = static_cast<int32_t>(size);
    }
  });
}

}  // namespace

void register_flex_lists(Registry& registry) {
  const auto add = [&](std::string_view name, int inputs, int outputs, Infer infer, Prepare prepare) {
    registry.add(flex_row(name, inputs, outputs, infer, prepare, "lists of fixed-size types"));
  };
  add("FlexTensorListReserve", 2, 1, infer_new<false>, prepare_new<false>);
  add("FlexEmptyTensorList", 2, 1, infer_new<true>, prepare_new<true>);
  add("FlexTensorListFromTensor", 2, 1, infer_from_tensor, prepare_from_tensor);
  add("FlexTensorListSetItem", 3, 1, infer_set, prepare_set);
  add("FlexTensorListGetItem", 3, 1, infer_get, prepare_get);
  add("FlexTensorListStack", 2, 1, infer_stack, prepare_stack);
  add("FlexTensorListGather", 3, 1, infer_gather, prepare_gather);
  add("FlexTensorListPushBack", 2, 1, infer_push, prepare_push);
  add("FlexTensorListPopBack", 2, 2, infer_pop, prepare_pop);
  add("FlexTensorListResize", 2, 1, infer_resize, prepare_resize);
  add("FlexTensorListLength", 1, 1, infer_list_length, prepare_list_length);
  add("FlexTensorListElementShape", 1, 1, infer_element_shape, prepare_element_shape);
}

}  // namespace leadline::ops
