// SPDX-License-Identifier: Apache-2.0
// leadline/model.h.
#include "leadline/model.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine_call.h"
#include "live_objects.h"
#include "module.h"

namespace leadline::python {
namespace {

Remembered<Model> load(const std::filesystem::path& path, BudgetArgument budget) {
  return {Model::load(path.string(), to_budget(std::move(budget)))};
}

Remembered<Model> model_from_bytes(const nb::object& content, BudgetArgument budget) {
  const BufferView view(content);
  // Only `bytes` cannot change under the model; it is borrowed, everything else is copied.
  std::shared_ptr<const void> owner = nb::isinstance<nb::bytes>(content) ? keep_alive(content) : nullptr;
  const EngineCall call;
  return {Model::from_bytes(view.bytes(), std::move(owner), to_budget(std::move(budget)))};
}

nb::bytes model_file(const Model& model) {
  std::vector<std::byte> file;
  {
    const EngineCall call;
    file = model.to_tflite();
  }
  return nb::bytes(file.data(), file.size());
}

nb::str model_text(const Model& model) {
  return text_in_engine([&] { return model.to_text(); });
}

nb::typed<nb::dict, nb::str, nb::bytes> metadata(const Model& model) {
  nb::dict result;
  for (const auto& [name, bytes] : model.metadata()) {
    result[to_str(name)] = bytes;
  }
  return result;
}

nb::object conversion_record(const Model& model) {
  const std::optional<ConversionRecord> record = model.conversion_record();
  if (!record) return nb::none();
  nb::dict result;
  result["tensorflow_version"] = to_str(record->tensorflow_version);
  result["api_version"] = record->api_version;
  result["source"] = source_name(record->source);
  nb::list optimizations;
  for (const ModelOptimization done : record->optimizations) optimizations.append(optimization_name(done));
  result["optimizations"] = optimizations;
  result["allow_custom_ops"] = record->allow_custom_ops;
  result["select_tf_ops"] = record->select_tf_ops;
  result["only_select_tf_ops"] = record->only_select_tf_ops;
  return result;
}

nb::typed<nb::dict, nb::str, int> by_name(const std::vector<std::pair<std::string, int>>& tensors) {
  nb::dict result;
  for (const auto& [name, index] : tensors) {
    result[to_str(name)] = index;
  }
  return result;
}

void bind_infos(nb::module_& m) {
  nb::class_<TensorInfo>(m, "TensorInfo", "Description of a tensor.")
      .def_ro("index", &TensorInfo::index)
      .def_prop_ro("name", [](const TensorInfo& self) { return to_str(self.name); })
      .def_ro("dtype", &TensorInfo::dtype)
      .def_prop_ro("shape", [](const TensorInfo& info) { return to_tuple(info.shape); })
      .def_ro("shape_signature", &TensorInfo::shape_signature, "-1 where the size may change.")
      .def_ro("scales", &TensorInfo::scales, "Empty: not quantized.")
      .def_ro("zero_points", &TensorInfo::zero_points)
      .def_ro("quantized_dimension", &TensorInfo::quantized_dimension)
      .def_ro("constant", &TensorInfo::constant)
      .def_ro("variable", &TensorInfo::variable)
      .def_ro("sparse", &TensorInfo::sparse)
      .def_ro("bytes", &TensorInfo::bytes)
      .def("__repr__", [](const TensorInfo& info) {
        return to_str("<leadline.TensorInfo " + std::to_string(info.index) + " '" + info.name +
                      "': " + dtype_name(info.dtype) + info.shape.to_string() + ">");
      });

  nb::class_<SparsityInfo> sparsity(m, "SparsityInfo",
                                    "How the values of a sparse constant are spread over its shape.");
  nb::class_<SparsityInfo::Dimension>(sparsity, "Dimension", "One level of the traversal.")
      .def_ro("compressed", &SparsityInfo::Dimension::compressed)
      .def_ro("dense_size", &SparsityInfo::Dimension::dense_size, "Of a dense dimension.")
      .def_ro("segments", &SparsityInfo::Dimension::segments, "Of a compressed one: where each row of indices starts.")
      .def_ro("indices", &SparsityInfo::Dimension::indices);
  sparsity.def_ro("traversal_order", &SparsityInfo::traversal_order)
      .def_ro("block_map", &SparsityInfo::block_map)
      .def_ro("dimensions", &SparsityInfo::dimensions);

  nb::class_<NodeInfo>(m, "NodeInfo", "One node of a subgraph.")
      .def_ro("index", &NodeInfo::index)
      .def_prop_ro("op", [](const NodeInfo& self) { return to_str(self.op); })
      .def_ro("version", &NodeInfo::version)
      .def_ro("inputs", &NodeInfo::inputs, "Tensor numbers; -1: absent.")
      .def_ro("outputs", &NodeInfo::outputs)
      .def_prop_ro(
          "attributes", [](const NodeInfo& self) { return to_str(self.attributes); }, "'stride_w=2 stride_h=2 ...'")
      .def_ro(
          "macs", &NodeInfo::macs,
          "Products that a convolution or a product of matrices computes for the shapes in the file; 0 for others.");

  nb::class_<SubgraphInfo>(m, "SubgraphInfo", "One subgraph of a model.")
      .def_prop_ro("name", [](const SubgraphInfo& self) { return to_str(self.name); })
      .def_ro("inputs", &SubgraphInfo::inputs)
      .def_ro("outputs", &SubgraphInfo::outputs)
      .def_ro("tensors", &SubgraphInfo::tensors)
      .def_ro("nodes", &SubgraphInfo::nodes);

  nb::class_<SignatureInfo>(m, "SignatureInfo", "A named way to call a subgraph.")
      .def_prop_ro("key", [](const SignatureInfo& self) { return to_str(self.key); })
      .def_ro("subgraph", &SignatureInfo::subgraph)
      .def_prop_ro(
          "inputs", [](const SignatureInfo& info) { return by_name(info.inputs); }, "Tensor numbers by name.")
      .def_prop_ro("outputs", [](const SignatureInfo& info) { return by_name(info.outputs); });
}

}  // namespace

void init_model(nb::module_& m) {
  bind_infos(m);

  nb::class_<Model>(m, "Model", nb::is_weak_referenceable(),
                    "A loaded, verified model. Immutable; share it between interpreters and threads.")
      .def_static("load", &load, nb::arg("path"), nb::arg("budget").none() = nb::none(), InEngine(),
                  nb::sig("def load(path: str | os.PathLike, budget: Budget | int | str | None = None) -> Model"),
                  "Maps the file (no copy) and verifies it. The file must not change while the model lives.")
      .def_static(
          "from_bytes", &model_from_bytes, nb::arg("content"), nb::arg("budget").none() = nb::none(),
          nb::sig(
              "def from_bytes(content: typing_extensions.Buffer, budget: Budget | int | str | None = None) -> Model"),
          "The same from memory: `bytes` are borrowed, any other buffer is copied.")
      .def_prop_ro("description", [](const Model& model) { return to_str(model.description()); })
      .def_prop_ro("subgraph_count", &Model::subgraph_count)
      .def("subgraph", &Model::subgraph, nb::arg("index"), InEngine(), "Tensors and nodes of one subgraph.")
      .def("sparsity", &Model::sparsity, nb::arg("subgraph"), nb::arg("tensor"), "None for a dense tensor.")
      .def_prop_ro("signatures", &Model::signatures, InEngine())
      .def_prop_ro("metadata", &metadata, "Bytes of each metadata entry.")
      .def_prop_ro("conversion_record", &conversion_record, "How the file was made, where it says so; else None.")
      .def_prop_ro(
          "missing_ops",
          [](const Model& model) {
            nb::typed<nb::dict, nb::str, nb::str> result;
            for (const MissingOp& op : model.missing_ops()) {
              result[to_str(op.name)] = to_str(op.reason);
            }
            return result;
          },
          "Names of the ops that cannot run now, and why; registered custom ops can.")
      .def_prop_ro("file_bytes", &Model::file_bytes)
      .def_prop_ro("memory_bytes", &Model::memory_bytes,
                   "Bytes charged now for the file, the graph and packed weights.")
      .def("to_text", &model_text, "One line per node, to be read.")
      .def("to_tflite", &model_file, "The model as the bytes of a new .tflite file.")
      .def_prop_ro("budget", &Model::budget, "What this model is charged to.")
      .def("__str__", &model_text)
      .def("__repr__", [](const Model& model) {
        return "<leadline.Model: " + model.budget()->format(model.file_bytes()) + ", " +
               std::to_string(model.subgraph_count()) + " subgraphs>";
      });
}

}  // namespace leadline::python
