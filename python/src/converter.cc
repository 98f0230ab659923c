// SPDX-License-Identifier: Apache-2.0
// leadline/converter.h and leadline/convert.h.
#include "leadline/converter.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine_call.h"
#include "leadline/convert.h"
#include "live_objects.h"
#include "module.h"

namespace leadline::python {
namespace {

ConversionOptions conversion_options(std::vector<std::string> disabled_passes, bool allow_custom_ops = false,
                                     bool select_tf_ops = false) {
  ConversionOptions options;
  options.allow_custom_ops = allow_custom_ops;
  options.select_tf_ops = select_tf_ops;
  options.disabled_passes = std::move(disabled_passes);
  return options;
}

Converter from_keras(const std::filesystem::path& path, std::shared_ptr<Budget> budget,
                     std::vector<std::string> disabled_passes, std::string tensorflow_version) {
  ConversionOptions options = conversion_options(std::move(disabled_passes));
  options.tensorflow_version = std::move(tensorflow_version);
  return Converter::from_keras(path.string(), std::move(budget), options);
}

using Names = std::vector<std::pair<std::string, std::string>>;

Converter from_saved_model(const std::filesystem::path& path, const std::vector<std::string>& signature_keys,
                           const std::vector<std::string>& tags, std::shared_ptr<Budget> budget, bool allow_custom_ops,
                           bool select_tf_ops, std::vector<std::string> disabled_passes, ModelSource source,
                           Names plain_inputs, Names plain_outputs) {
  ConversionOptions options = conversion_options(std::move(disabled_passes), allow_custom_ops, select_tf_ops);
  options.source = source;
  options.plain_inputs = std::move(plain_inputs);
  options.plain_outputs = std::move(plain_outputs);
  return Converter::from_saved_model(path.string(), signature_keys, tags, std::move(budget), options);
}

Converter with_record(const Converter& self, bool allow_custom_ops, bool select_tf_ops) {
  std::optional<ConversionRecord> record = self.record();
  if (!record) record.emplace();
  record->allow_custom_ops = allow_custom_ops;
  record->select_tf_ops = select_tf_ops;
  return self.with_record(record);
}

Converter from_keras_config(const std::string& config, const nb::callable& weights, std::shared_ptr<Budget> budget,
                            std::vector<std::string> disabled_passes, std::string tensorflow_version) {
  ConversionOptions options = conversion_options(std::move(disabled_passes));
  options.tensorflow_version = std::move(tensorflow_version);
  const EngineCall call;
  return Converter::from_keras_config(
      config,
      [&](const std::string& path) {
        const nb::gil_scoped_acquire gil;
        try {
          return nb::cast<std::vector<KerasWeight>>(weights(to_str(path)));
        } catch (const nb::python_error& error) {
          throw_as_error(error);
        }
      },
      std::move(budget), options);
}

void convert_to(const Converter& self, const std::filesystem::path& path, const nb::object& callback) {
  const Progress progress = progress_of(callback);
  const EngineCall call;
  self.convert_to(path.string(), progress);
}

/// Written straight into the memory of the result, which nothing else can see yet.
nb::bytes convert(const Converter& self, const nb::object& callback) {
  const int64_t bytes = self.plan().result_bytes;
  PyObject* result = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(bytes));
  if (result == nullptr) throw nb::python_error();
  nb::bytes owner = nb::steal<nb::bytes>(result);
  auto* data = reinterpret_cast<std::byte*>(PyBytes_AsString(result));
  const Progress progress = progress_of(callback);
  const EngineCall call;
  self.convert_into({data, static_cast<size_t>(bytes)}, progress);
  return owner;
}

Remembered<Model> convert_to_model(const Converter& self, const nb::object& callback, std::shared_ptr<Budget> budget) {
  const Progress progress = progress_of(callback);
  const EngineCall call;
  return {self.convert_to_model(progress, std::move(budget))};
}

void init_job(ConvertJob* self, const std::filesystem::path& path, std::vector<std::string> signature_keys,
              bool allow_custom_ops, bool select_tf_ops, std::shared_ptr<Budget> budget) {
  ConvertOptions options;
  options.signature_keys = std::move(signature_keys);
  options.conversion.allow_custom_ops = allow_custom_ops;
  options.conversion.select_tf_ops = select_tf_ops;
  options.budget = std::move(budget);
  const EngineCall call;
  new (self) ConvertJob(path.string(), std::move(options));
}

void run_to_file(ConvertJob& self, const std::filesystem::path& path, const nb::object& callback) {
  const JobObserver observer = observer_of(callback);
  const EngineCall call;
  self.run_to_file(path.string(), observer);
}

}  // namespace

void init_converter(nb::module_& m) {
  nb::enum_<ModelSource>(m, "ModelSource", "What a model was converted from.")
      .value("UNKNOWN", ModelSource::kUnknown)
      .value("SAVED_MODEL", ModelSource::kSavedModel)
      .value("KERAS_MODEL", ModelSource::kKerasModel)
      .value("CONCRETE_FUNCTIONS", ModelSource::kConcreteFunctions)
      .value("GRAPH_DEF", ModelSource::kGraphDef)
      .value("SESSION", ModelSource::kSession)
      .value("JAX", ModelSource::kJax)
      .value("PYTORCH", ModelSource::kPyTorch);
  nb::class_<ConversionPlan>(m, "ConversionPlan", "What a conversion makes and needs, known before weights are read.")
      .def_ro("result_bytes", &ConversionPlan::result_bytes, "Of the .tflite file, exactly.")
      .def_ro("peak_bytes", &ConversionPlan::peak_bytes,
              "Of memory while convert() works: the graph, the file, a tensor on its way into it.")
      .def_ro("file_peak_bytes", &ConversionPlan::file_peak_bytes, "The same of convert_to(), which does not hold it.")
      .def_ro("nodes", &ConversionPlan::nodes)
      .def_ro("tensors", &ConversionPlan::tensors);
  nb::class_<Converter>(m, "Converter", "A model that was read and simplified, ready to be written as .tflite.")
      .def_static("from_keras", &from_keras, nb::arg("path"), nb::arg("budget").none() = nb::none(),
                  nb::arg("disabled_passes") = std::vector<std::string>(), nb::arg("tensorflow_version") = "",
                  InEngine(), "A Keras model file: .keras or a whole-model .h5. Weights stay in the file.")
      .def_static("from_keras_config", &from_keras_config, nb::arg("config"), nb::arg("weights"),
                  nb::arg("budget").none() = nb::none(), nb::arg("disabled_passes") = std::vector<std::string>(),
                  nb::arg("tensorflow_version") = "",
                  nb::sig("def from_keras_config(config: str, "
                          "weights: typing.Callable[[str], collections.abc.Sequence[KerasWeight]], "
                          "budget: Budget | None = None, "
                          "disabled_passes: collections.abc.Sequence[str] = [], "
                          "tensorflow_version: str = '') -> Converter"),
                  "A Keras model in memory: model.to_json(), and a function from paths of layers to their variables.")
      .def_static("from_saved_model", &from_saved_model, nb::arg("path"),
                  nb::arg("signature_keys") = std::vector<std::string>(), nb::arg("tags") = std::vector<std::string>(),
                  nb::arg("budget").none() = nb::none(), nb::arg("allow_custom_ops") = false,
                  nb::arg("select_tf_ops") = false, nb::arg("disabled_passes") = std::vector<std::string>(),
                  nb::arg("source") = ModelSource::kUnknown, nb::arg("plain_inputs") = Names(),
                  nb::arg("plain_outputs") = Names(), InEngine(),
                  "A SavedModel directory. No signature keys: all of them; no tags: \"serve\". With allow_custom_ops, "
                  "ops without a conversion become custom ops; with select_tf_ops they stay TensorFlow's own. "
                  "plain_inputs and plain_outputs: pairs of the name in the signature and the tensor's, in the order "
                  "of the model.")
      .def("with_record", &with_record, nb::arg("allow_custom_ops"), nb::arg("select_tf_ops"),
           "The same conversion with these settings in the file's record of its making.")
      .def(
          "without_record", [](const Converter& self) { return self.with_record(std::nullopt); },
          "The same conversion of a file that does not say how it was made.")
      .def("with_unfolded_constants", &Converter::with_unfolded_constants, InEngine(),
           "The same conversion with FILL nodes in place of large constants of one value.")
      .def("with_select_tf_ops", &Converter::with_select_tf_ops,
           "The same conversion with TensorFlow's own ops in place of builtin ones that only Leadline computes.")
      .def("without_signatures", &Converter::without_signatures,
           "The same conversion of a model without signatures, as TensorFlow makes one of a frozen graph.")
      .def("with_finite_constants", &Converter::with_finite_constants,
           "The same conversion with the largest finite numbers in place of infinite constants.")
      .def("plan", &Converter::plan, "What the conversion makes and needs.")
      .def("convert", &convert, nb::arg("progress").none() = nb::none(),
           nb::sig("def convert(self, progress: typing.Callable[[int, int], typing.Any] | None = None) -> bytes"),
           "The bytes of the .tflite file. BudgetError when it does not fit. progress(done, total) may return False.")
      .def("convert_to_model", &convert_to_model, nb::arg("progress").none() = nb::none(),
           nb::arg("budget").none() = nb::none(),
           nb::sig("def convert_to_model(self, progress: typing.Callable[[int, int], typing.Any] | None = None, "
                   "budget: Budget | None = None) -> Model"),
           "The same as a model to run, in memory that is returned to the system with it.")
      .def("convert_to", &convert_to, nb::arg("path"), nb::arg("progress").none() = nb::none(),
           nb::sig("def convert_to(self, path: str | os.PathLike, "
                   "progress: typing.Callable[[int, int], typing.Any] | None = None) -> None"),
           "Writes the file, which appears whole or not at all; weights stream into it.")
      .def(
          "to_text", [](const Converter& self) { return text_in_engine([&] { return self.to_text(); }); },
          "One line per node, to be read.");
  nb::class_<ConvertJob>(m, "ConvertJob", "leadline.convert() before it starts.")
      .def("__init__", &init_job, nb::arg("path"), nb::arg("signature_keys") = std::vector<std::string>(),
           nb::arg("allow_custom_ops") = false, nb::arg("select_tf_ops") = false, nb::arg("budget").none() = nb::none())
      .def(
          "plan", [](const ConvertJob& self) { return self.plan(); }, InEngine(), "What it takes, phase by phase.")
      .def("run_to_file", &run_to_file, nb::arg("path"), nb::arg("observer").none() = nb::none(),
           nb::sig("def run_to_file(self, path: str | os.PathLike, observer: typing.Callable[[str, int, int | None], "
                   "typing.Any] | None = None) -> None"),
           "Writes the file, which appears whole or not at all.");
}

}  // namespace leadline::python
