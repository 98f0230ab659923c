// SPDX-License-Identifier: Apache-2.0
// leadline/guard/watch.h and leadline/guard/postmortem.h.
#include "leadline/guard/watch.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "leadline/budget.h"
#include "leadline/guard/postmortem.h"
#include "module.h"
#include "outside_stable_abi.h"
#include "save_in_copy.h"

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
  result["promised"] = sample.promised;
  result["workers"] = sample.workers;
  result["worker_count"] = sample.worker_count;
  result["pressure"] = sample.pressure;
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
  result["warning"] = alarm.warning;
  result["by_pressure"] = alarm.by_pressure;
  result["thread"] = alarm.thread;
  result["worker_growth"] = alarm.worker_growth;
  return result;
}

/// A thread that calls a function of Python when it is woken. It waits for Python's lock, so that the watch need not.
class Saver {
 public:
  Saver(nb::callable save, guard::Watch& watch)
      : save_(std::move(save)), watch_(watch), thread_(std::make_unique<std::thread>([this] { run(); })) {}
  /// Without Python's lock.
  ~Saver() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    thread_->join();
    const nb::gil_scoped_acquire acquired;
    save_.reset();
  }
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  void wake() {
    {
      const std::lock_guard lock(mutex_);
      wanted_ = true;
    }
    wake_.notify_all();
  }

 private:
  void run() {
    pthread_setname_np(pthread_self(), "leadline-save");
    sigset_t all;
    sigfillset(&all);
    for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) sigdelset(&all, signal);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return wanted_ || ending_; });
      if (ending_) return;
      wanted_ = false;
      lock.unlock();
      call();
      lock.lock();
    }
  }

  void call() {
    std::string path;
    const nb::gil_scoped_acquire acquired;
    if (!watch_.saving()) return;
    try {
      path = nb::cast<std::string>(save_());
    } catch (const std::exception&) {  // what cannot be saved is lost; there is nobody to tell
    }
    watch_.saved(path);
  }

  nb::object save_;
  guard::Watch& watch_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool wanted_ = false;
  bool ending_ = false;
  std::unique_ptr<std::thread> thread_;
};

/// A Watch whose alarms are raised in Python's main thread, between two of its instructions. The thread of the watch
/// never waits for Python's lock: Python may be stuck in native code. It sends the main thread a signal, as Ctrl-C
/// does, which also ends waiting; a pending call would be noticed only by chance before Python 3.12.
class PythonWatch {
 public:
  PythonWatch(double fraction, int64_t resident_limit, bool refuse_large, bool refuse_native, bool cells_only,
              bool recorder, bool signals, std::string folder, int stack_signal, int alarm_signal, int pause_signal,
              const nb::object& save, const nb::object& save_in_copy, Facts facts) {
    guard::WatchOptions options;
    options.fraction = fraction;
    options.resident_limit = resident_limit;
    options.refuse_large = refuse_large;
    options.refuse_native = refuse_native;
    options.cells_only = cells_only;
    options.recorder = recorder;
    options.signals = signals;
    options.folder = std::move(folder);
    options.python_stack_signal = stack_signal;
    options.pause_signal = pause_signal;
    // Who holds Python's lock would stop the saver too.
    (void)outside::functions();
    options.may_stop = [] {
      const auto check = outside::functions().gil_state_check;
      return check != nullptr && check() == 0;
    };
    options.save_in_copy = save_in_copy.is_none() ? nullptr : &leadline::python::save_in_copy;
    set_save_in_copy(save_in_copy);
    options.facts = std::move(facts);
    options.on_alarm = [this, alarm_signal](const guard::WatchAlarm& alarm) {
      {
        const std::lock_guard lock(mutex_);
        alarm_ = alarm;
      }
      return alarm_signal > 0 && syscall(SYS_tgkill, getpid(), getpid(), alarm_signal) == 0;
    };
    if (!save.is_none()) {
      options.on_emergency = [this] {
        const std::lock_guard lock(mutex_);
        if (saver_) saver_->wake();
      };
    }
    {
      const nb::gil_scoped_release released;
      watch_ = std::make_unique<guard::Watch>(std::move(options));
    }
    if (!save.is_none()) {
      auto saver = std::make_unique<Saver>(nb::cast<nb::callable>(save), *watch_);
      const std::lock_guard lock(mutex_);
      saver_ = std::move(saver);
    }
  }

  ~PythonWatch() {
    const nb::gil_scoped_release released;
    stop([](guard::Watch& watch) { watch.stop(); });
  }
  PythonWatch(const PythonWatch&) = delete;
  PythonWatch& operator=(const PythonWatch&) = delete;

  guard::Watch& watch() { return *watch_; }

  /// Without Python's lock.
  template <typename End>
  void stop(End end) {
    end(*watch_);
    if (getpid() != owner_) {  // a forked child has no such thread, and nobody who would unlock the mutex
      (void)saver_.release();
      return;
    }
    std::unique_ptr<Saver> saver;
    {
      const std::lock_guard lock(mutex_);
      saver = std::move(saver_);
    }
  }

  /// What the handler of the signal has to say: an alarm.
  nb::object take_alarm() {
    std::optional<guard::WatchAlarm> alarm;
    {
      const std::lock_guard lock(mutex_);
      alarm.swap(alarm_);
    }
    if (!alarm) return nb::none();
    watch_->note_heard();
    return to_dict(*alarm);
  }

 private:
  std::mutex mutex_;
  const pid_t owner_ = getpid();
  std::optional<guard::WatchAlarm> alarm_;
  std::unique_ptr<guard::Watch> watch_;
  std::unique_ptr<Saver> saver_;
};

template <typename T>
nb::typed<nb::list, Record> to_dicts(const std::vector<T>& items) {
  nb::list result;
  for (const T& item : items) result.append(to_dict(item));
  return result;
}

void bind_watch(nb::module_& m) {
  nb::class_<PythonWatch>(m, "NativeWatch", "The thread of a watch. Use it through `leadline.watch`.")
      .def(nb::init<double, int64_t, bool, bool, bool, bool, bool, std::string, int, int, int, nb::object, nb::object,
                    Facts>(),
           nb::arg("fraction"), nb::arg("resident_limit"), nb::arg("refuse_large"), nb::arg("refuse_native"),
           nb::arg("cells_only"), nb::arg("recorder"), nb::arg("signals"), nb::arg("folder"), nb::arg("stack_signal"),
           nb::arg("alarm_signal"), nb::arg("pause_signal"), nb::arg("save").none(), nb::arg("save_in_copy").none(),
           nb::arg("facts"), "Starts it. An alarm sends `alarm_signal` to the main thread.")
      .def(
          "stop", [](PythonWatch& self) { self.stop([](guard::Watch& watch) { watch.stop(); }); }, WithoutGil(),
          "Ends it; the process continues.")
      .def("take_alarm", &PythonWatch::take_alarm, nb::sig("def take_alarm(self) -> dict[str, typing.Any] | None"),
           "The alarm that is to be raised, or None. For the signal's handler.")
      .def(
          "note_raised", [](PythonWatch& self) { self.watch().note_raised(); }, "The alarm is about to be raised.")
      .def(
          "saving", [](PythonWatch& self) { self.watch().saving(); }, "Another variable is being saved.")
      .def(
          "take_back_alarm", [](PythonWatch& self) { self.watch().take_back_alarm(); },
          "The alarm reached nobody who could stop: it comes again.")
      .def(
          "stop_at_exit",
          [](PythonWatch& self, const std::string& words) {
            const nb::gil_scoped_release released;
            self.stop([&](guard::Watch& watch) { watch.stop_at_exit(words); });
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

std::optional<Record> guilty_of(const guard::Postmortem& report) {
  if (report.guilty.line == 0) return std::nullopt;
  nb::dict result;
  result["file"] = to_str(report.guilty.file);
  result["line"] = report.guilty.line;
  result["function"] = to_str(report.guilty.function);
  result["source"] = to_str(report.guilty.source);
  result["in_cell"] = report.guilty.in_cell;
  return Record(result);
}

/// Drawn in Python, where reports of notebooks are.
nb::str html_of(nb::handle self) {
  return nb::str(nb::module_::import_("leadline.notebook.postmortem").attr("to_html")(self));
}

Record to_dict(const guard::ProcessLook& look) {
  nb::dict result;
  result["resident"] = look.resident;
  result["peak_resident"] = look.peak_resident;
  result["used"] = look.used;
  result["capacity"] = look.capacity;
  result["container"] = look.container;
  result["cgroup"] = to_str(look.cgroup);
  result["cgroup_v2"] = look.cgroup_v2;
  result["group_oom_kills"] = look.group_oom_kills;
  result["machine_oom_kills"] = look.machine_oom_kills;
  return result;
}

/// What `key` of a dict has; `fallback` where it is absent.
template <typename T>
T value_of(const nb::dict& from, const char* key, T fallback) {
  return from.contains(key) ? nb::cast<T>(from[key]) : fallback;
}

guard::Postmortem postmortem_of_end(const Record& known) {
  guard::ProcessEnd end;
  end.pid = value_of(known, "pid", 0);
  end.exit_status = value_of(known, "exit_status", 0);
  end.started = value_of(known, "started", 0.0);
  end.ended = value_of(known, "ended", 0.0);
  end.command = value_of(known, "command", std::string());
  end.session = value_of(known, "session", std::string());
  end.folder = value_of(known, "folder", std::string());
  end.cell = value_of(known, "cell", 0);
  end.cell_source = value_of(known, "cell_source", std::string());
  end.cell_running = value_of(known, "cell_running", false);
  end.flights = value_of(known, "flights", std::string());
  const nb::dict look = value_of(known, "before", nb::dict());
  end.before.peak_resident = value_of<int64_t>(look, "peak_resident", 0);
  end.before.cgroup = value_of(look, "cgroup", std::string());
  end.before.cgroup_v2 = value_of(look, "cgroup_v2", false);
  end.before.group_oom_kills = value_of<int64_t>(look, "group_oom_kills", -1);
  end.before.machine_oom_kills = value_of<int64_t>(look, "machine_oom_kills", -1);
  using Sample = std::tuple<double, int64_t, int64_t, int64_t>;
  for (const auto& [seconds, resident, used, capacity] : value_of(known, "samples", std::vector<Sample>())) {
    end.samples.push_back({seconds, resident, used, capacity});
  }
  const nb::gil_scoped_release released;
  return guard::postmortem_of_end(end);
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
          "'bus error', 'arithmetic error', 'illegal instruction', 'signal', 'replaced', 'reboot' or 'unknown'.")
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
      .def_ro("cell_source", &guard::Postmortem::cell_source, "All of it, where it is known.")
      .def_ro("cell_running", &guard::Postmortem::cell_running, "Whether it was running.")
      .def_ro("op", &guard::Postmortem::op, "The op of Leadline that ran last.")
      .def_ro("op_running", &guard::Postmortem::op_running, "Whether it was running.")
      .def_ro("exit_status", &guard::Postmortem::exit_status,
              "As its parent saw it: an exit code, or minus a signal; None: unknown.")
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
      .def_ro("python_stack", &guard::Postmortem::python_stack, "Python's stack, as faulthandler wrote it.")
      .def_prop_ro("guilty", &guilty_of,
                   "The innermost line of the user's own code: file, line, function, source, in_cell; None: unknown.")
      .def_prop_ro("samples", &samples_of, "(seconds before the end, resident, used, capacity), oldest first.")
      .def_ro("peak_resident", &guard::Postmortem::peak_resident, "The most resident bytes that were recorded.")
      .def_prop_ro("facts", &facts_of, "Versions and limits.")
      .def_ro("path", &guard::Postmortem::path, "The recording; empty: none.")
      .def_ro("variables_path", &guard::Postmortem::variables_path,
              "What the watch saved of a notebook's variables; empty: nothing.")
      .def("brief", &guard::Postmortem::to_brief, nb::arg("more") = "",
           "A few lines for the place where it died; `more` says where there is more.")
      .def("_repr_html_", &html_of, "With the curve of its memory.")
      .def("__str__", &guard::Postmortem::to_text)
      .def("__repr__", [](const guard::Postmortem& self) { return "<leadline.Postmortem: " + self.summary + ">"; });
}

}  // namespace

void init_watch(nb::module_& m) {
  bind_watch(m);
  bind_postmortem(m);
  m.def("postmortem_of", &guard::postmortem_of, nb::arg("file"), WithoutGil(), "The post-mortem of one recording.");
  m.def("postmortem_of_end", &postmortem_of_end, nb::arg("known"),
        "The post-mortem of a process whose parent saw it end. See leadline.jupyter.life.");
  m.def(
      "look_at_process", [](int pid) { return to_dict(guard::look_at_process(pid)); }, nb::arg("pid"),
      "Another process's memory and its control group.");
  m.def("note_exec", &guard::note_exec, nb::arg("program"), nb::arg("failed") = false,
        "This process is about to become another program, or failed to.");
  m.def("postmortems", &guard::postmortems, nb::arg("folder") = "", nb::arg("most") = 100, WithoutGil(),
        "Of all recordings in a folder, newest first.");
  m.def("previous_death", &guard::previous_death, nb::arg("session"), nb::arg("folder"), WithoutGil(),
        "The last death of the same session that was not reported yet: a list of none or one.");
  m.def("mark_reported", &guard::mark_reported, nb::arg("file"), WithoutGil(), "Notes that this death was reported.");
  m.def("flights_folder", &guard::flights_folder, "Where recordings are kept.");
  m.def(
      "raise_in_thread",
      [](unsigned long thread, nb::handle kind) { return PyThreadState_SetAsyncExc(thread, kind.ptr()) == 1; },
      nb::arg("thread"), nb::arg("kind"), "Raises an exception of this class in another thread of Python.");
  m.def("accounted_bytes", &accounted_bytes, "Bytes charged now to all budgets of this process.");
}

}  // namespace leadline::python
