// SPDX-License-Identifier: Apache-2.0
// leadline/debug_result.h and leadline/debug_model.h. Results cross as JSON; leadline/jobs/debug.py wraps them.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine_call.h"
#include "leadline/debug_model.h"
#include "leadline/debug_result.h"
#include "live_objects.h"
#include "module.h"

namespace leadline::python {
namespace {

nb::bytes debug_model(const Model& float_model, const Model& quantized_model) {
  std::vector<std::byte> file;
  {
    const EngineCall call;
    file = make_debug_model(float_model, quantized_model);
  }
  return nb::bytes(file.data(), file.size());
}

DebugRun make_run(std::string float_model, std::string quantized_model, std::string data, double seconds,
                  int64_t counted_bytes) {
  return {std::move(float_model), std::move(quantized_model), std::move(data), seconds, counted_bytes};
}

nb::bytes copy_of(const ObservedTensor& tensor) { return nb::bytes(tensor.data.data(), tensor.data.size()); }

void set_callback(DebugModelObserver& self, nb::object callback) {
  if (callback.is_none()) {
    self.set_callback(nullptr);
    return;
  }
  auto held = std::make_shared<nb::object>(std::move(callback));
  self.set_callback([held](size_t layer, const ObservedTensor& difference, const ObservedTensor& quantized,
                           const ObservedTensor& reference) {
    const nb::gil_scoped_acquire acquired;
    (*held)(layer, to_tuple(quantized.shape), copy_of(difference), copy_of(quantized), copy_of(reference));
  });
}

void bind_observer(nb::module_& m) {
  nb::class_<VerifiedLayer>(m, "VerifiedLayer", "A NumericVerify of a debug model.")
      .def_ro("subgraph", &VerifiedLayer::subgraph)
      .def_ro("node", &VerifiedLayer::node)
      .def_prop_ro("output_name", [](const VerifiedLayer& self) { return to_str(self.output_name); })
      .def_ro("output_tensor", &VerifiedLayer::output_tensor)
      .def_ro("tensor", &VerifiedLayer::tensor, "The quantized tensor.")
      .def_ro("reference", &VerifiedLayer::reference, "What it is compared with.")
      .def_prop_ro(
          "tensor_name", [](const VerifiedLayer& self) { return to_str(self.tensor_name); },
          "As the float model calls it.")
      .def_prop_ro("op", [](const VerifiedLayer& self) { return to_str(self.op); })
      .def_ro("scales", &VerifiedLayer::scales)
      .def_ro("zero_points", &VerifiedLayer::zero_points);
  nb::class_<VerifiedStatistics>(m, "VerifiedStatistics", "TensorFlow's five numbers, each the mean over samples.")
      .def_ro("samples", &VerifiedStatistics::samples)
      .def_ro("not_finite", &VerifiedStatistics::not_finite, "Differences that are NaN or infinite, in all samples.")
      .def_ro("num_elements", &VerifiedStatistics::num_elements)
      .def_ro("stddev", &VerifiedStatistics::stddev)
      .def_ro("mean_error", &VerifiedStatistics::mean_error)
      .def_ro("max_abs_error", &VerifiedStatistics::max_abs_error)
      .def_ro("mean_squared_error", &VerifiedStatistics::mean_squared_error);
  nb::class_<DebugModelObserver>(m, "DebugModelObserver", "Watches the NumericVerify nodes of a debug model.")
      .def(nb::init<const Model&>(), nb::arg("debug_model"))
      .def_prop_ro("layers", &DebugModelObserver::layers, nb::rv_policy::copy)
      .def("statistics", &DebugModelObserver::statistics, "Of each layer, in the same order.")
      .def("set_callback", &set_callback, nb::arg("callback").none(),
           "callback(layer, shape, difference, quantized, reference), the last three as bytes; None: no more calls.")
      .def("clear", &DebugModelObserver::clear)
      .def(
          "attach", [](DebugModelObserver& self, Interpreter& interpreter) { interpreter.add_observer(&self); },
          nb::arg("interpreter"), nb::keep_alive<2, 1>(), "Watches every run of the interpreter from now on.");
}

}  // namespace

void init_debugger(nb::module_& m) {
  nb::class_<DebugRun>(m, "DebugRun", "How a result came about, for its page.")
      .def(nb::new_(&make_run), nb::arg("float_model") = "", nb::arg("quantized_model") = "", nb::arg("data") = "",
           nb::arg("seconds") = 0.0, nb::arg("counted_bytes") = 0);
  nb::class_<DebugResult>(m, "DebugResult", "What debugging found. The public class is leadline.DebugResult.")
      .def("to_json", [](const DebugResult& self) { return text_in_engine([&] { return self.to_json(); }); })
      .def("to_node_data", [](const DebugResult& self) { return text_in_engine([&] { return self.to_node_data(); }); })
      .def("to_csv", [](const DebugResult& self) { return text_in_engine([&] { return self.to_csv(); }); })
      .def(
          "to_text",
          [](const DebugResult& self, const std::string& opened) {
            return text_in_engine([&] { return self.to_text(opened); });
          },
          nb::arg("opened") = "")
      .def(
          "to_html",
          [](const DebugResult& self, const DebugRun& run) {
            return text_in_engine([&] { return self.to_html(run); });
          },
          nb::arg("run"), "One self-contained page.")
      .def(
          "to_notebook_html",
          [](const DebugResult& self, const DebugRun& run) {
            return text_in_engine([&] { return self.to_notebook_html(run); });
          },
          nb::arg("run"), "The page in a frame, for the output of a notebook's cell.");
  m.def("make_debug_model", &debug_model, nb::arg("float_model"), nb::arg("quantized_model"),
        "The quantized model with NumericVerify nodes, as TensorFlow's debugger takes it.");
  m.def(
      "debug_model_of",
      [](const Model& float_model, const Model& quantized_model) {
        return Remembered<Model>{debug_model_of(float_model, quantized_model)};
      },
      nb::arg("float_model"), nb::arg("quantized_model"), InEngine(),
      "The same as a model to run, which shares the constants of both.");
  bind_observer(m);
}

}  // namespace leadline::python
