// SPDX-License-Identifier: Apache-2.0
// leadline/types.h, and the helpers that turn small C++ values into Python's.
#include "leadline/types.h"

#include <memory>
#include <utility>

#include "leadline/budget.h"
#include "module.h"

namespace leadline::python {

nb::str to_str(const std::string& text) {
  PyObject* result = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (result == nullptr) {
    throw nb::python_error();
  }
  return nb::steal<nb::str>(result);
}

IntTuple to_tuple(const Shape& shape) {
  nb::list dims;
  for (const int64_t size : shape) {
    dims.append(size);
  }
  return nb::tuple(dims);
}

StrList to_list(const std::vector<std::string>& texts) {
  nb::list result;
  for (const std::string& text : texts) {
    result.append(to_str(text));
  }
  return result;
}

BytesByName to_dict(std::span<const CategoryBytes> categories) {
  nb::dict result;
  for (const CategoryBytes& entry : categories) {
    result[memory_category_name(entry.category)] = entry.bytes;
  }
  return result;
}

std::shared_ptr<const void> keep_alive(nb::object object) {
  // The holder, not a bare PyObject*, is what shared_ptr deletes, so that an exception in between leaks nothing.
  auto* holder = new nb::object(std::move(object));
  return {holder, [](const nb::object* held) {
            if (nb::is_alive()) {
              const nb::gil_scoped_acquire gil;
              delete held;
            }
          }};
}

BufferView::BufferView(nb::handle object) {
  if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) {
    throw nb::python_error();
  }
}

BufferView::~BufferView() { PyBuffer_Release(&view_); }

std::span<const std::byte> BufferView::bytes() const {
  return {static_cast<const std::byte*>(view_.buf), static_cast<size_t>(view_.len)};
}

std::shared_ptr<const BufferView> hold_buffer(nb::handle object) {
  return {new BufferView(object), [](const BufferView* held) {
            if (nb::is_alive()) {
              const nb::gil_scoped_acquire gil;
              delete held;
            }
          }};
}

void init_types(nb::module_& m) {
  nb::enum_<DType>(m, "DType", "Element type of a tensor; the values are those of the .tflite format.")
      .value("FLOAT32", DType::kFloat32)
      .value("FLOAT16", DType::kFloat16)
      .value("INT32", DType::kInt32)
      .value("UINT8", DType::kUInt8)
      .value("INT64", DType::kInt64)
      .value("STRING", DType::kString)
      .value("BOOL", DType::kBool)
      .value("INT16", DType::kInt16)
      .value("COMPLEX64", DType::kComplex64)
      .value("INT8", DType::kInt8)
      .value("FLOAT64", DType::kFloat64)
      .value("COMPLEX128", DType::kComplex128)
      .value("UINT64", DType::kUInt64)
      .value("RESOURCE", DType::kResource)
      .value("VARIANT", DType::kVariant)
      .value("UINT32", DType::kUInt32)
      .value("UINT16", DType::kUInt16)
      .value("INT4", DType::kInt4)
      .value("BFLOAT16", DType::kBFloat16)
      .value("INT2", DType::kInt2)
      .value("UINT4", DType::kUInt4)
      .value("FLOAT8E4M3FN", DType::kFloat8E4M3FN)
      .value("FLOAT8E5M2", DType::kFloat8E5M2);
}

}  // namespace leadline::python
