// SPDX-License-Identifier: Apache-2.0
// leadline/job_plan.h.
#include "leadline/job_plan.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "module.h"

namespace leadline::python {

void init_job_plan(nb::module_& m) {
  nb::class_<JobPhase>(m, "JobPhase", "A stretch of a job and the most memory that is in use meanwhile.")
      .def_ro("name", &JobPhase::name)
      .def_prop_ro(
          "categories", [](const JobPhase& self) { return to_dict(self.categories); },
          "Bytes by category at the peak; their sum is peak_bytes.")
      .def_ro("peak_bytes", &JobPhase::peak_bytes)
      .def_ro("detail", &JobPhase::detail)
      .def("__repr__", [](const JobPhase& self) {
        return to_str("<leadline.JobPhase " + self.name + ": " + format_bytes(self.peak_bytes, self.units) + ", " +
                      self.detail + ">");
      });
  nb::class_<JobPlan>(m, "JobPlan", "What a job takes, known before it takes anything.")
      .def_ro("job", &JobPlan::job)
      .def_ro("phases", &JobPlan::phases, "In the order they run.")
      .def_ro("peak_bytes", &JobPlan::peak_bytes, "Of the largest phase: what the budget is asked for.")
      .def_ro("result_bytes", &JobPlan::result_bytes, "At most, of the file that comes out; 0: it is not a file.")
      .def_ro("complete", &JobPlan::complete, "False while some shapes depend on data of a run.")
      .def("to_text", [](const JobPlan& self) { return to_str(self.to_text()); })
      .def("to_json", [](const JobPlan& self) { return to_str(self.to_json()); })
      .def("__str__", [](const JobPlan& self) { return to_str(self.to_text()); })
      .def("__repr__", [](const JobPlan& self) {
        return to_str("<leadline.JobPlan of " + self.job + ": " + format_bytes(self.peak_bytes, self.units) + ">");
      });
}

}  // namespace leadline::python
