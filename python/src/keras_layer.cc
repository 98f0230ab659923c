// SPDX-License-Identifier: Apache-2.0
// leadline/keras_layer.h: Keras layers described in Python. The public side is leadline/keras_layers.py.
#include "leadline/keras_layer.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine_call.h"
#include "module.h"
#include "user_reference.h"

namespace leadline::python {
namespace {

/// A call of a layer as Python holds it: empty as soon as the function has returned.
struct LayerCall {
  KerasLayer* layer = nullptr;

  KerasLayer& get() const {
    if (layer == nullptr) {
      throw Error(ErrorCode::kInvalidArgument, "the builder of a Keras layer works only while its function is called");
    }
    return *layer;
  }
};

/// Values of a Python object, called with the weight's memory as a writable buffer.
KerasWeight::Reader reader_of(nb::object read) {
  auto reference = std::make_shared<const UserReference>(std::move(read));
  return [reference = std::move(reference)](std::span<std::byte> out) {
    const nb::gil_scoped_acquire gil;
    try {
      const nb::object memory = nb::steal(PyMemoryView_FromMemory(reinterpret_cast<char*>(out.data()),
                                                                  static_cast<Py_ssize_t>(out.size()), PyBUF_WRITE));
      reference->get()(memory);
      memory.attr("release")();  // nothing may write there later
    } catch (const nb::python_error& error) {
      throw_as_error(error);
    }
  };
}

nb::bytearray read(const KerasWeight& self) {
  nb::bytearray result(nullptr, 0);
  if (PyByteArray_Resize(result.ptr(), static_cast<Py_ssize_t>(self.bytes())) != 0) throw nb::python_error();
  auto* data = reinterpret_cast<std::byte*>(PyByteArray_AsString(result.ptr()));
  const EngineCall call;
  self.read({data, static_cast<size_t>(self.bytes())});
  return result;
}

int add_layer_constant(const LayerCall& self, const std::string& name, DType dtype, const std::vector<int64_t>& shape,
                       const nb::object& data) {
  const BufferView view(data);
  return self.get().add_constant(name, dtype, Shape(shape), view.bytes());
}

std::vector<int> add_layer_node(const LayerCall& self, std::string op, std::vector<int> inputs, std::string name,
                                int outputs, std::vector<DType> dtypes, std::vector<std::vector<int64_t>> dims,
                                std::map<std::string, AttributeValue> attributes, const nb::bytes& custom_options,
                                int version) {
  const auto* begin = static_cast<const std::byte*>(custom_options.data());
  KerasNode node{std::move(op),
                 std::move(inputs),
                 std::move(name),
                 outputs,
                 std::move(dtypes),
                 std::move(dims),
                 std::move(attributes),
                 {begin, begin + custom_options.size()},
                 version};
  return self.get().add_node(node);
}

nb::tuple layer_tensor(const LayerCall& self, int index) {
  const KerasTensor found = self.get().tensor(index);
  nb::list dims;
  for (const int64_t size : found.dims) {
    dims.append(size < 0 ? nb::object(nb::none()) : nb::object(nb::int_(size)));
  }
  return nb::make_tuple(to_str(found.name), found.dtype, nb::tuple(dims));
}

void register_layer(const std::string& name, nb::object function) {
  auto reference = std::make_shared<const UserReference>(std::move(function));
  register_keras_layer(name, [reference = std::move(reference)](KerasLayer& layer) {
    const nb::gil_scoped_acquire gil;
    nb::object handle = nb::cast(LayerCall{&layer});
    struct Detach {
      nb::handle object;
      ~Detach() { nb::inst_ptr<LayerCall>(object)->layer = nullptr; }
    } const detach{handle};
    try {
      return nb::cast<std::vector<int>>(reference->get()(handle));
    } catch (const nb::python_error& error) {
      throw_as_error(error);
    }
  });
}

}  // namespace

void init_keras_layer(nb::module_& m) {
  nb::class_<KerasWeight>(m, "KerasWeight", "A variable of a Keras layer, read when it is needed.")
      .def(
          "__init__",
          [](KerasWeight* self, std::string name, DType dtype, const std::vector<int64_t>& shape,
             nb::object read_into) {
            new (self) KerasWeight(std::move(name), dtype, Shape(shape), reader_of(std::move(read_into)));
          },
          nb::arg("name"), nb::arg("dtype"), nb::arg("shape"), nb::arg("read_into"),
          nb::sig("def __init__(self, name: str, dtype: DType, shape: collections.abc.Sequence[int], "
                  "read_into: typing.Callable[[memoryview], None]) -> None"))
      .def_prop_ro("name", [](const KerasWeight& self) { return to_str(self.name()); })
      .def_prop_ro("dtype", &KerasWeight::dtype)
      .def_prop_ro(
          "shape", [](const KerasWeight& self) { return to_tuple(self.shape()); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("nbytes", &KerasWeight::bytes)
      .def("read", &read, "All values, in C order.")
      .def("transposed", &KerasWeight::transposed, nb::arg("permutation"))
      .def(
          "reshaped",
          [](const KerasWeight& self, const std::vector<int64_t>& shape) { return self.reshaped(Shape(shape)); },
          nb::arg("shape"))
      .def("converted", &KerasWeight::converted, nb::arg("dtype"));
  nb::class_<LayerCall>(m, "KerasLayerCall",
                        "One call of a Keras layer; the public class is leadline.KerasLayerBuilder.")
      .def_prop_ro("name", [](const LayerCall& self) { return to_str(self.get().name()); })
      .def_prop_ro("class_name", [](const LayerCall& self) { return to_str(self.get().class_name()); })
      .def_prop_ro("path", [](const LayerCall& self) { return to_str(self.get().path()); })
      .def_prop_ro(
          "config", [](const LayerCall& self) { return to_str(self.get().config()); }, "JSON.")
      .def_prop_ro("inputs", [](const LayerCall& self) { return self.get().inputs(); })
      .def_prop_ro(
          "mask", [](const LayerCall& self) { return self.get().mask(); }, "-1: none.")
      .def(
          "weights", [](const LayerCall& self, const std::string& part) { return self.get().weights(part); },
          nb::arg("part") = "")
      .def("tensor", &layer_tensor, nb::arg("index"),
           nb::sig("def tensor(self, index: int) -> tuple[str, DType, tuple[int | None, ...]]"),
           "Its name, type and sizes.")
      .def(
          "add_weight",
          [](const LayerCall& self, const std::string& name, const KerasWeight& weight) {
            return self.get().add_constant(name, weight);
          },
          nb::arg("name"), nb::arg("weight"), "A constant whose values are read when the model is written.")
      .def("add_constant", &add_layer_constant, nb::arg("name"), nb::arg("dtype"), nb::arg("shape"), nb::arg("data"))
      .def("add_node", &add_layer_node, nb::arg("op"), nb::arg("inputs"), nb::arg("name"), nb::arg("outputs"),
           nb::arg("dtypes"), nb::arg("dims"), nb::arg("attributes"), nb::arg("custom_options"), nb::arg("version"))
      .def(
          "add_layer",
          [](const LayerCall& self, const std::string& part, const std::string& description,
             const std::vector<int>& inputs) { return self.get().add_layer(part, description, inputs); },
          nb::arg("part"), nb::arg("description"), nb::arg("inputs"));
  m.def("register_keras_layer", &register_layer, nb::arg("name"), nb::arg("function"),
        nb::sig("def register_keras_layer(name: str, function: typing.Callable[[KerasLayerCall], list[int]]) -> None"),
        "Registers what a Keras layer computes; the function returns the indices of its outputs.");
  m.def(
      "unregister_keras_layer", [](const std::string& name) { return unregister_keras_layer(name); }, nb::arg("name"),
      "Takes a layer away again; False when there was none of this name.");
  m.def("registered_keras_layers", &registered_keras_layers, "Names of the registered layers, sorted.");
}

}  // namespace leadline::python
