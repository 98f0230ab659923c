// SPDX-License-Identifier: Apache-2.0
// Lists of tensors, which TensorArray, map_fn, scan and recurrent layers are made of. A list is one tensor
// [length, ...]. Nothing is known of the elements of a blank list (Importer::blank_list): what is written first
// decides.
#include <algorithm>

#include "import/saved_model/op_functions.h"

namespace leadline::saved_model {
namespace {

/// The sizes of elements when they are all constant.
std::optional<std::vector<int64_t>> known_sizes(OpCall& call, int sizes) {
  const auto known = call.builder().known_ints(sizes);
  if (!known || call.e.rank(sizes) != 1 || std::any_of(known->begin(), known->end(), [](int64_t s) { return s < 0; })) {
    return {};
  }
  return known;
}

int as_vector(OpCall& call, int number) { return call.e.reshape(call.e.cast(number, DType::kInt32), {1}); }

/// A list of zeros, or a blank one when `sizes` does not have the shape of elements.
int make_list(OpCall& call, int length, int sizes, DType dtype) {
  Emitter& e = call.e;
  require(e.dtype(length) == DType::kInt32 && e.rank(length) <= 1, kBad, "the length of the list is not an integer");
  if (const auto known = known_sizes(call, sizes)) {
    std::vector<int32_t> element;
    for (const int64_t size : *known) element.push_back(small(size));
    const int count = as_vector(call, length);
    Dims dims = {-1};
    dims.insert(dims.end(), known->begin(), known->end());
    const ops::SizeSamples samples = ops::sample_shapes(dims);
    return zeros_of(call, element.empty() ? count : e.concat({count, e.ints(element)}, 0), dtype, samples);
  }
  // A value of its own, so that only this list is marked.
  const int scalar = call.builder().constant(e.name("Const"), DType::kInt32, {0}, std::vector<int32_t>{});
  const int blank = call.builder().node("RESHAPE", {length, scalar}, e.name("Length"));
  call.importer.mark_blank(blank, dtype);
  return blank;
}

/// Samples of a list of any length, none of them empty, from those of an element.
ops::SizeSamples any_number_of(ops::SizeSamples elements) {
  const ops::SizeSamples lengths = ops::sample_shapes({-1});
  for (size_t s = 0; s < elements.size(); ++s) {
    if (!elements[s]) continue;
    Shape shape = *lengths[s];
    for (const int64_t size : *elements[s]) shape.push_back(size);
    elements[s] = shape;
  }
  return elements;
}

/// The list as a tensor, given one of its elements.
int list_for(OpCall& call, int list, int element) {
  Emitter& e = call.e;
  const auto blank = call.importer.blank_list(list);
  if (!blank) return list;
  const int count = e.reshape(list, {1});
  const int rank = e.rank(element);
  // The length may be an input of the body; the sizes of elements are those of this one all the same.
  return zeros_of(call, rank == 0 ? count : e.concat({count, e.shape_part(element, 0, rank)}, 0), e.dtype(element),
                  any_number_of(call.builder().samples(element)));
}

/// The list as a tensor; `sizes` may describe elements that were not written.
int filled(OpCall& call, int list, size_t sizes) {
  const auto blank = call.importer.blank_list(list);
  if (blank) {
    const auto known = sizes < call.inputs.size() ? known_sizes(call, call.in(sizes)) : std::nullopt;
    if (!known) {
      call.unsupported("reads a list before anything is written to it; give the TensorArray an element_shape");
    }
    return make_list(call, list, call.in(sizes), *blank);
  }
  require(call.e.rank(list) >= 1, kBad, "its input is not a list");
  return list;
}

int length_of(OpCall& call, int list) {
  require(call.importer.blank_list(list) || call.e.rank(list) >= 1, kBad, "its input is not a list");
  return call.importer.blank_list(list) ? call.e.reshape(list, {1}) : call.e.shape_part(list, 0, 1);
}

int scatter(OpCall& call, int indices, int values, int sizes) {
  Dims dims = call.e.dims(values);
  dims[0] = -1;
  return call.sized("SCATTER_ND", {indices, values, sizes}, call.e.dtype(values), dims, nullptr,
                    call.builder().samples(values));
}

/// `list` with zeros after it, so that it has at least `length` elements, a vector of one.
int lengthened(OpCall& call, int list, int length) {
  Emitter& e = call.e;
  const int missing = e.binary("MAXIMUM", e.sub(length, e.shape_part(list, 0, 1)), e.ints({0}));
  const int sizes = e.rank(list) == 1 ? missing : e.concat({missing, e.shape_part(list, 1, e.rank(list))}, 0);
  // How many are missing is not known: the list may be empty, and have the first written to it here.
  ops::SizeSamples elements = call.builder().samples(list);
  for (size_t s = 0; s < elements.size(); ++s) {
    if (elements[s]) elements[s] = Shape(elements[s]->dims().subspan(1));
  }
  return e.concat({list, zeros_of(call, sizes, e.dtype(list), any_number_of(elements))}, 0);
}

int first_elements(OpCall& call, int list, int length) {
  Emitter& e = call.e;
  const auto rank = static_cast<size_t>(e.rank(list));
  std::vector<int> size = {length};
  if (rank > 1) size.push_back(e.ints(std::vector<int32_t>(rank - 1, -1)));
  Dims dims = e.dims(list);
  dims[0] = -1;
  return call.sized("SLICE", {list, e.ints(std::vector<int32_t>(rank, 0)), e.concat(size, 0)}, e.dtype(list), dims,
                    nullptr, call.builder().samples(list));
}

DType element_type(OpCall& call) { return call.attr_type("element_dtype", DType::kFloat32); }

}  // namespace

int zeros_of(OpCall& call, int sizes, DType dtype, std::optional<ops::SizeSamples> samples) {
  const Dims dims = call.unknown_like(sizes);
  Dims known = dims;
  for (size_t i = 0; samples && i < dims.size(); ++i) {
    if (i > 0) known[i] = samples->common_size(static_cast<int>(i)).value_or(-1);
  }
  return call.sized("FILL", {sizes, call.zero_of(dtype)}, dtype, known, nullptr, samples);
}

Outputs list_reserve(OpCall& call) { return {make_list(call, call.in32(1), call.in32(0), element_type(call))}; }

Outputs list_empty(OpCall& call) { return {make_list(call, call.e.integer(0), call.in32(0), element_type(call))}; }

Outputs list_from_tensor(OpCall& call) {
  require(call.e.rank(call.in()) >= 1, kBad, "it makes a list of a scalar");
  return {call.in()};
}

Outputs list_get(OpCall& call) { return {call.e.gather(filled(call, call.in(0), 2), call.in32(1), 0)}; }

Outputs list_set(OpCall& call) {
  Emitter& e = call.e;
  const int item = call.in(2);
  int list = list_for(call, call.in(0), item);
  const int index = as_vector(call, call.in(1));
  require(e.rank(list) == e.rank(item) + 1, kBad, "an element of rank {} is written to a list of elements of rank {}",
          e.rank(item), e.rank(list) - 1);
  if (call.attr_bool("resize_if_index_out_of_bounds", false)) list = lengthened(call, list, e.add(index, 1.0));
  std::vector<int> start = {index};
  if (e.rank(item) > 0) start.push_back(e.ints(std::vector<int32_t>(static_cast<size_t>(e.rank(item)), 0)));
  const int row = call.builder().node("EXPAND_DIMS", {item, e.integer(0)}, e.name("ExpandDims"));
  return {call.builder().node("DYNAMIC_UPDATE_SLICE", {list, row, e.concat(start, 0)}, call.name())};
}

Outputs list_stack(OpCall& call) { return {filled(call, call.in(), 1)}; }

Outputs list_length(OpCall& call) { return {call.e.reshape(length_of(call, call.in()), {})}; }

Outputs list_push(OpCall& call) {
  const int item = call.in(1);
  const int row = call.builder().node("EXPAND_DIMS", {item, call.e.integer(0)}, call.e.name("ExpandDims"));
  return {call.e.concat({list_for(call, call.in(0), item), row}, 0)};
}

Outputs list_pop(OpCall& call) {
  Emitter& e = call.e;
  const int list = filled(call, call.in(), 1);
  const int last = e.sub(e.shape_part(list, 0, 1), e.ints({1}));
  return {first_elements(call, list, last), e.gather(list, e.reshape(last, {}), 0)};
}

Outputs list_resize(OpCall& call) {
  const int length = as_vector(call, call.in(1));
  if (const auto blank = call.importer.blank_list(call.in())) {
    return {make_list(call, length, call.e.ints({-1}), *blank)};
  }
  require(call.e.rank(call.in()) >= 1, kBad, "its input is not a list");
  return {first_elements(call, lengthened(call, call.in(), length), length)};
}

Outputs list_gather(OpCall& call) { return {call.e.gather(filled(call, call.in(0), 2), call.in32(1), 0)}; }

/// Into a list that exists, or a new one as long as the largest index needs, or as the op says.
Outputs list_scatter(OpCall& call) {
  Emitter& e = call.e;
  const bool into = call.node.op == "TensorListScatterIntoExistingList";
  const int values = call.in(into ? 1 : 0);
  const int rank = e.rank(values);
  require(rank >= 1, kBad, "its tensor is a scalar");
  const int positions = call.in32(into ? 2 : 1);
  const int indices = e.reshape(positions, {-1, 1});
  int length = -1;
  if (into) {
    length = length_of(call, call.in(0));
  } else if (call.node.op == "TensorListScatterV2" && call.integer(3, "a number of elements") >= 0) {
    length = as_vector(call, call.in(3));
  } else {
    length = e.add(e.reduce("REDUCE_MAX", positions, {0}, true), 1.0);
  }
  const int sizes = rank == 1 ? length : e.concat({length, e.shape_part(values, 1, rank)}, 0);
  const int fresh = scatter(call, indices, values, sizes);
  if (!into || call.importer.blank_list(call.in(0))) return {fresh};
  const int update_sizes = e.shape_part(values, 0, rank);
  const int ones = call.builder().node("FILL", {update_sizes, e.integer(1)}, e.name("Fill"), DType::kInt32);
  const int written = e.compare("GREATER", scatter(call, indices, ones, sizes), e.integer(0));
  return {e.select(written, fresh, call.in(0))};
}

/// Elements of one shape, one after the other along their first axis; and how long each is.
Outputs list_concat(OpCall& call) {
  Emitter& e = call.e;
  const int list = filled(call, call.in(), 1);
  const int rank = e.rank(list);
  require(rank >= 2, kBad, "elements of a list that are scalars cannot be joined");
  std::vector<int> sizes = {e.ints({-1})};
  if (rank > 2) sizes.push_back(e.shape_part(list, 2, rank));
  const int joined = call.builder().node("RESHAPE", {list, e.concat(sizes, 0)}, call.name());
  const int each = e.reshape(e.shape_part(list, 1, 2), {});
  const int lengths = call.builder().node("FILL", {e.shape_part(list, 0, 1), each}, e.name("Fill"), DType::kInt32);
  return {joined, e.cast(lengths, DType::kInt64)};
}

Outputs list_element_shape(OpCall& call) {
  const int list = filled(call, call.in(), 1);
  return {call.e.cast(call.e.shape_part(list, 1, call.e.rank(list)), call.attr_type("shape_type", DType::kInt32))};
}

}  // namespace leadline::saved_model
