// SPDX-License-Identifier: Apache-2.0
// leadline/quantizer.h and leadline/recipe.h.
#include "leadline/quantizer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "engine_call.h"
#include "leadline/recipe.h"
#include "module.h"

namespace leadline::python {

void init_quantizer(nb::module_& m) {
  nb::enum_<QuantizationMode>(m, "QuantizationMode", "How the numbers of a node are stored and computed with.")
      .value("FLOAT", QuantizationMode::kFloat, "Stays as it is.")
      .value("FLOAT16", QuantizationMode::kFloat16, "Weights are stored as float16.")
      .value("DYNAMIC_RANGE", QuantizationMode::kDynamicRange, "int8 weights; activations are quantized while running.")
      .value("INT8", QuantizationMode::kInt8, "int8 weights and activations.")
      .value("INT16X8", QuantizationMode::kInt16x8, "int8 weights, int16 activations.")
      .value("WEIGHT_ONLY_INT8", QuantizationMode::kWeightOnlyInt8, "int8 weights that are widened before use.")
      .value("WEIGHT_ONLY_INT4", QuantizationMode::kWeightOnlyInt4, "The same with 4 bits.")
      .value("DYNAMIC_INT4", QuantizationMode::kDynamicInt4, "DYNAMIC_RANGE with weights of 4 bits.")
      .value("DYNAMIC_INT2", QuantizationMode::kDynamicInt2, "The same with 2 bits.");

  nb::enum_<WeightRounding>(m, "WeightRounding", "How weights become integers.")
      .value("NEAREST", WeightRounding::kNearest, "Scales hold the largest weight.")
      .value("MSE", WeightRounding::kMse, "Scales cut off the rarest weights where that loses less.")
      .value("COMQ", WeightRounding::kComq, "What changes the results of a layer least; needs samples.");
  nb::enum_<WeightRotation>(m, "WeightRotation", "How rows of weights are rotated.")
      .value("NONE", WeightRotation::kNone, "Not at all.")
      .value("HADAMARD", WeightRotation::kHadamard, "With the custom op aeq.hadamard_rotation.")
      .value("DECOMPOSED_HADAMARD", WeightRotation::kDecomposedHadamard, "With builtin ops.");
  m.def("parse_weight_rounding", &parse_weight_rounding, nb::arg("name"), nb::arg("what") = "rounding",
        "The rounding called so.");

  nb::class_<RecipeRule>(m, "RecipeRule", "What one line of a recipe asks for.")
      .def(nb::init<>())
      .def_rw("op", &RecipeRule::op, "Name of an op; empty or '*': any.")
      .def_rw("name", &RecipeRule::name, "Pattern, searched in the names of a node's outputs; empty: any.")
      .def_rw("node", &RecipeRule::node, "Number of a node in subgraph 0; -1: any.")
      .def_rw("mode", &RecipeRule::mode)
      .def_rw("optional", &RecipeRule::optional, "May match no node; otherwise that is an error.")
      .def_rw("block_size", &RecipeRule::block_size, "Weights that share a scale; 0: a channel.")
      .def_rw("symmetric", &RecipeRule::symmetric, "Weights have no zero points.")
      .def_rw("min_weight_elements", &RecipeRule::min_weight_elements, "As of QuantizeOptions; None: that.")
      .def_rw("rounding", &RecipeRule::rounding, "As of QuantizeOptions; None: that.")
      .def_rw("rotation", &RecipeRule::rotation, "Of the rows of dense layers' weights.");
  m.def("rule_for_tensor", &rule_for_tensor, nb::arg("name"), nb::arg("mode"),
        "A rule for the nodes that compute the tensor of this name, and no other.");
  m.def("parse_quantization_mode", &parse_quantization_mode, nb::arg("name"), nb::arg("what") = "mode",
        "The mode called so; '-' and '_' are the same.");
  m.def("parse_calibration_method", &parse_calibration_method, nb::arg("name"), nb::arg("what") = "method",
        "The method called so; '-' and '_' are the same.");
  m.def("parse_io_type", &parse_io_type, nb::arg("name"), nb::arg("what"),
        "The type called so, of a quantized model's inputs or outputs.");
  m.def("is_integer", &is_integer, nb::arg("mode"), "Whether a mode has integer activations, and so needs samples.");
  m.def("needs_histograms", &needs_histograms, nb::arg("method"), "Whether a method needs the histograms of samples.");

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
      .def_rw("ranges_only", &QuantizeOptions::ranges_only)
      .def_rw("keep_state", &QuantizeOptions::keep_state)
      .def_rw("sparsify", &QuantizeOptions::sparsify)
      .def_rw("quantized_name", &QuantizeOptions::quantized_name)
      .def_rw("equalize", &QuantizeOptions::equalize)
      .def_rw("min_weight_elements", &QuantizeOptions::min_weight_elements)
      .def_rw("rounding", &QuantizeOptions::rounding)
      .def_rw("num_threads", &QuantizeOptions::num_threads)
      .def_rw("budget", &QuantizeOptions::budget, nb::arg().none());
  m.def(
      "apply_recipe", [](const std::string& json, QuantizeOptions& options) { apply(parse_recipe(json), options); },
      nb::arg("json"), nb::arg("options"), InEngine(),
      "Adds the rules of a recipe in JSON, Leadline's own or ai-edge-quantizer's; its settings replace those of "
      "options.");
}

}  // namespace leadline::python
