// SPDX-License-Identifier: Apache-2.0
// leadline/interpreter.h. Tensors cross as flat buffers of bytes; leadline/_native/tensors.py adds dtype and
// shape.
#include "leadline/interpreter.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine_call.h"
#include "leadline/passes.h"
#include "module.h"

namespace leadline::python {
namespace {

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  static uint8_t empty = 0;
  const auto* tensor = nb::inst_ptr<SharedTensor>(self);
  void* data = tensor->memory.data != nullptr ? static_cast<void*>(tensor->memory.data) : &empty;
  const auto bytes = static_cast<Py_ssize_t>(tensor->memory.bytes);
  return PyBuffer_FillInfo(view, self, data, bytes, tensor->read_only ? 1 : 0, flags);
}

SharedTensor shared_tensor(const Interpreter& interpreter, int index) {
  TensorMemory memory = interpreter.tensor(index);
  const bool read_only = memory.read_only;
  return {std::move(memory), read_only};
}

void bind_tensor(Interpreter& interpreter, int index, nb::handle buffer, const std::vector<int64_t>& shape) {
  const std::shared_ptr<const BufferView> view = hold_buffer(buffer);
  const std::span<const std::byte> bytes = view->bytes();
  const EngineCall call;
  interpreter.bind(index, {.owner = view,
                           .data = const_cast<std::byte*>(bytes.data()),  // read_only says whether it may be written
                           .bytes = static_cast<int64_t>(bytes.size()),
                           .dtype = interpreter.tensor_info(index).dtype,
                           .shape = Shape(std::span<const int64_t>(shape)),
                           .read_only = view->read_only()});
}

void set_tensor(Interpreter& interpreter, int index, nb::handle bytes) {
  const BufferView view(bytes);
  const EngineCall call;
  interpreter.set_tensor(index, view.bytes());
}

void resize_input(Interpreter& interpreter, int index, const std::vector<int64_t>& shape, bool strict) {
  const EngineCall call;
  interpreter.resize_input(index, Shape(std::span<const int64_t>(shape)), strict);
}

Plan plan_for(const Interpreter& interpreter, const std::map<int, std::vector<int64_t>>& shapes) {
  std::map<int, Shape> given;
  for (const auto& [index, shape] : shapes) given.emplace(index, Shape(std::span<const int64_t>(shape)));
  const EngineCall call;
  return interpreter.plan(given);
}

void init_instance(Interpreter* self, const Model& model, int num_threads, std::shared_ptr<Budget> budget, int subgraph,
                   bool preserve_all_tensors, const Interpreter* shares_state_with, bool plan_only,
                   const std::string& device, MissingDevice on_missing, bool winograd, int64_t max_loop_rounds,
                   std::vector<std::string> disabled_passes) {
  InterpreterOptions options;
  options.num_threads = num_threads;
  options.budget = std::move(budget);
  options.subgraph = subgraph;
  options.preserve_all_tensors = preserve_all_tensors;
  options.shares_state_with = shares_state_with;
  options.plan_only = plan_only;
  options.device = device;
  options.on_missing = on_missing;
  options.winograd = winograd;
  options.max_loop_rounds = max_loop_rounds;
  options.disabled_passes = std::move(disabled_passes);
  const EngineCall call;
  new (self) Interpreter(model, std::move(options));
}

}  // namespace

void init_interpreter(nb::module_& m) {
  nb::class_<PassInfo>(m, "PassInfo", "A rewrite of a model's graph.")
      .def_ro("name", &PassInfo::name)
      .def_ro("description", &PassInfo::description)
      .def_ro("runs", &PassInfo::runs, "Made by an Interpreter, unless its disabled_passes name it.")
      .def_ro("converts", &PassInfo::converts, "Made by a Converter, unless its disabled_passes name it.")
      .def("__repr__",
           [](const PassInfo& self) { return "<leadline.PassInfo " + self.name + ": " + self.description + ">"; });
  m.def("list_passes", &list_passes, "All passes over graphs, those of the interpreter first, in their order.");
  static PyType_Slot buffer_protocol[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};
  nb::class_<SharedTensor>(m, "TensorMemory", nb::type_slots(buffer_protocol),
                           "The memory of a tensor, which lives as long as this or an array made from it. Offers the "
                           "buffer protocol: a flat buffer of bytes.")
      .def_prop_ro("dtype", [](const SharedTensor& self) { return self.memory.dtype; })
      .def_prop_ro("shape", [](const SharedTensor& self) { return to_tuple(self.memory.shape); })
      .def_prop_ro("nbytes", [](const SharedTensor& self) { return self.memory.bytes; });

  nb::class_<Interpreter>(m, "Interpreter",
                          "Runs one subgraph of a Model. The public class is leadline.lite.Interpreter.")
      .def("__init__", &init_instance, nb::arg("model"), nb::arg("num_threads") = 1,
           nb::arg("budget").none() = nb::none(), nb::arg("subgraph") = 0, nb::arg("preserve_all_tensors") = false,
           nb::arg("shares_state_with").none() = nb::none(), nb::arg("plan_only") = false, nb::arg("device") = "",
           nb::arg("on_missing") = MissingDevice::kError, nb::arg("winograd") = true,
           nb::arg("max_loop_rounds") = InterpreterOptions().max_loop_rounds,
           nb::arg("disabled_passes") = std::vector<std::string>(), nb::keep_alive<1, 7>(),
           "Plans; allocates nothing that grows with the model. winograd: float 3x3 convolutions may use Winograd's "
           "method, which is faster and rounds elsewhere than plain sums do. disabled_passes: names of passes "
           "(list_passes()) that do not merge nodes for the runs, or \"all\".")
      .def_prop_ro("model", &Interpreter::model, nb::rv_policy::copy)
      .def_prop_ro(
          "device", [](const Interpreter& self) { return self.device().name; }, "Where the model runs.")
      .def_prop_ro(
          "device_message", [](const Interpreter& self) { return to_str(self.device().message); },
          "Why that is not the device that was asked for; empty when it is.")
      .def(
          "plan", [](const Interpreter& self) { return self.plan(); }, InEngine(),
          "The plan for the current input shapes.")
      .def("plan_for", &plan_for, nb::arg("shapes"), "The plan for other shapes of inputs, by tensor number.")
      .def_prop_ro("unsized_inputs", &Interpreter::unsized_inputs, InEngine(),
                   "Inputs whose sizes the file leaves open and resize_input() has not said.")
      .def("allocate", &Interpreter::allocate, InEngine(), "Takes the planned memory and packs the weights.")
      .def("resize_input", &resize_input, nb::arg("index"), nb::arg("shape"), nb::arg("strict") = false,
           "Sets the shape of an input.")
      .def_prop_ro("inputs", &Interpreter::inputs, nb::rv_policy::copy, InEngine())
      .def_prop_ro("outputs", &Interpreter::outputs, nb::rv_policy::copy, InEngine())
      .def_prop_ro("tensor_count", &Interpreter::tensor_count, InEngine())
      .def("tensor_info", &Interpreter::tensor_info, nb::arg("index"), InEngine())
      .def("set_tensor", &set_tensor, nb::arg("index"), nb::arg("bytes"),
           nb::sig("def set_tensor(self, index: int, bytes: typing_extensions.Buffer) -> None"),
           "Copies a buffer into an input or variable.")
      .def("bind_tensor", &bind_tensor, nb::arg("index"), nb::arg("buffer"), nb::arg("shape"),
           nb::sig("def bind_tensor(self, index: int, buffer: typing_extensions.Buffer, shape: "
                   "collections.abc.Sequence[int])"
                   " -> None"),
           "Lets an input, output or variable live in this buffer, which is held; its element type is not checked.")
      .def("unbind_tensor", &Interpreter::unbind, nb::arg("index"), InEngine(),
           "Moves a tensor back to memory of the interpreter.")
      .def("tensor", &shared_tensor, nb::arg("index"), InEngine(), "The memory of a tensor.")
      .def(
          "invoke", [](Interpreter& self) { self.invoke(); }, InEngine(),
          "Runs once. To be ended by signals and by time_limit().")
      .def("reset_variables", &Interpreter::reset_variables, InEngine(), "Sets all variables to their initial state.")
      .def("counted_peak_bytes", &Interpreter::counted_peak_bytes, InEngine(),
           "Highest count of bytes charged for this interpreter and its model.")
      .def_prop_ro("memory_bytes", &Interpreter::memory_bytes, InEngine(),
                   "Bytes charged now for this interpreter alone, without its model's.")
      .def("enable_profile", &Interpreter::enable_profile, nb::arg("enabled"), InEngine())
      .def("profile", &Interpreter::profile, InEngine(), "Time per node since profiling was switched on.");
}

}  // namespace leadline::python
