// SPDX-License-Identifier: Apache-2.0
// leadline/converter.h.
#include "leadline/converter.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "module.h"

namespace leadline::python {
namespace {

Converter from_keras(const std::filesystem::path& path, std::shared_ptr<Budget> budget) {
  return Converter::from_keras(path.string(), std::move(budget));
}

Converter from_saved_model(const std::filesystem::path& path, const std::vector<std::string>& signature_keys,
                           const std::vector<std::string>& tags, std::shared_ptr<Budget> budget) {
  return Converter::from_saved_model(path.string(), signature_keys, tags, std::move(budget));
}

/// Written straight into the memory of the result, which nobody else can see yet.
nb::bytes convert(const Converter& self) {
  const int64_t bytes = self.plan().result_bytes;
  PyObject* result = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(bytes));
  if (result == nullptr) throw nb::python_error();
  nb::bytes owner = nb::steal<nb::bytes>(result);
  auto* data = reinterpret_cast<std::byte*>(PyBytes_AS_STRING(result));
  const nb::gil_scoped_release released;
  self.convert_into({data, static_cast<size_t>(bytes)});
  return owner;
}

}  // namespace

void init_converter(nb::module_& m) {
  nb::class_<ConversionPlan>(m, "ConversionPlan", "What a conversion gives and takes, known before weights are read.")
      .def_ro("result_bytes", &ConversionPlan::result_bytes, "Of the .tflite file, exactly.")
      .def_ro("peak_bytes", &ConversionPlan::peak_bytes, "The file and the largest tensor on its way into it.")
      .def_ro("nodes", &ConversionPlan::nodes)
      .def_ro("tensors", &ConversionPlan::tensors);
  nb::class_<Converter>(m, "Converter", "A model that was read and simplified, ready to be written as .tflite.")
      .def_static("from_keras", &from_keras, nb::arg("path"), nb::arg("budget").none() = nb::none(), WithoutGil(),
                  "A Keras model file: .keras or a whole-model .h5. Weights stay in the file.")
      .def_static("from_saved_model", &from_saved_model, nb::arg("path"),
                  nb::arg("signature_keys") = std::vector<std::string>(), nb::arg("tags") = std::vector<std::string>(),
                  nb::arg("budget").none() = nb::none(), WithoutGil(),
                  "A SavedModel directory. No signature keys: all of them; no tags: \"serve\".")
      .def("plan", &Converter::plan, "What the conversion gives and takes.")
      .def("convert", &convert, "The bytes of the .tflite file. BudgetError when it does not fit.")
      .def(
          "convert_to",
          [](const Converter& self, const std::filesystem::path& path) { self.convert_to(path.string()); },
          nb::arg("path"), WithoutGil(), "Writes the file, which appears whole or not at all.")
      .def("to_text", [](const Converter& self) { return to_str(self.to_text()); }, "One line per node, for people.");
}

}  // namespace leadline::python
