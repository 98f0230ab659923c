// SPDX-License-Identifier: Apache-2.0
// leadline/model_builder.h.
#include "leadline/model_builder.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "module.h"

namespace leadline::python {
namespace {

TensorInfo make_info(std::string name, DType dtype, const std::vector<int64_t>& shape, std::vector<int32_t> signature,
                     std::vector<float> scales, std::vector<int64_t> zero_points, int quantized_dimension,
                     bool variable) {
  TensorInfo info;
  info.name = std::move(name);
  info.dtype = dtype;
  info.shape = Shape(shape);
  info.shape_signature = std::move(signature);
  info.scales = std::move(scales);
  info.zero_points = std::move(zero_points);
  info.quantized_dimension = quantized_dimension;
  info.variable = variable;
  return info;
}

void add_node(ModelBuilder& self, int subgraph, std::string op, std::vector<int> inputs, std::vector<int> outputs,
              std::map<std::string, AttributeValue> attributes, const nb::bytes& custom_options,
              std::vector<int> intermediates, int version, bool custom) {
  const auto* begin = static_cast<const std::byte*>(custom_options.data());
  self.add_node(subgraph, {std::move(op),
                           std::move(inputs),
                           std::move(outputs),
                           std::move(intermediates),
                           std::move(attributes),
                           {begin, begin + custom_options.size()},
                           version,
                           custom});
}

std::vector<int> add_results(ModelBuilder& self, int subgraph, std::string op, std::vector<int> inputs,
                             std::map<std::string, AttributeValue> attributes, const nb::bytes& custom_options,
                             std::vector<int> intermediates, int version, bool custom, int count, std::string name,
                             std::vector<DType> dtypes, const std::vector<std::vector<int64_t>>& shapes) {
  const auto* begin = static_cast<const std::byte*>(custom_options.data());
  NodeResults results{count, std::move(name), std::move(dtypes), {}};
  for (const auto& sizes : shapes) results.shapes.push_back(Shape(sizes));
  return self.add_node(subgraph,
                       {std::move(op),
                        std::move(inputs),
                        {},
                        std::move(intermediates),
                        std::move(attributes),
                        {begin, begin + custom_options.size()},
                        version,
                        custom},
                       results);
}

int add_constant(ModelBuilder& self, int subgraph, const TensorInfo& info, const nb::object& data,
                 const std::optional<SparsityInfo>& sparsity) {
  return self.add_constant(subgraph, info, BufferView(data).bytes(), sparsity);
}

nb::bytes built_file(const ModelBuilder& self) {
  const std::vector<std::byte> file = self.to_tflite();
  return nb::bytes(file.data(), file.size());
}

void add_signature(ModelBuilder& self, std::string key, int subgraph, const std::map<std::string, int>& inputs,
                   const std::map<std::string, int>& outputs) {
  self.add_signature({std::move(key), subgraph, {inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()}});
}

}  // namespace

void init_model_builder(nb::module_& m) {
  nb::class_<ModelBuilder>(m, "ModelBuilder", "A model being built; the public class is leadline.ModelBuilder.")
      .def(nb::init<>())
      .def("add_subgraph", &ModelBuilder::add_subgraph, nb::arg("name"), "The number of a new, empty subgraph.")
      .def("add_tensor", &ModelBuilder::add_tensor, nb::arg("subgraph"), nb::arg("info"), "The number of a new tensor.")
      .def("add_constant", &add_constant, nb::arg("subgraph"), nb::arg("info"), nb::arg("data"),
           nb::arg("sparsity").none() = nb::none(), "A tensor with contents, which are copied.")
      .def(
          "set_blockwise",
          [](ModelBuilder& self, int subgraph, int tensor, int scales, int zero_points, int block_size) {
            self.set_blockwise(subgraph, tensor, {scales, zero_points, block_size});
          },
          nb::arg("subgraph"), nb::arg("tensor"), nb::arg("scales"), nb::arg("zero_points"), nb::arg("block_size"),
          "Blocks of values share a scale: the tensors with scales and zero points (-1: none).")
      .def("add_node", &add_node, nb::arg("subgraph"), nb::arg("op"), nb::arg("inputs"), nb::arg("outputs"),
           nb::arg("attributes"), nb::arg("custom_options"), nb::arg("intermediates"), nb::arg("version"),
           nb::arg("custom") = false, "Version 0: the newest.")
      .def("add_results", &add_results, nb::arg("subgraph"), nb::arg("op"), nb::arg("inputs"), nb::arg("attributes"),
           nb::arg("custom_options"), nb::arg("intermediates"), nb::arg("version"), nb::arg("custom"), nb::arg("count"),
           nb::arg("name"), nb::arg("dtypes"), nb::arg("shapes"),
           "The same of a node whose outputs are made, and returned; without shapes those are inferred.")
      .def("set_inputs", &ModelBuilder::set_inputs, nb::arg("subgraph"), nb::arg("tensors"), "Replaces the inputs.")
      .def("set_outputs", &ModelBuilder::set_outputs, nb::arg("subgraph"), nb::arg("tensors"), "Replaces the outputs.")
      .def("add_signature", &add_signature, nb::arg("key"), nb::arg("subgraph"), nb::arg("inputs"), nb::arg("outputs"),
           "Names a way to call a subgraph.")
      .def("to_tflite", &built_file, "The verified model as the bytes of a .tflite file.");
  m.def("make_tensor_info", &make_info, nb::arg("name"), nb::arg("dtype"), nb::arg("shape"), nb::arg("signature"),
        nb::arg("scales"), nb::arg("zero_points"), nb::arg("quantized_dimension"), nb::arg("variable"),
        "The description of a tensor, for ModelBuilder.");
  m.def(
      "make_sparsity_info",
      [](std::vector<int32_t> traversal_order, std::vector<int32_t> block_map,
         const std::vector<std::pair<int32_t, std::optional<std::pair<std::vector<int32_t>, std::vector<int32_t>>>>>&
             dimensions) {
        SparsityInfo info{std::move(traversal_order), std::move(block_map), {}};
        for (const auto& [dense_size, compressed] : dimensions) {
          info.dimensions.push_back(compressed ? SparsityInfo::Dimension{true, 0, compressed->first, compressed->second}
                                               : SparsityInfo::Dimension{false, dense_size, {}, {}});
        }
        return info;
      },
      nb::arg("traversal_order"), nb::arg("block_map"), nb::arg("dimensions"),
      "Dimensions are (dense size, None) or (0, (segments, indices)).");
}

}  // namespace leadline::python
