// SPDX-License-Identifier: Apache-2.0
// Python functions that are told how far a piece of work is, and Python's signals during a run.
#include "leadline/progress.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>

#include "module.h"

namespace leadline::python {

namespace {

constexpr auto kBetweenCalls = std::chrono::milliseconds(50);
constexpr auto kBetweenSignals = std::chrono::milliseconds(100);

}  // namespace

Progress progress_of(const nb::object& callback) {
  auto last = std::chrono::steady_clock::now();
  return [callback, last](int64_t done, int64_t total) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (done != total && done != 0 && now - last < kBetweenCalls) return true;
    last = now;
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    return callback.is_none() || callback(done, total).ptr() != Py_False;
  };
}

RunCheck signal_check() {
  if (getpid() != static_cast<pid_t>(syscall(SYS_gettid))) return {};
  // Most runs end before the first look. Taking the GIL costs up to 5 ms where other threads are busy with Python.
  return [last = std::chrono::steady_clock::now()]() mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < kBetweenSignals) return;
    const nb::gil_scoped_acquire gil;
    last = std::chrono::steady_clock::now();
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  };
}

}  // namespace leadline::python
