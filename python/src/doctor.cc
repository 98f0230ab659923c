// SPDX-License-Identifier: Apache-2.0
// leadline/guard/doctor.h.
#include "leadline/guard/doctor.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "module.h"

namespace leadline::python {
namespace {

guard::DoctorReport examine(const std::string& python, const std::vector<std::string>& site_packages,
                            const std::string& python_version, bool machine, bool deep) {
  return guard::doctor({python, site_packages, python_version, machine, deep});
}

}  // namespace

void init_doctor(nb::module_& m) {
  nb::class_<guard::Finding>(m, "Finding", "One thing that doctor found.")
      .def_ro("id", &guard::Finding::id, "What kind of finding it is: 'numpy-abi'.")
      .def_prop_ro(
          "severity", [](const guard::Finding& self) { return guard::severity_name(self.severity); },
          "'note', 'warning' or 'problem'.")
      .def_prop_ro("what", [](const guard::Finding& self) { return to_str(self.what); })
      .def_prop_ro("why", [](const guard::Finding& self) { return to_str(self.why); })
      .def_prop_ro(
          "fix", [](const guard::Finding& self) { return to_str(self.fix); },
          "The command that fixes it, or what to do.")
      .def_ro("source", &guard::Finding::source, "The page that says so; may be empty.")
      .def("__repr__", [](const guard::Finding& self) {
        return to_str(std::string("<leadline.Finding ") + guard::severity_name(self.severity) + " " + self.id + ">");
      });
  nb::class_<guard::InstalledPackage>(m, "InstalledPackage", "A package that the checks are about.")
      .def_ro("name", &guard::InstalledPackage::name)
      .def_prop_ro("version", [](const guard::InstalledPackage& self) { return to_str(self.version); })
      .def_prop_ro("location", [](const guard::InstalledPackage& self) { return to_str(self.location); })
      .def_prop_ro("installer", [](const guard::InstalledPackage& self) { return to_str(self.installer); });
  nb::class_<guard::DoctorReport>(m, "DoctorReport", "What doctor saw and found.")
      .def_prop_ro("python", [](const guard::DoctorReport& self) { return to_str(self.python); })
      .def_prop_ro("python_version", [](const guard::DoctorReport& self) { return to_str(self.python_version); })
      .def_prop_ro("site_packages", [](const guard::DoctorReport& self) { return to_list(self.site_packages); })
      .def_ro("package_count", &guard::DoctorReport::package_count)
      .def_ro("packages", &guard::DoctorReport::packages)
      .def_ro("findings", &guard::DoctorReport::findings, "Worst first.")
      .def_prop_ro("notes", [](const guard::DoctorReport& self) { return to_list(self.notes); })
      .def_ro("table_date", &guard::DoctorReport::table_date, "Date of the table of compatible versions.")
      .def("to_text", [](const guard::DoctorReport& self) { return to_str(self.to_text()); });
  m.def("doctor", &examine, nb::arg("python") = "", nb::arg("site_packages") = std::vector<std::string>(),
        nb::arg("python_version") = "", nb::arg("machine") = true, nb::arg("deep") = false, WithoutGil(),
        nb::sig("def doctor(python: str = '', site_packages: Sequence[str] = [], python_version: str = '', machine: "
                "bool = True, deep: bool = False) -> DoctorReport"),
        "Looks at a Python environment and this machine for what is known to kill kernels.");
}

}  // namespace leadline::python
