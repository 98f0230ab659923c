// SPDX-License-Identifier: Apache-2.0
// leadline/op_list.h.
#include "leadline/op_list.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "module.h"

namespace leadline::python {

void init_op_list(nb::module_& m) {
  nb::class_<OpInfo>(m, "OpInfo", "One op of the .tflite format, or a custom op of Leadline's own.")
      .def_ro("name", &OpInfo::name)
      .def_ro("code", &OpInfo::code, "Number of the builtin op; -1: a custom op.")
      .def_ro("max_version", &OpInfo::max_version)
      .def_ro("runs", &OpInfo::runs)
      .def_ro("types", &OpInfo::types, "Types and quantized forms: 'f32 i8 u8 i16x8 hybrid'.")
      .def_ro("fast", &OpInfo::fast, "Those of them with kernels tuned for the CPU.")
      .def_ro("reason", &OpInfo::reason, "Why it does not run.")
      .def("__repr__", [](const OpInfo& info) { return "<leadline.OpInfo " + info.name + ">"; });
  m.def("known_ops", &known_ops,
        "Builtin ops by their number, then custom ops by name; what users registered is not among them.");
}

}  // namespace leadline::python
