// SPDX-License-Identifier: Apache-2.0
// leadline/budget.h.
#include "leadline/budget.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "module.h"

namespace leadline::python {
namespace {

BytesByName used_by_category(const Budget& budget) {
  nb::dict result;
  for (int i = 0; i < kMemoryCategoryCount; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    result[memory_category_name(category)] = budget.used(category);
  }
  return result;
}

std::string describe_budget(const Budget& budget) {
  return "<leadline.Budget: " + budget.format(budget.used()) + " used of " + budget.format(budget.limit()) + ">";
}

void bind_budget(nb::module_& m) {
  nb::class_<Budget>(m, "Budget",
                     "A limit in bytes and the count of what is charged to it. Share one between models and "
                     "interpreters to hold them to a common limit.")
      .def(nb::new_([](std::variant<int64_t, std::string> limit) {
             return std::visit([](auto& bytes) { return to_budget(std::move(bytes)); }, limit);
           }),
           nb::arg("limit"), "A budget of `limit` bytes: an int, or a text such as '200MB', '1.5GiB', '50%'.")
      .def_static("machine_default", &Budget::machine_default, WithoutGil(),
                  "A budget of 90 % of what the machine and its limits (cgroup, RLIMIT_AS, RLIMIT_DATA, MemAvailable) "
                  "leave now, or what the environment variable LEADLINE_MEMORY says.")
      .def("child", &Budget::child, "A budget with counts of its own and no limit of its own, charged to this one too.")
      .def(
          "charge", [](Budget& self, int64_t bytes) { self.charge(bytes, MemoryCategory::kInputsOutputs); },
          nb::arg("bytes"), "Charges memory that Python takes for tensors, or raises BudgetError and charges nothing.")
      .def(
          "release", [](Budget& self, int64_t bytes) { self.release(bytes, MemoryCategory::kInputsOutputs); },
          nb::arg("bytes"), "Returns what charge() took.")
      .def_prop_ro("limit", &Budget::limit, "The limit in force, in bytes.")
      .def_prop_ro("available", &Budget::available, "Bytes that can still be charged.")
      .def_prop_ro("used", nb::overload_cast<>(&Budget::used, nb::const_), "Bytes charged now.")
      .def_prop_ro("peak", &Budget::peak, "The most bytes that were charged at one time.")
      .def_prop_ro("categories", &used_by_category, "Bytes charged now, by category.")
      .def("format", &Budget::format, nb::arg("bytes"),
           "Bytes as text, in the units that the limit was given in: MB for '200MB', else MiB.")
      .def("reset_peak", &Budget::reset_peak, "Starts a new measurement: peak = used.")
      .def("__repr__", &describe_budget);
}

}  // namespace

std::shared_ptr<Budget> to_budget(BudgetArgument budget) {
  if (!budget.has_value()) return nullptr;
  if (auto* made = std::get_if<std::shared_ptr<Budget>>(&*budget)) return std::move(*made);
  if (const auto* text = std::get_if<std::string>(&*budget)) return Budget::with_limit(*text);
  return Budget::with_limit(std::get<int64_t>(*budget));
}

void init_budget(nb::module_& m) {
  bind_budget(m);

  m.def("parse_bytes", &parse_bytes, nb::arg("text"),
        "Reads '4096', '200MB', '1.5GiB' or '50%' (of the memory available now).");
  m.def(
      "format_bytes", [](int64_t bytes, std::string_view like) { return format_bytes(bytes, byte_units(like)); },
      nb::arg("bytes"), nb::arg("like") = "",
      "Bytes as text: '1.2 GiB', '512 KiB', '17 B'; in the units of `like`: '1.3 GB' for like='2GB'.");

  nb::class_<MemoryLimits>(m, "MemoryLimits",
                           "What the machine and its limits leave to this process, each in bytes; -1: no such limit.")
      .def_ro("machine_available", &MemoryLimits::machine_available, "MemAvailable of /proc/meminfo.")
      .def_ro("cgroup_available", &MemoryLimits::cgroup_available, "Limit minus use of the control group.")
      .def_ro("rlimit_as", &MemoryLimits::rlimit_as, "RLIMIT_AS minus the address space in use.")
      .def_ro("rlimit_data", &MemoryLimits::rlimit_data, "RLIMIT_DATA minus the data in use.")
      .def_prop_ro("available", &MemoryLimits::available, "The smallest of those that exist.");
  m.def("read_memory_limits", &read_memory_limits, WithoutGil(), "The limits of this moment.");
}

}  // namespace leadline::python
