// SPDX-License-Identifier: Apache-2.0
#include "live_objects.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "module.h"

namespace leadline::python {
namespace {

struct Entry {
  PyObject* weak;  // owned
  PyObject* file;  // owned; null: unknown
  int line;
};

/// Leaked on purpose: at the end of the process Python is gone before static objects are.
std::vector<Entry>& entries() {
  static auto* const list = new std::vector<Entry>();
  return *list;
}
size_t next_sweep = 64;

nb::object target(const Entry& entry) {
  PyObject* object = PyObject_CallNoArgs(entry.weak);
  if (object == nullptr) PyErr_Clear();
  return object != nullptr ? nb::steal(object) : nb::none();
}

/// Forgets what is gone. Often enough that a loop does not fill the list, rarely enough to cost nothing.
void sweep() {
  std::erase_if(entries(), [](const Entry& entry) {
    if (!target(entry).is_none()) return false;
    Py_DECREF(entry.weak);
    Py_XDECREF(entry.file);
    return true;
  });
  next_sweep = std::max<size_t>(64, 2 * entries().size());
}

std::string& package_folder() {
  static std::string folder;
  return folder;
}

bool is_own(PyObject* file) {
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(file, &size);
  if (text == nullptr) {
    PyErr_Clear();
    return false;
  }
  return !package_folder().empty() && std::string_view(text, static_cast<size_t>(size)).starts_with(package_folder());
}

/// The innermost frame outside the package: its file (owned, or null) and line.
std::pair<PyObject*, int> find_maker() {
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(reinterpret_cast<PyObject*>(frame));
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    PyObject* file = PyObject_GetAttrString(reinterpret_cast<PyObject*>(code), "co_filename");
    Py_DECREF(reinterpret_cast<PyObject*>(code));
    if (file != nullptr && PyUnicode_Check(file) && !is_own(file)) {
      const int line = PyFrame_GetLineNumber(frame);
      Py_DECREF(reinterpret_cast<PyObject*>(frame));
      return {file, line};
    }
    Py_XDECREF(file);
    PyErr_Clear();
    nb::object back = nb::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_back"));
    Py_DECREF(reinterpret_cast<PyObject*>(frame));
    if (!back.is_valid()) PyErr_Clear();
    frame = !back.is_valid() || back.is_none() ? nullptr : reinterpret_cast<PyFrameObject*>(back.release().ptr());
  }
  return {nullptr, 0};
}

nb::list live() {
  sweep();
  nb::list result;
  for (const Entry& entry : entries()) {
    const nb::object object = target(entry);
    if (object.is_none()) continue;
    const nb::object file = entry.file != nullptr ? nb::borrow(entry.file) : nb::none();
    result.append(nb::make_tuple(object, file, entry.line));
  }
  return result;
}

}  // namespace

void remember(nb::handle object) noexcept {
  // A constructor that raises calls this while no exception is set; keep it that way.
  PyObject* weak = PyWeakref_NewRef(object.ptr(), nullptr);
  if (weak == nullptr) {
    PyErr_Clear();
    return;
  }
  const auto [file, line] = find_maker();
  try {
    entries().push_back({weak, file, line});
    if (entries().size() >= next_sweep) sweep();
  } catch (...) {
    PyErr_Clear();  // memory is short: one object less in a list
  }
}

void init_live_objects(nb::module_& m) {
  m.def("remember_object", &remember, nb::arg("thing"),
        "Lists `thing` in live_objects() as made by the caller's line.");
  m.def("live_objects", &live, nb::sig("def live_objects() -> list[tuple[typing.Any, str | None, int]]"),
        "(object, file or None, line) of each object of Leadline's that lives, oldest first.");
  m.def(
      "set_package_folder", [](std::string folder) { package_folder() = std::move(folder); }, nb::arg("folder"),
      "Lines of files below this folder are not the user's.");
}

}  // namespace leadline::python
