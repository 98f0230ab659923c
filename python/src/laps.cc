// SPDX-License-Identifier: Apache-2.0
// leadline/laps.h.
#include "leadline/laps.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "module.h"

namespace leadline::python {

void init_laps(nb::module_& m) {
  nb::class_<Growth>(m, "Growth", "How one quantity went from round to round.")
      .def_prop_ro(
          "verdict", [](const Growth& self) { return growth_verdict_name(self.verdict); },
          "'grows', 'flat' or 'too few rounds'.")
      .def_ro("per_round", &Growth::per_round, "The median slope after the warm-up.")
      .def_ro("low", &Growth::low, "Lower end of its 95 % interval.")
      .def_ro("high", &Growth::high, "Upper end of its 95 % interval.");
  nb::class_<LapSample>(m, "LapSample", "What there was after a round; -1: unknown.")
      .def_ro("round", &LapSample::round, "From 1 on.")
      .def_ro("memory", &LapSample::memory, "Anonymous, shared and swapped pages of this process, in bytes.")
      .def_ro("allocated", &LapSample::allocated, "Bytes in use in the C library's heap.")
      .def_ro("accounted", &LapSample::accounted, "Leadline's own bytes.")
      .def_ro("objects", &LapSample::objects, "Blocks of Python's allocator.");
  nb::class_<LapReport>(m, "LapReport", "Growth over the rounds. leadline.LapReport is the face for people.")
      .def_prop_ro(
          "verdict", [](const LapReport& self) { return growth_verdict_name(self.verdict); },
          "'grows', 'flat' or 'too few rounds'.")
      .def_ro("bytes_per_round", &LapReport::bytes_per_round, "Growth of a round.")
      .def_ro("low", &LapReport::low, "Lower end of its 95 % interval.")
      .def_ro("high", &LapReport::high, "Upper end of its 95 % interval.")
      .def_ro("rounds", &LapReport::rounds, "Rounds so far.")
      .def_ro("memory", &LapReport::memory, "Of the process.")
      .def_ro("allocated", &LapReport::allocated, "Of what is in use in the heap.")
      .def_ro("accounted", &LapReport::accounted, "Of Leadline's own bytes.")
      .def_ro("objects", &LapReport::objects, "Of the number of Python's blocks.")
      .def_ro("text", &LapReport::text, "For people.");
  nb::class_<Laps>(m, "Laps", "Samples of this process after each round. leadline.Laps is the face for people.")
      .def(nb::init<>())
      .def("samples_next", &Laps::samples_next, "Whether the next lap() takes a sample.")
      .def("lap", &Laps::lap, nb::arg("objects") = -1, "Ends a round.")
      .def_prop_ro("rounds", &Laps::rounds, "Rounds so far.")
      .def_prop_ro("samples", &Laps::samples, nb::rv_policy::copy, "Samples that were kept.")
      .def("report", &Laps::report, WithoutGil(), "What the samples say.");
}

}  // namespace leadline::python
