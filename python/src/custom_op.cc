// SPDX-License-Identifier: Apache-2.0
// leadline/custom_op.h: ops written in Python. The object that infers and runs a node is made by
// leadline/custom_ops.py; here calls take the GIL, and tensors become buffers that Python may keep without harm.
#include "leadline/custom_op.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "leadline/keras_layer.h"
#include "module.h"
#include "user_reference.h"

namespace leadline::python {
namespace {

/// An operand as infer sees it.
struct Operand {
  TensorInfo info;
  nb::object memory;  // None: the data is not known yet
};

nb::object to_object(const OptionValue& option) {
  return std::visit(
      [](const auto& value) -> nb::object {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nb::none();
        } else if constexpr (std::is_same_v<T, std::string>) {
          PyObject* text = PyUnicode_DecodeUTF8(value.data(), static_cast<Py_ssize_t>(value.size()), nullptr);
          if (text != nullptr) {
            return nb::steal(text);
          }
          PyErr_Clear();
          return nb::bytes(value.data(), value.size());
        } else if constexpr (std::is_same_v<T, OptionList>) {
          nb::list list;
          for (const OptionValue& item : value) {
            list.append(to_object(item));
          }
          return list;
        } else if constexpr (std::is_same_v<T, OptionMap>) {
          nb::dict dict;
          for (const auto& [name, item] : value) {
            dict[to_str(name)] = to_object(item);
          }
          return dict;
        } else {
          return nb::cast(value);
        }
      },
      option.value);
}

nb::object decode(const nb::bytes& content) {
  const auto decoded = decode_options(std::as_bytes(std::span(content.c_str(), content.size())));
  return decoded ? to_object(*decoded) : nb::none();
}

/// The buffers of one call. They are valid after it only as far as someone kept one: then the memory is held for it.
class Lent {
 public:
  explicit Lent(const OpCall& call) : call_(call) {}

  nb::object lend(std::span<const std::byte> bytes, DType dtype, const Shape& shape, bool read_only) {
    TensorMemory memory;
    memory.data = const_cast<std::byte*>(bytes.data());
    memory.bytes = static_cast<int64_t>(bytes.size());
    memory.dtype = dtype;
    memory.shape = shape;
    objects_.push_back(nb::cast(SharedTensor{std::move(memory), read_only}));
    return objects_.back();
  }

  /// After the call, when all references of ours but objects_ are gone. Throws when a view was kept, unless the call
  /// `failed`: then it is the traceback that keeps it.
  void take_back(bool failed) {
    if (kept() && !failed) {
      nb::module_::import_("gc").attr("collect")();
    }
    if (!kept()) {
      return;
    }
    const std::shared_ptr<const void> owner = call_.hold_memory(!failed);
    for (const nb::object& object : objects_) {
      nb::inst_ptr<SharedTensor>(object)->memory.owner = owner;
    }
    if (!failed) {
      throw Error(ErrorCode::kInvalidArgument,
                  "the op kept an array (or a view of one) that is valid during the call only: keep a copy, "
                  "array.copy(). The interpreter has left that memory to it and its inputs have to be set again");
    }
  }

 private:
  bool kept() const {
    for (const nb::object& object : objects_) {
      if (Py_REFCNT(object.ptr()) > 1) {
        return true;
      }
    }
    return false;
  }

  const OpCall& call_;
  std::vector<nb::object> objects_;
};

class PythonOp final : public CustomOp {
 public:
  explicit PythonOp(nb::object object) : object_(std::move(object)) {}

  void infer(InferCall& call) override {
    const nb::gil_scoped_acquire gil;
    lending(call, [&](Lent& lent) {
      nb::list inputs;
      nb::list outputs;
      for (int i = 0; i < call.input_count(); ++i) {
        inputs.append(call.has_input(i) ? operand(call.input(i), lent) : nb::none());
      }
      for (int i = 0; i < call.output_count(); ++i) {
        outputs.append(operand(call.output(i), lent));
      }
      take(object_.get().attr("_infer")(inputs, outputs), call);
    });
  }

  void run(RunCall& call) override {
    const nb::gil_scoped_acquire gil;
    lending(call, [&](Lent& lent) {
      nb::list inputs;
      nb::list outputs;
      for (int i = 0; i < call.input_count(); ++i) {
        if (!call.has_input(i)) {
          inputs.append(nb::none());
          continue;
        }
        const OpTensor& input = call.input(i);
        inputs.append(lent.lend(input.data, input.dtype, input.shape, true));
      }
      for (int i = 0; i < call.output_count(); ++i) {
        const OpOutput& output = call.output(i);
        outputs.append(lent.lend(output.data, output.dtype, output.shape, false));
      }
      const auto bytes = [&](std::span<std::byte> memory) {
        return lent.lend(memory, DType::kUInt8, Shape{static_cast<int64_t>(memory.size())}, false);
      };
      object_.get().attr("_run")(inputs, outputs, bytes(call.scratch()), bytes(call.kept()));
    });
  }

  void reset() override {
    const nb::gil_scoped_acquire gil;
    object_.get().attr("reset")();
  }

 private:
  template <typename Body>
  static void lending(const OpCall& call, const Body& body) {
    Lent lent(call);
    try {
      body(lent);
    } catch (...) {
      lent.take_back(true);
      throw;
    }
    lent.take_back(false);
  }

  static nb::object operand(const OpTensor& tensor, Lent& lent) {
    Operand result;
    result.info.name = tensor.name;
    result.info.dtype = tensor.dtype;
    result.info.shape = tensor.shape;
    result.info.scales.assign(tensor.scales.begin(), tensor.scales.end());
    result.info.zero_points.assign(tensor.zero_points.begin(), tensor.zero_points.end());
    result.info.quantized_dimension = tensor.quantized_dimension;
    result.memory = tensor.known ? lent.lend(tensor.data, tensor.dtype, tensor.shape, true) : nb::none();
    return nb::cast(std::move(result));
  }

  /// `answer`: None to wait for data, or (shapes, bytes of string outputs, scratch bytes, kept bytes).
  static void take(const nb::object& answer, InferCall& call) {
    if (answer.is_none()) {
      call.defer();
      return;
    }
    const auto parts = nb::cast<nb::tuple>(answer);
    const auto shapes = nb::cast<std::vector<std::vector<int64_t>>>(parts[0]);
    const auto bytes = nb::cast<std::vector<int64_t>>(parts[1]);
    for (int i = 0; i < call.output_count(); ++i) {
      call.set_output_shape(i, Shape(std::span<const int64_t>(shapes.at(static_cast<size_t>(i)))));
      if (dtype_bits(call.output(i).dtype) == 0) {
        call.set_output_bytes(i, bytes.at(static_cast<size_t>(i)));
      }
    }
    call.request_scratch(nb::cast<int64_t>(parts[2]));
    call.request_persistent(nb::cast<int64_t>(parts[3]));
  }

  UserReference object_;
};

void register_python_op(const std::string& name, nb::object make) {
  auto factory = std::make_shared<const UserReference>(std::move(make));
  register_op(name, [factory = std::move(factory)](const OpNode& node) -> std::unique_ptr<CustomOp> {
    const nb::gil_scoped_acquire gil;
    const auto options = node.options.bytes();
    return std::make_unique<PythonOp>(factory->get()(to_str(node.op), node.index, to_str(node.name), node.version,
                                                     nb::bytes(options.data(), options.size())));
  });
}

}  // namespace

void init_custom_op(nb::module_& m) {
  nb::class_<Operand>(m, "Operand", "An input or output of a custom op before it runs.")
      .def_ro("info", &Operand::info)
      .def_ro("memory", &Operand::memory, nb::sig("def memory(self) -> TensorMemory | None"),
              "None: the data is not known yet.");
  m.def("register_op", &register_python_op, nb::arg("name"), nb::arg("make"),
        nb::sig("def register_op(name: str, make: typing.Callable[[str, int, str, int, bytes], typing.Any]) -> None"),
        "Registers an op; make(op, index, name, version, options) returns the object for a node.");
  m.def(
      "unregister_op", [](const std::string& name) { return unregister_op(name); }, nb::arg("name"),
      "Takes an op away again; False when there was none of this name. Interpreters that were made keep it.");
  m.def("registered_ops", &registered_ops, "Names of the registered ops, sorted.");
  m.def("decode_options", &decode, nb::arg("content"), nb::sig("def decode_options(content: bytes) -> typing.Any"),
        "A FlexBuffers document as dicts, lists, numbers and texts; None when the bytes are none.");
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
    for (const std::string& name : registered_ops()) {
      unregister_op(name);
    }
    for (const std::string& name : registered_keras_layers()) {
      unregister_keras_layer(name);
    }
    UserReference::drop_all();
  }));
}

}  // namespace leadline::python
