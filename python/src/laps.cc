// SPDX-License-Identifier: Apache-2.0
// leadline/guard/laps.h.
#include "leadline/guard/laps.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "module.h"

namespace leadline::python {

void init_laps(nb::module_& m) {
  nb::class_<guard::Growth>(m, "Growth", "How one quantity went from round to round.")
      .def_prop_ro(
          "verdict", [](const guard::Growth& self) { return guard::growth_verdict_name(self.verdict); },
          "'grows', 'flat' or 'too few rounds'.")
      .def_ro("per_round", &guard::Growth::per_round, "The median slope after the warm-up.")
      .def_ro("low", &guard::Growth::low, "Lower end of its 95 % interval.")
      .def_ro("high", &guard::Growth::high, "Upper end of its 95 % interval.");
  nb::class_<guard::LapSample>(m, "LapSample", "What there was after a round; -1: unknown.")
      .def_ro("round", &guard::LapSample::round, "From 1 on.")
      .def_ro("memory", &guard::LapSample::memory, "Anonymous, shared and swapped pages of this process, in bytes.")
      .def_ro("allocated", &guard::LapSample::allocated, "Bytes in use in the C library's heap.")
      .def_ro("accounted", &guard::LapSample::accounted, "Leadline's own bytes.")
      .def_ro("objects", &guard::LapSample::objects, "Blocks of Python's allocator.")
      .def_ro("descriptors", &guard::LapSample::descriptors, "Open files, sockets and pipes.")
      .def_ro("processes", &guard::LapSample::processes, "Child processes, zombies too.");
  nb::class_<guard::LapReport>(m, "LapReport", "Growth over the rounds. The public class is leadline.LapReport.")
      .def_prop_ro(
          "verdict", [](const guard::LapReport& self) { return guard::growth_verdict_name(self.verdict); },
          "'grows', 'flat' or 'too few rounds'.")
      .def_ro("bytes_per_round", &guard::LapReport::bytes_per_round, "Growth of a round.")
      .def_ro("low", &guard::LapReport::low, "Lower end of its 95 % interval.")
      .def_ro("high", &guard::LapReport::high, "Upper end of its 95 % interval.")
      .def_ro("rounds", &guard::LapReport::rounds, "Rounds so far.")
      .def_ro("memory", &guard::LapReport::memory, "Of the process.")
      .def_ro("allocated", &guard::LapReport::allocated, "Of what is in use in the heap.")
      .def_ro("accounted", &guard::LapReport::accounted, "Of Leadline's own bytes.")
      .def_ro("objects", &guard::LapReport::objects, "Of the number of Python's blocks.")
      .def_ro("descriptors", &guard::LapReport::descriptors, "Of the number of open descriptors.")
      .def_ro("processes", &guard::LapReport::processes, "Of the number of child processes.")
      .def_ro("text", &guard::LapReport::text, "As text.");
  nb::class_<guard::Laps>(m, "Laps", "Samples of this process after each round. The public class is leadline.Laps.")
      .def(nb::init<>())
      .def("samples_next", &guard::Laps::samples_next, "Whether the next lap() takes a sample.")
      .def("lap", &guard::Laps::lap, nb::arg("objects") = -1, "Ends a round.")
      .def("sample_last", &guard::Laps::sample_last, nb::arg("objects") = -1, "After the last round.")
      .def_prop_ro("rounds", &guard::Laps::rounds, "Rounds so far.")
      .def_prop_ro("samples", &guard::Laps::samples, nb::rv_policy::copy, "Samples that were kept.")
      .def("report", &guard::Laps::report, WithoutGil(), "What the samples say.");
}

}  // namespace leadline::python
