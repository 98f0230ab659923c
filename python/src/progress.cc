// SPDX-License-Identifier: Apache-2.0
// Python functions that are told how far a piece of work is, and Python's signals during a run.
#include "leadline/progress.h"

#include <nanobind/stl/optional.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "engine_call.h"
#include "leadline/error.h"
#include "module.h"

namespace leadline::python {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kBetweenCalls = std::chrono::milliseconds(50);
// Taking the GIL costs up to 5 ms where other threads are busy with Python; Ctrl-C must work within 100 ms.
constexpr auto kBetweenSignals = std::chrono::milliseconds(40);

/// `with time_limit(seconds):`.
struct TimeLimit {
  double seconds = kNoTimeout;
  Clock::time_point deadline = Clock::time_point::max();
  bool entered = false;
};

/// Those that the thread is in. Held by Python's objects, which may be left on another thread.
thread_local std::vector<std::weak_ptr<TimeLimit>> time_limits;

struct PythonTimeLimit {
  std::shared_ptr<TimeLimit> limit = std::make_shared<TimeLimit>();
};

void make_time_limit(PythonTimeLimit* self, std::optional<double> seconds) {
  const double timeout = seconds.value_or(kNoTimeout);
  if (!(timeout >= 0)) {
    throw Error(ErrorCode::kInvalidArgument, "a time limit is a number of seconds, 0 or more, or None");
  }
  new (self) PythonTimeLimit();
  self->limit->seconds = timeout;
}

void enter(PythonTimeLimit& self) {
  constexpr double kLongest = 1e9;  // a time point holds 292 years
  TimeLimit& limit = *self.limit;
  if (limit.entered) throw Error(ErrorCode::kInvalidArgument, "this time limit is in use already: make another one");
  if (limit.seconds > kLongest) return;
  limit.entered = true;
  limit.deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit.seconds));
  time_limits.push_back(self.limit);
}

void leave(PythonTimeLimit& self) { self.limit->entered = false; }

/// The one that ends first.
TimeLimit tightest_limit() {
  TimeLimit tightest;
  std::erase_if(time_limits, [&](const std::weak_ptr<TimeLimit>& entry) {
    const std::shared_ptr<TimeLimit> limit = entry.lock();
    if (limit == nullptr || !limit->entered) return true;
    if (limit->deadline < tightest.deadline) tightest = *limit;
    return false;
  });
  return tightest;
}

}  // namespace

RunCheck signal_check() {
  if (getpid() != static_cast<pid_t>(syscall(SYS_gettid))) return {};
  // Most calls end before the first look.
  return [last = Clock::now()]() mutable {
    const auto now = Clock::now();
    if (now - last < kBetweenSignals) return;
    const nb::gil_scoped_acquire gil;
    last = Clock::now();
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
}

EngineCall::EngineCall() {
  const TimeLimit tightest = tightest_limit();
  limit_.emplace(signal_check(), tightest.deadline, tightest.seconds);
}

Progress progress_of(const nb::object& callback) {
  auto last = Clock::now();
  return [callback, last](int64_t done, int64_t total) mutable {
    const auto now = Clock::now();
    if (done != total && done != 0 && now - last < kBetweenCalls) return true;
    last = now;
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return callback.is_none() || callback(done, total).ptr() != Py_False;
  };
}

JobObserver observer_of(const nb::object& callback) {
  if (callback.is_none()) return {};
  return [callback, last = Clock::now()](const JobProgress& at) mutable {
    const auto now = Clock::now();
    if (at.unit == "bytes" && at.done != at.total && at.done != 0 && now - last < kBetweenCalls) return true;
    last = now;
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    const nb::object total = at.total < 0 ? nb::object(nb::none()) : nb::object(nb::int_(at.total));
    return callback(nb::str(at.phase.data(), at.phase.size()), at.done, total).ptr() != Py_False;
  };
}

void init_time_limit(nb::module_& m) {
  m.def("check_limits", [] { EngineCall().ask(); }, "Raises TimeLimitError when a time_limit of this thread is over.");
  nb::class_<PythonTimeLimit>(
      m, "time_limit",
      "In a `with` block, whatever Leadline does on this thread (load, plan, run, convert, calibrate, quantize, debug) "
      "ends with TimeLimitError when `seconds` have passed since the block began; None: never. The message names the "
      "node it was at. Interpreters can be used again. Blocks nest.")
      .def("__init__", &make_time_limit, nb::arg("seconds").none())
      .def(
          "__enter__",
          [](nb::handle self) {
            enter(*nb::inst_ptr<PythonTimeLimit>(self));
            return self;
          },
          nb::sig("def __enter__(self) -> time_limit"))
      .def(
          "__exit__", [](PythonTimeLimit& self, const nb::args&) { leave(self); },
          nb::sig("def __exit__(self, *exception: object) -> None"))
      .def("__repr__", [](const PythonTimeLimit& self) {
        return nb::str("<leadline.time_limit: {:g} s>").format(self.limit->seconds);
      });
}

}  // namespace leadline::python
