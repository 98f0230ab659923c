// SPDX-License-Identifier: Apache-2.0
// leadline/guard/watch.h and leadline/guard/postmortem.h.
#include "leadline/guard/watch.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leadline/budget.h"
#include "leadline/guard/postmortem.h"
#include "module.h"

namespace leadline::python {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

Record to_dict(const guard::MemorySample& sample) {
  nb::dict result;
  result["seconds"] = sample.seconds;
  result["resident"] = sample.resident;
  result["data"] = sample.data;
  result["capacity"] = sample.capacity;
  result["available"] = sample.available;
  result["used"] = sample.used();
  result["swap_free"] = sample.swap_free;
  result["container"] = sample.container;
  result["accounted"] = sample.accounted;
  return result;
}

Record to_dict(const guard::CellReport& cell) {
  nb::dict result;
  result["number"] = cell.number;
  result["first_line"] = to_str(cell.first_line);
  result["start_seconds"] = cell.start_seconds;
  result["seconds"] = cell.seconds;
  result["before"] = cell.before;
  result["after"] = cell.after;
  result["peak"] = cell.peak;
  result["running"] = cell.running;
  return result;
}

Record to_dict(const guard::WatchAlarm& alarm) {
  nb::dict result;
  result["sample"] = to_dict(alarm.sample);
  result["limit"] = alarm.limit;
  result["own_limit"] = alarm.own_limit;
  result["growth"] = alarm.growth;
  result["since"] = alarm.since;
  result["bytes_per_second"] = alarm.bytes_per_second;
  result["cell"] = to_dict(alarm.cell);
  return result;
}

/// A Watch whose alarms are raised in Python's main thread, between two of its instructions. The thread of the watch
/// never waits for Python's lock: Python may be stuck in native code. It sends the main thread a signal, as Ctrl-C
/// does, which also ends waiting; a pending call would be noticed only by chance before Python 3.12.
class PythonWatch {
 public:
  PythonWatch(double fraction, int64_t resident_limit, bool refuse_large, bool cells_only, bool recorder, bool signals,
              std::string folder, int stack_signal, int alarm_signal, Facts facts) {
    guard::WatchOptions options;
    options.fraction = fraction;
    options.resident_limit = resident_limit;
    options.refuse_large = refuse_large;
    options.cells_only = cells_only;
    options.recorder = recorder;
    options.signals = signals;
    options.folder = std::move(folder);
    options.python_stack_signal = stack_signal;
    options.facts = std::move(facts);
    options.on_alarm = [this, alarm_signal](const guard::WatchAlarm& alarm) {
      {
        const std::lock_guard lock(mutex_);
        alarm_ = alarm;
      }
      return alarm_signal > 0 && syscall(SYS_tgkill, getpid(), getpid(), alarm_signal) == 0;
    };
    const nb::gil_scoped_release released;
    watch_ = std::make_unique<guard::Watch>(std::move(options));
  }

  guard::Watch& watch() { return *watch_; }

  /// What the handler of the signal has to say: an alarm, unless it is outdated by now.
  nb::object take_alarm() {
    std::optional<guard::WatchAlarm> alarm;
    {
      const std::lock_guard lock(mutex_);
      alarm.swap(alarm_);
    }
    if (!alarm || !watch_->busy()) return nb::none();
    return to_dict(*alarm);
  }

 private:
  std::mutex mutex_;
  std::optional<guard::WatchAlarm> alarm_;
  std::unique_ptr<guard::Watch> watch_;
};

template <typename T>
nb::typed<nb::list, Record> to_dicts(const std::vector<T>& items) {
  nb::list result;
  for (const T& item : items) result.append(to_dict(item));
  return result;
}

void bind_watch(nb::module_& m) {
  nb::class_<PythonWatch>(m, "NativeWatch", "The thread of a watch. Use it through `leadline.watch`.")
      .def(nb::init<double, int64_t, bool, bool, bool, bool, std::string, int, int, Facts>(), nb::arg("fraction"),
           nb::arg("resident_limit"), nb::arg("refuse_large"), nb::arg("cells_only"), nb::arg("recorder"),
           nb::arg("signals"), nb::arg("folder"), nb::arg("stack_signal"), nb::arg("alarm_signal"), nb::arg("facts"),
           "Starts it. An alarm sends `alarm_signal` to the main thread.")
      .def(
          "stop", [](PythonWatch& self) { self.watch().stop(); }, WithoutGil(), "Ends it; the process continues.")
      .def("take_alarm", &PythonWatch::take_alarm, nb::sig("def take_alarm(self) -> dict[str, typing.Any] | None"),
           "The alarm that is to be raised, or None. For the signal's handler.")
      .def(
          "note_raised", [](PythonWatch& self) { self.watch().note_raised(); }, "The alarm is about to be raised.")
      .def(
          "stop_at_exit",
          [](PythonWatch& self, const std::string& words) {
            const nb::gil_scoped_release released;
            self.watch().stop_at_exit(words);
          },
          nb::arg("last_words"), "Ends it; the process is about to end by itself.")
      .def(
          "begin_cell",
          [](PythonWatch& self, int number, const std::string& line) { self.watch().begin_cell(number, line); },
          nb::arg("number"), nb::arg("first_line"), "A cell begins.")
      .def(
          "end_cell", [](PythonWatch& self) { return to_dict(self.watch().end_cell()); }, "The cell that ended.")
      .def(
          "set_facts", [](PythonWatch& self, const Facts& facts) { self.watch().set_facts(facts); }, nb::arg("facts"),
          "What the recorder keeps for the post-mortem.")
      .def(
          "sample", [](PythonWatch& self) { return to_dict(self.watch().sample()); }, "Memory now.")
      .def(
          "samples", [](PythonWatch& self) { return to_dicts(self.watch().samples()); }, "Memory in the last minutes.")
      .def(
          "cells", [](PythonWatch& self) { return to_dicts(self.watch().cells()); }, "The last 1000 cells.")
      .def_prop_ro(
          "busy", [](PythonWatch& self) { return self.watch().busy(); }, "Whether alarms are given now.")
      .def_prop_ro(
          "alarms", [](PythonWatch& self) { return self.watch().alarms(); }, "How many there were.")
      .def_prop_ro(
          "cpu_seconds", [](PythonWatch& self) { return self.watch().cpu_seconds(); }, "CPU time of the thread.")
      .def_prop_ro(
          "recorder_path", [](PythonWatch& self) { return self.watch().recorder_path(); },
          "The recorder's file; empty without one.")
      .def_prop_ro(
          "recorder_descriptor", [](PythonWatch& self) { return self.watch().recorder_descriptor(); },
          "Its descriptor; -1 without one.");
}

nb::typed<nb::list, nb::typed<nb::tuple, nb::str, int, nb::str>> frames_of(const guard::Postmortem& report) {
  nb::list result;
  for (const guard::NativeFrame& frame : report.frames) {
    result.append(nb::make_tuple(to_str(frame.module), frame.offset, to_str(frame.symbol)));
  }
  return result;
}

nb::typed<nb::list, nb::typed<nb::tuple, float, int, int, int>> samples_of(const guard::Postmortem& report) {
  nb::list result;
  for (const guard::RecordedSample& sample : report.samples) {
    result.append(nb::make_tuple(sample.seconds_before_end, sample.resident, sample.used, sample.capacity));
  }
  return result;
}

nb::typed<nb::dict, nb::str, nb::str> facts_of(const guard::Postmortem& report) {
  nb::dict result;
  for (const auto& [key, value] : report.facts) result[to_str(key)] = to_str(value);
  return result;
}

void bind_postmortem(nb::module_& m) {
  nb::class_<guard::Postmortem>(m, "Postmortem", "How a watched process came to its end.")
      .def_prop_ro(
          "cause", [](const guard::Postmortem& self) { return guard::death_cause_name(self.cause); },
          "'running', 'exit', 'unwatched', 'out of memory', 'killed', 'segmentation fault', 'stack overflow', 'abort', "
          "'bus error', 'arithmetic error', 'illegal instruction', 'signal', 'reboot' or 'unknown'.")
      .def_ro("confidence", &guard::Postmortem::confidence, "'certain', 'very likely', 'likely' or 'unclear'.")
      .def_prop_ro("died", &guard::Postmortem::died, "Whether the process is gone, and not by its own will.")
      .def_ro("summary", &guard::Postmortem::summary, "Which process, when, in which cell, why: one sentence.")
      .def_ro("advice", &guard::Postmortem::advice, "What to do about it.")
      .def_prop_ro(
          "evidence", [](const guard::Postmortem& self) { return to_list(self.evidence); },
          "What speaks for the cause.")
      .def_ro("pid", &guard::Postmortem::pid, "Number of the process.")
      .def_ro("started", &guard::Postmortem::started, "When it was first watched, in seconds since 1970.")
      .def_ro("last_sign", &guard::Postmortem::last_sign, "Its last sign of life.")
      .def_ro("command", &guard::Postmortem::command, "Its command line.")
      .def_ro("session", &guard::Postmortem::session, "Distinguishes one notebook's kernels from another's.")
      .def_ro("folder", &guard::Postmortem::folder, "Where it ran.")
      .def_ro("cell", &guard::Postmortem::cell, "Number of the last cell; 0: none.")
      .def_ro("cell_line", &guard::Postmortem::cell_line, "Its first line.")
      .def_ro("cell_running", &guard::Postmortem::cell_running, "Whether it was running.")
      .def_ro("op", &guard::Postmortem::op, "The op of Leadline that ran last.")
      .def_ro("op_running", &guard::Postmortem::op_running, "Whether it was running.")
      .def_ro("signal", &guard::Postmortem::signal, "That ended it; 0: none that it saw.")
      .def_ro("fault_address", &guard::Postmortem::fault_address, "Address of a fault.")
      .def_ro("module", &guard::Postmortem::module, "Path of the library to blame; empty: unknown.")
      .def_ro("message", &guard::Postmortem::message, "Last words of an abort or an exit.")
      .def_ro("instruction", &guard::Postmortem::instruction, "Bytes of an illegal instruction, in hexadecimal.")
      .def_ro("trap", &guard::Postmortem::trap,
              "Whether that is one which compilers put where a program must never come.")
      .def_prop_ro(
          "missing_features", [](const guard::Postmortem& self) { return to_list(self.missing_features); },
          "Flags of numeric code that the CPU of an illegal instruction does not have.")
      .def_prop_ro("frames", &frames_of, "Native frames as (module, offset, symbol), innermost first.")
      .def_ro("python_stack", &guard::Postmortem::python_stack, "Python's stack.")
      .def_prop_ro("samples", &samples_of, "(seconds before the end, resident, used, capacity), oldest first.")
      .def_ro("peak_resident", &guard::Postmortem::peak_resident, "The most resident bytes that were recorded.")
      .def_prop_ro("facts", &facts_of, "Versions and limits.")
      .def_ro("path", &guard::Postmortem::path, "The recording.")
      .def("__str__", &guard::Postmortem::to_text)
      .def("__repr__", [](const guard::Postmortem& self) { return "<leadline.Postmortem: " + self.summary + ">"; });
}

}  // namespace

void init_watch(nb::module_& m) {
  bind_watch(m);
  bind_postmortem(m);
  m.def("postmortem_of", &guard::postmortem_of, nb::arg("file"), WithoutGil(), "The post-mortem of one recording.");
  m.def("postmortems", &guard::postmortems, nb::arg("folder") = "", nb::arg("most") = 100, WithoutGil(),
        "Of all recordings in a folder, newest first.");
  m.def("previous_death", &guard::previous_death, nb::arg("session"), nb::arg("folder"), WithoutGil(),
        "The last death of the same session that was not reported yet: a list of none or one.");
  m.def("mark_reported", &guard::mark_reported, nb::arg("file"), WithoutGil(), "Notes that this death was reported.");
  m.def("flights_folder", &guard::flights_folder, "Where recordings are kept.");
  m.def("accounted_bytes", &accounted_bytes, "Bytes charged now to all budgets of this process.");
}

}  // namespace leadline::python
