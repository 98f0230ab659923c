// SPDX-License-Identifier: Apache-2.0
// leadline/guard/process.h.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <sys/mman.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leadline/budget.h"
#include "leadline/error.h"
#include "leadline/guard/process.h"
#include "module.h"

namespace leadline::python {
namespace {

nb::typed<nb::tuple, int, nb::bytes, bool, bool> to_event(const guard::GuardEvent& event) {
  return nb::make_tuple(event.stream, nb::bytes(event.bytes.data(), event.bytes.size()), event.readable, event.ended);
}

/// Shared memory that came as a descriptor, as a buffer; unmapped with its last user.
class SharedMapping {
 public:
  SharedMapping(int fd, size_t bytes) : bytes_(bytes) {
    start_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (start_ != MAP_FAILED) return;
    throw Error(ErrorCode::kIo, "cannot map " + format_bytes(static_cast<int64_t>(bytes)) + " of shared memory");
  }
  ~SharedMapping() { munmap(start_, bytes_); }
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  static int get_buffer(PyObject* object, Py_buffer* view, int flags) {
    const auto* self = nb::inst_ptr<SharedMapping>(object);
    return PyBuffer_FillInfo(view, object, self->start_, static_cast<Py_ssize_t>(self->bytes_), 0, flags);
  }

 private:
  void* start_ = nullptr;
  size_t bytes_ = 0;
};

std::array<PyType_Slot, 2> mapping_slots = {
    {{Py_bf_getbuffer, reinterpret_cast<void*>(&SharedMapping::get_buffer)}, {0, nullptr}}};

void bind_report(nb::module_& m) {
  nb::class_<guard::GuardReport>(m, "GuardReport", "How a guarded process ended, or what is known while it runs.")
      .def_ro("ended", &guard::GuardReport::ended, "Whether the process is gone.")
      .def_prop_ro(
          "cause", [](const guard::GuardReport& self) { return guard::guard_cause_name(self.cause); },
          "'exit', 'signal', 'memory', 'processes', 'timeout' or 'interrupt'.")
      .def_ro("exit_code", &guard::GuardReport::exit_code, "Of an exit; -1 otherwise.")
      .def_ro("signal", &guard::GuardReport::signal, "The signal that ended the process; 0: none.")
      .def_ro("peak_bytes", &guard::GuardReport::peak_bytes, "The most memory that the process and its children had.")
      .def_ro("seconds", &guard::GuardReport::seconds, "Seconds that it ran.")
      .def_prop_ro(
          "memory_limit", [](const guard::GuardReport& self) { return self.limits.memory_bytes; },
          "The limit in bytes; 0: none.")
      .def_ro("cgroup", &guard::GuardReport::cgroup, "Whether a control group keeps the limits; else samples do.")
      .def_prop_ro(
          "last_lines", [](const guard::GuardReport& self) { return to_list(self.last_lines); },
          "Of standard output and standard error, in the order of their arrival.")
      .def_ro("summary", &guard::GuardReport::summary, "What happened, in a sentence.")
      .def_ro("advice", &guard::GuardReport::advice, "What to do about it.");
}

}  // namespace

void init_guard(nb::module_& m) {
  bind_report(m);
  nb::class_<guard::GuardedProcess>(m, "GuardedProcess",
                                    "A child process under limits. Use it through `leadline.guard`.")
      .def(
          "__init__",
          [](guard::GuardedProcess* self, std::vector<std::string> command, const std::vector<nb::bytes>& environment,
             int64_t memory, int64_t processes, std::vector<int> inherited, int stack_signal, std::string_view like) {
            guard::GuardOptions options;
            options.command = std::move(command);
            for (const nb::bytes& entry : environment) options.environment.emplace_back(entry.c_str(), entry.size());
            options.limits.memory_bytes = memory;
            options.limits.units = byte_units(like);
            options.limits.processes = processes;
            options.inherited = std::move(inherited);
            options.stack_signal = stack_signal;
            const nb::gil_scoped_release released;
            new (self) guard::GuardedProcess(options);
          },
          nb::arg("command"), nb::arg("environment"), nb::arg("memory") = 0, nb::arg("processes") = 1024,
          nb::arg("inherited") = std::vector<int>(), nb::arg("stack_signal") = 0, nb::arg("like") = "",
          "Starts a program with an environment of b'NAME=value'; 0: unlimited. It keeps the descriptors `inherited`. "
          "Its report has sizes in the units of `like`, such as '2GB'.")
      .def_prop_ro("pid", &guard::GuardedProcess::pid, "Number of the process.")
      .def(
          "wait",
          [](guard::GuardedProcess& self, double seconds, int watched) {
            guard::GuardEvent event;
            {
              const nb::gil_scoped_release released;
              event = self.wait(seconds, watched);
            }
            return to_event(event);
          },
          nb::arg("seconds"), nb::arg("watched") = -1,
          "Waits for output, for the end, or for the descriptor `watched` to be readable. Returns (stream, bytes, "
          "readable, ended); stream is 1 or 2, or 0 without output.")
      .def("start_call", &guard::GuardedProcess::start_call, nb::arg("timeout_seconds"), WithoutGil(),
           "Starts the clock, the peak and the last lines of a call; 0: no limit of time.")
      .def("end_call", &guard::GuardedProcess::end_call, WithoutGil(),
           "Stops the clock. False when the guard has decided to kill the process by now.")
      .def("interrupt", &guard::GuardedProcess::interrupt, WithoutGil(), "SIGINT to the process and its group.")
      .def(
          "kill", [](guard::GuardedProcess& self) { self.kill(); }, WithoutGil(),
          "Kills the process and all it started, and waits until they are gone.")
      .def("resident_bytes", &guard::GuardedProcess::resident_bytes, WithoutGil(),
           "Memory of the process and its children.")
      .def("processes", &guard::GuardedProcess::processes, WithoutGil(),
           "How many processes there are, with all it started.")
      .def("report", &guard::GuardedProcess::report, WithoutGil(), "How it ended, or what is known so far.");
  nb::class_<SharedMapping>(m, "SharedMapping", nb::type_slots(mapping_slots.data()),
                            "Memory behind a descriptor, as a writable buffer that needs the descriptor no more.")
      .def(nb::init<int, size_t>(), nb::arg("fd"), nb::arg("bytes"), "Maps the first `bytes` bytes.");
  m.def("die_with_parent", &guard::die_with_parent, nb::arg("parent"),
        "When the process `parent` is gone, kills every process that this one started, and this one.");
}

}  // namespace leadline::python
