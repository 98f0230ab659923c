// SPDX-License-Identifier: Apache-2.0
// leadline/quantizer.h and leadline/recipe.h.
#include "leadline/quantizer.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <string>
#include <vector>

#include "engine_call.h"
#include "leadline/recipe.h"
#include "live_objects.h"
#include "module.h"

namespace leadline::python {
namespace {

/// Written straight into the memory of the result, which nobody else can see yet.
nb::bytes quantize(const Quantizer& self, const Calibration* calibration, const ChannelMeans* means,
                   const nb::object& callback) {
  nb::object result;
  const auto allocate = [&](int64_t bytes) -> std::span<std::byte> {
    const nb::gil_scoped_acquire held;
    result = nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(bytes)));
    if (!result.is_valid()) throw nb::python_error();
    return {reinterpret_cast<std::byte*>(PyBytes_AS_STRING(result.ptr())), static_cast<size_t>(bytes)};
  };
  const Progress progress = progress_of(callback);
  {
    const EngineCall call;
    self.quantize_into(allocate, calibration, means, progress);
  }
  return nb::cast<nb::bytes>(result);
}

Remembered<Model> quantize_to_model(const Quantizer& self, const Calibration* calibration, const ChannelMeans* means,
                                    const nb::object& callback) {
  const Progress progress = progress_of(callback);
  const EngineCall call;
  return {self.quantize_to_model(calibration, means, progress)};
}

void bind_options(nb::module_& m) {
  nb::enum_<QuantizationMode>(m, "QuantizationMode", "How the numbers of a node are stored and computed with.")
      .value("FLOAT", QuantizationMode::kFloat, "Stays as it is.")
      .value("FLOAT16", QuantizationMode::kFloat16, "Weights are stored as float16.")
      .value("DYNAMIC_RANGE", QuantizationMode::kDynamicRange, "int8 weights; activations are quantized while running.")
      .value("INT8", QuantizationMode::kInt8, "int8 weights and activations.")
      .value("INT16X8", QuantizationMode::kInt16x8, "int8 weights, int16 activations.")
      .value("WEIGHT_ONLY_INT8", QuantizationMode::kWeightOnlyInt8, "int8 weights that are widened before use.")
      .value("WEIGHT_ONLY_INT4", QuantizationMode::kWeightOnlyInt4, "The same with 4 bits.");

  nb::class_<RecipeRule>(m, "RecipeRule", "What one line of a recipe asks for.")
      .def(nb::init<>())
      .def_rw("op", &RecipeRule::op, "Name of an op; empty or '*': any.")
      .def_rw("name", &RecipeRule::name, "Pattern, searched in the names of a node's outputs; empty: any.")
      .def_rw("node", &RecipeRule::node, "Number of a node in subgraph 0; -1: any.")
      .def_rw("mode", &RecipeRule::mode);
  m.def("parse_quantization_mode", &parse_quantization_mode, nb::arg("name"), nb::arg("what") = "mode",
        "The mode called so; '-' and '_' are the same.");
  m.def("parse_calibration_method", &parse_calibration_method, nb::arg("name"), nb::arg("what") = "method",
        "The method called so; '-' and '_' are the same.");
  nb::enum_<AgreementMetric>(m, "AgreementMetric", "How a quantized model is compared with its float model.")
      .value("COSINE", AgreementMetric::kCosine, "Cosine of the angle between their outputs.")
      .value("SAME_TOP", AgreementMetric::kSameTop, "Share of rows whose largest value is at the same place.");
  m.def("parse_agreement_metric", &parse_agreement_metric, nb::arg("name"), nb::arg("what") = "metric",
        "The metric called so; '-' and '_' are the same.");
  m.def("parse_io_type", &parse_io_type, nb::arg("name"), nb::arg("what"),
        "The type called so, of a quantized model's inputs or outputs.");
  m.def("is_integer", &is_integer, nb::arg("mode"), "Whether a mode has integer activations, and so needs samples.");
  m.def("needs_histograms", &needs_histograms, nb::arg("method"), "Whether a method needs the histograms of samples.");
  m.def("parse_recipe", &parse_recipe, nb::arg("json"), InEngine(),
        "The rules of a recipe in JSON: Leadline's own or ai-edge-quantizer's.");

  nb::class_<QuantizeOptions>(m, "QuantizerOptions", "What a quantized model is to be.")
      .def(nb::init<>())
      .def_rw("mode", &QuantizeOptions::mode)
      .def_rw("input_type", &QuantizeOptions::input_type)
      .def_rw("output_type", &QuantizeOptions::output_type)
      .def_rw("allow_float", &QuantizeOptions::allow_float)
      .def_rw("per_channel", &QuantizeOptions::per_channel)
      .def_rw("per_channel_dense", &QuantizeOptions::per_channel_dense)
      .def_rw("calibration_rule", &QuantizeOptions::calibration_rule)
      .def(
          "set_calibration",
          [](QuantizeOptions& self, const nb::object& calibration) {
            self.calibration = {keep_alive(calibration), nb::cast<const Calibration*>(calibration)};
          },
          nb::arg("calibration"), nb::sig("def set_calibration(self, calibration: Calibration) -> None"),
          "Made before, instead of samples.")
      .def_rw("recipe", &QuantizeOptions::recipe, "Assign a list; changes to the list that is read have no effect.")
      .def_rw("bias_correction", &QuantizeOptions::bias_correction)
      .def_rw("equalize", &QuantizeOptions::equalize)
      .def_rw("min_weight_elements", &QuantizeOptions::min_weight_elements)
      .def_rw("budget", &QuantizeOptions::budget, nb::arg().none());
}

}  // namespace

void init_quantizer(nb::module_& m) {
  bind_options(m);

  nb::class_<ChannelMeans>(m, "ChannelMeans", "Means of each channel of what layers read: for bias correction.")
      .def(nb::init<const Model&, int, std::shared_ptr<Budget>>(), nb::arg("model"), nb::arg("num_threads") = 1,
           nb::arg("budget").none() = nb::none(), InEngine())
      .def_prop_ro("interpreter", &ChannelMeans::interpreter, nb::rv_policy::reference_internal,
                   "To resize inputs and set their values.")
      .def("add_sample", &ChannelMeans::add_sample, InEngine(), "Runs the interpreter and adds.")
      .def_prop_ro("samples", &ChannelMeans::samples);
  nb::class_<QuantizedNode>(m, "QuantizedNode", "What becomes of a node.")
      .def_ro("subgraph", &QuantizedNode::subgraph)
      .def_ro("node", &QuantizedNode::node, "Number in the float model.")
      .def_prop_ro("op", [](const QuantizedNode& self) { return to_str(self.op); })
      .def_prop_ro("name", [](const QuantizedNode& self) { return to_str(self.name); })
      .def_prop_ro("quantized", [](const QuantizedNode& self) { return self.mode != QuantizationMode::kFloat; })
      .def_ro("mode", &QuantizedNode::mode)
      .def_prop_ro(
          "reason", [](const QuantizedNode& self) { return to_str(self.reason); }, "Why it stays float.")
      .def("__repr__", [](const QuantizedNode& self) {
        return to_str("<leadline.QuantizedNode " + self.op + " #" + std::to_string(self.node) + " '" + self.name +
                      "': " + quantization_mode_name(self.mode) + (self.reason.empty() ? "" : ", " + self.reason) +
                      ">");
      });
  nb::class_<QuantizationPlan>(m, "QuantizationPlan", "What quantizing gives and takes.")
      .def_ro("result_bytes", &QuantizationPlan::result_bytes, "Of the quantized file.")
      .def_ro("peak_bytes", &QuantizationPlan::peak_bytes, "The file, the graphs and the largest tensor on its way.");
  nb::class_<Quantizer>(m, "Quantizer", "A model on its way to another number format. `leadline.quantize` uses it.")
      .def(nb::init<const Model&, QuantizeOptions>(), nb::arg("model"), nb::arg("options") = QuantizeOptions(),
           InEngine())
      .def_prop_ro("model", &Quantizer::model, "The float model that has to be calibrated: given, or equalized.")
      .def("nodes", &Quantizer::nodes, InEngine(), "Every node of the float model and what will become of it.")
      .def("plan", &Quantizer::plan, nb::arg("calibration").none() = nb::none(), InEngine())
      .def("quantize", &quantize, nb::arg("calibration").none() = nb::none(), nb::arg("means").none() = nb::none(),
           nb::arg("progress").none() = nb::none(),
           nb::sig("def quantize(self, calibration: Calibration | None = None, means: ChannelMeans | None = None, "
                   "progress: typing.Callable[[int, int], typing.Any] | None = None) -> bytes"),
           "The bytes of the quantized .tflite file.")
      .def("quantize_to_model", &quantize_to_model, nb::arg("calibration").none() = nb::none(),
           nb::arg("means").none() = nb::none(), nb::arg("progress").none() = nb::none(),
           nb::sig("def quantize_to_model(self, calibration: Calibration | None = None, "
                   "means: ChannelMeans | None = None, "
                   "progress: typing.Callable[[int, int], typing.Any] | None = None) -> Model"),
           "The same as a model to run, in memory that goes back to the system with it.");
}

}  // namespace leadline::python
