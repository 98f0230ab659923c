// SPDX-License-Identifier: Apache-2.0
// leadline/observer.h: the per-node profile.
#include "leadline/observer.h"

#include <nanobind/stl/string.h>

#include "module.h"

namespace leadline::python {

void init_observer(nb::module_& m) {
  nb::class_<NodeProfile>(m, "NodeProfile", "Time spent in one node, summed over runs.")
      .def_ro("subgraph", &NodeProfile::subgraph, "Subgraph of the node.")
      .def_ro("node", &NodeProfile::node, "Number of the node in the file.")
      .def_prop_ro(
          "op", [](const NodeProfile& self) { return to_str(self.op); }, "Name of the op.")
      .def_prop_ro(
          "name", [](const NodeProfile& self) { return to_str(self.name); }, "Name of the node's first output.")
      .def_ro("runs", &NodeProfile::runs, "How often it ran.")
      .def_ro("total_ms", &NodeProfile::total_ms, "Milliseconds in all runs.")
      .def_ro("fastest_ms", &NodeProfile::fastest_ms, "Milliseconds of its fastest run.");
}

}  // namespace leadline::python
