// SPDX-License-Identifier: Apache-2.0
// leadline/plan.h.
#include "leadline/plan.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "engine_call.h"
#include "module.h"

namespace leadline::python {
namespace {

nb::str plan_text(const Plan& plan) {
  return text_in_engine([&] { return plan.to_text(); });
}

nb::str to_json(const Plan& plan) {
  return text_in_engine([&] { return plan.to_json(); });
}

nb::str to_html(const Plan& plan, const std::string& title) {
  return text_in_engine([&] { return plan.to_html(title); });
}

void bind_parts(nb::module_& m) {
  nb::class_<PlannedTensor>(m, "PlannedTensor", "One tensor of the subgraph, as planned.")
      .def_ro("index", &PlannedTensor::index, "Number in the file.")
      .def_prop_ro("name", [](const PlannedTensor& self) { return to_str(self.name); })
      .def_prop_ro("dtype", [](const PlannedTensor& tensor) { return dtype_name(tensor.dtype); })
      .def_prop_ro("shape", [](const PlannedTensor& tensor) { return to_tuple(tensor.shape); })
      .def_ro("bytes", &PlannedTensor::bytes)
      .def_prop_ro(
          "storage", [](const PlannedTensor& tensor) { return storage_name(tensor.storage); },
          "Where its bytes live: in the file, the arena, ...")
      .def_ro("offset", &PlannedTensor::offset, "Offset in the arena; -1: lives elsewhere.")
      .def_ro("segment", &PlannedTensor::segment, "Which arena.")
      .def_ro("first_step", &PlannedTensor::first_step, "Step that writes it; -1: alive from the start.")
      .def_ro("last_step", &PlannedTensor::last_step, "Last step that reads it.")
      .def_ro("shares_with", &PlannedTensor::shares_with, "Tensor whose memory it uses; -1: memory of its own.")
      .def_ro("bound", &PlannedTensor::bound, "In memory of the caller, which is not counted.");

  nb::class_<PlannedStep>(m, "PlannedStep", "One node, in execution order.")
      .def_ro("node", &PlannedStep::node, "Number in the file.")
      .def_prop_ro("op", [](const PlannedStep& self) { return to_str(self.op); })
      .def_prop_ro(
          "name", [](const PlannedStep& self) { return to_str(self.name); }, "Name of its first output.")
      .def_ro("inputs", &PlannedStep::inputs, "Tensor numbers; -1: absent.")
      .def_ro("outputs", &PlannedStep::outputs, "Tensor numbers.")
      .def_ro("merged", &PlannedStep::merged, "Numbers of the nodes whose work it does besides its own.")
      .def_ro("segment", &PlannedStep::segment)
      .def_ro("scratch_bytes", &PlannedStep::scratch_bytes)
      .def_ro("packed_bytes", &PlannedStep::packed_bytes)
      .def_ro("persistent_bytes", &PlannedStep::persistent_bytes, "Memory of the op whose contents stay between runs.")
      .def_ro("live_bytes", &PlannedStep::live_bytes, "Arena bytes that must exist during this step.");

  nb::class_<PlannedPhase>(m, "PlannedPhase", "A stretch of the job and the memory it holds at its highest.")
      .def_prop_ro(
          "name", [](const PlannedPhase& self) { return to_str(self.name); }, "'load', 'prepare' or 'run'.")
      .def_prop_ro("categories", [](const PlannedPhase& phase) { return to_dict(phase.categories); })
      .def_ro("bytes", &PlannedPhase::bytes);

  nb::class_<PlannedSegment>(m, "PlannedSegment", "Nodes whose shapes become known together, with their own arena.")
      .def_ro("first_step", &PlannedSegment::first_step)
      .def_ro("last_step", &PlannedSegment::last_step, "Inclusive; -1: empty.")
      .def_ro("arena_bytes", &PlannedSegment::arena_bytes, "Scratch included.")
      .def_ro("lower_bound_bytes", &PlannedSegment::lower_bound_bytes, "No layout can be smaller.");
}

}  // namespace

void init_plan(nb::module_& m) {
  bind_parts(m);

  nb::class_<Plan>(m, "Plan", "What a run will do and how many bytes it takes, known before it starts.")
      .def_ro("peak_bytes", &Plan::peak_bytes, "What the budget is asked for, the mapped file included.")
      .def_ro("bound_bytes", &Plan::bound_bytes, "Memory of the caller (bind_tensor): not part of peak_bytes.")
      .def_ro("arena_bytes", &Plan::arena_bytes, "Bytes of the arena.")
      .def_ro("lower_bound_bytes", &Plan::lower_bound_bytes, "No layout of the arena can be smaller.")
      .def_ro("recompute_bytes", &Plan::recompute_bytes,
              "About what get_tensor() of an intermediate tensor takes beside peak_bytes while it lasts: a second run.")
      .def_ro("threads", &Plan::threads)
      .def_ro("complete", &Plan::complete, "False while some shapes depend on data of a run.")
      .def_prop_ro(
          "missing_ops", [](const Plan& plan) { return to_list(plan.missing_ops); },
          "Names of ops that cannot run; their outputs are planned with the file's shapes.")
      .def_prop_ro(
          "categories", [](const Plan& plan) { return to_dict(plan.categories); },
          "Bytes by category at the peak; their sum is peak_bytes.")
      .def_ro("phases", &Plan::phases)
      .def_ro("steps", &Plan::steps)
      .def_ro("tensors", &Plan::tensors)
      .def_ro("segments", &Plan::segments)
      .def("to_text", &plan_text, "A table to be read.")
      .def("to_json", &to_json, "The whole plan as JSON text.")
      .def(
          "to_dict", [](const Plan& plan) { return nb::module_::import_("json").attr("loads")(to_json(plan)); },
          nb::sig("def to_dict(self) -> dict[str, typing.Any]"), "The whole plan as dicts and lists.")
      .def("to_html", &to_html, nb::arg("title") = "Memory plan",
           "One self-contained page: a summary, and the tensors as bars over time.")
      .def("__str__", &plan_text)
      .def("__repr__",
           [](const Plan& plan) {
             return "<leadline.Plan: peak " + format_bytes(plan.peak_bytes, plan.units) + ", arena " +
                    format_bytes(plan.arena_bytes, plan.units) + " (lower bound " +
                    format_bytes(plan.lower_bound_bytes, plan.units) + "), " + std::to_string(plan.steps.size()) +
                    " steps" + (plan.complete ? ">" : ", incomplete>");
           })
      .def(
          "_repr_html_",
          [](const Plan& plan) { return text_in_engine([&] { return plan.to_notebook_html("Memory plan"); }); },
          "For notebooks.");
}

}  // namespace leadline::python
