// SPDX-License-Identifier: Apache-2.0
// leadline/interpreter.h. Tensors cross as flat arrays of bytes; leadline/_tensors.py gives them dtype and shape.
#include "leadline/interpreter.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "module.h"

namespace leadline::python {
namespace {

using ByteArray = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;
using ConstByteArray = nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>;
using InputBytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// The array shares ownership of the memory, so it outlives resizes and the interpreter.
template <typename Array>
nb::object to_array(const TensorMemory& memory) {
  static uint8_t empty = 0;
  auto* holder = new std::shared_ptr<const void>(memory.owner);
  nb::capsule owner(holder, [](void* pointer) noexcept { delete static_cast<std::shared_ptr<const void>*>(pointer); });
  auto* data = memory.data != nullptr ? reinterpret_cast<uint8_t*>(memory.data) : &empty;
  const std::array<size_t, 1> shape = {static_cast<size_t>(memory.bytes)};
  return nb::cast(Array(data, 1, shape.data(), owner));
}

nb::tuple tensor(const Interpreter& interpreter, int index) {
  TensorMemory memory;
  bool constant = false;
  {
    const nb::gil_scoped_release released;
    memory = interpreter.tensor(index);
    constant = interpreter.tensor_info(index).constant;
  }
  // A constant may lie in a read-only mapping of the file.
  nb::object array = constant ? to_array<ConstByteArray>(memory) : to_array<ByteArray>(memory);
  return nb::make_tuple(std::move(array), memory.dtype, to_tuple(memory.shape));
}

void set_tensor(Interpreter& interpreter, int index, const InputBytes& bytes) {
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  const std::span<const std::byte> span(data, bytes.size());
  const nb::gil_scoped_release released;
  interpreter.set_tensor(index, span);
}

void resize_input(Interpreter& interpreter, int index, const std::vector<int64_t>& shape, bool strict) {
  const nb::gil_scoped_release released;
  interpreter.resize_input(index, Shape(std::span<const int64_t>(shape)), strict);
}

void init(Interpreter* self, const Model& model, int num_threads, std::shared_ptr<Budget> budget, int subgraph,
          bool preserve_all_tensors, const Interpreter* shares_state_with) {
  InterpreterOptions options;
  options.num_threads = num_threads;
  options.budget = std::move(budget);
  options.subgraph = subgraph;
  options.preserve_all_tensors = preserve_all_tensors;
  options.shares_state_with = shares_state_with;
  const nb::gil_scoped_release released;
  new (self) Interpreter(model, std::move(options));
}

}  // namespace

void init_interpreter(nb::module_& m) {
  nb::class_<Interpreter>(m, "Interpreter",
                          "Runs one subgraph of a Model. leadline.lite.Interpreter is the face for people.")
      .def("__init__", &init, nb::arg("model"), nb::arg("num_threads") = 1, nb::arg("budget").none() = nb::none(),
           nb::arg("subgraph") = 0, nb::arg("preserve_all_tensors") = false,
           nb::arg("shares_state_with").none() = nb::none(), nb::keep_alive<1, 7>(),
           "Plans; allocates nothing that grows with the model.")
      .def_prop_ro("model", &Interpreter::model, nb::rv_policy::copy)
      .def("plan", &Interpreter::plan, WithoutGil(), "The plan for the current input shapes.")
      .def("allocate", &Interpreter::allocate, WithoutGil(), "Takes the planned memory and packs the weights.")
      .def("resize_input", &resize_input, nb::arg("index"), nb::arg("shape"), nb::arg("strict") = false,
           "Gives an input a new shape.")
      .def_prop_ro("inputs", &Interpreter::inputs, nb::rv_policy::copy, WithoutGil())
      .def_prop_ro("outputs", &Interpreter::outputs, nb::rv_policy::copy, WithoutGil())
      .def_prop_ro("tensor_count", &Interpreter::tensor_count, WithoutGil())
      .def("tensor_info", &Interpreter::tensor_info, nb::arg("index"), WithoutGil())
      .def("set_tensor", &set_tensor, nb::arg("index"), nb::arg("bytes"), "Copies bytes into an input or variable.")
      .def("tensor", &tensor, nb::arg("index"),
           nb::sig("def tensor(self, index: int) -> tuple[numpy.typing.NDArray[numpy.uint8], DType, tuple[int, ...]]"),
           "The memory of a tensor as a flat array of bytes that keeps it alive, its dtype and its shape.")
      .def("invoke", &Interpreter::invoke, WithoutGil(), "Runs once.")
      .def("reset_variables", &Interpreter::reset_variables, WithoutGil(), "Sets all variables to their initial state.")
      .def("counted_peak_bytes", &Interpreter::counted_peak_bytes, WithoutGil(),
           "Highest count of bytes charged for this interpreter and its model.")
      .def("enable_profile", &Interpreter::enable_profile, nb::arg("enabled"), WithoutGil())
      .def("profile", &Interpreter::profile, WithoutGil(), "Time per node since profiling was switched on.");
}

}  // namespace leadline::python
