// SPDX-License-Identifier: Apache-2.0
// leadline/error.h: each ErrorCode becomes a Python class. All are RuntimeErrors, as tf.lite raises from allocate and
// invoke; those about files and arguments are ValueErrors too, as tf.lite raises from the constructor and accessors.
#include "leadline/error.h"

#include <array>
#include <exception>
#include <initializer_list>
#include <string>

#include "leadline/names.h"
#include "module.h"

namespace leadline::python {
namespace {
struct ErrorClasses {
  PyObject* error;
  PyObject* invalid_model;
  PyObject* unsupported;
  PyObject* invalid_argument;
  PyObject* budget;
  PyObject* io;
  PyObject* out_of_memory;
  PyObject* timeout;
};
// Set once while the module is imported; the references are kept for ever, as those of built-in exceptions are.
ErrorClasses classes;

PyObject* class_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidModel:
      return classes.invalid_model;
    case ErrorCode::kUnsupported:
      return classes.unsupported;
    case ErrorCode::kInvalidArgument:
      return classes.invalid_argument;
    case ErrorCode::kBudget:
      return classes.budget;
    case ErrorCode::kIo:
      return classes.io;
    case ErrorCode::kOutOfMemory:
      return classes.out_of_memory;
    case ErrorCode::kTimeout:
      return classes.timeout;
    default:
      return classes.error;
  }
}

/// The exception of Python's that is nested somewhere in `error`; None when there is none.
nb::object python_cause(const std::exception& error) {
  try {
    std::rethrow_if_nested(error);
  } catch (const nb::python_error& original) {
    return nb::borrow(original.value());
  } catch (const std::exception& inner) {
    return python_cause(inner);
  } catch (...) {
  }
  return nb::none();
}

void raise(const Error& error) {
  const nb::object cause = python_cause(error);
  if (!cause.is_none() && PyObject_IsInstance(cause.ptr(), PyExc_Exception) == 0) {  // KeyboardInterrupt and the like
    PyErr_SetObject(cause.type().ptr(), cause.ptr());
    return;
  }
  nb::object value = nb::handle(class_of(error.code()))(to_str(error.what()));
  value.attr("code") = error_code_name(error.code());
  if (const auto* budget = dynamic_cast<const BudgetError*>(&error)) {
    value.attr("needed") = budget->needed();
    value.attr("limit") = budget->limit();
  }
  if (!cause.is_none()) {
    PyException_SetCause(value.ptr(), cause.inc_ref().ptr());
  }
  PyErr_SetObject(class_of(error.code()), value.ptr());
}

/// What a Python op raised comes out as it was raised; a note names the node.
bool raise_nested(const Error& error) {
  try {
    std::rethrow_if_nested(error);
  } catch (nb::python_error& original) {
    nb::object value = nb::borrow(original.value());
    const std::string text = error.what();
    const nb::str note = to_str("raised by " + text.substr(0, text.find(": ")) + ", an op that Python registered");
    original.restore();
    PyObject *type = nullptr, *raised = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &raised, &traceback);
    try {
      if (nb::hasattr(value, "add_note")) {  // since Python 3.11
        value.attr("add_note")(note);
      }
    } catch (nb::python_error&) {  // a class of the user's that refuses notes: the exception itself matters more
    }
    PyErr_Restore(type, raised, traceback);
    return true;
  } catch (const std::exception&) {
  }
  return false;
}

PyObject* make_class(nb::module_& m, const char* name, const char* doc, std::initializer_list<PyObject*> bases) {
  nb::list list;
  for (PyObject* base : bases) {
    list.append(nb::handle(base));
  }
  const std::string full_name = std::string("leadline.") + name;
  PyObject* type = PyErr_NewExceptionWithDoc(full_name.c_str(), doc, nb::tuple(list).ptr(), nullptr);
  if (type == nullptr) {
    throw nb::python_error();
  }
  m.attr(name) = nb::handle(type);
  return type;
}

}  // namespace

void throw_as_error(const nb::python_error& error) {
  const nb::object value = nb::borrow(error.value());
  std::string text;
  ErrorCode code = ErrorCode::kRuntime;
  try {
    text = nb::str(value).c_str();
    if (PyObject_IsInstance(value.ptr(), classes.error) == 1) {
      const std::string name = nb::str(value.attr("code")).c_str();
      for (const ErrorCode known : {ErrorCode::kInvalidModel, ErrorCode::kUnsupported, ErrorCode::kInvalidArgument,
                                    ErrorCode::kIo, ErrorCode::kCancelled, ErrorCode::kTimeout}) {
        if (name == error_code_name(known)) code = known;
      }
    } else {
      text = std::string(nb::str(value.type().attr("__name__")).c_str()) + ": " + text;
    }
  } catch (const nb::python_error&) {  // an exception that cannot say what it is
  }
  std::throw_with_nested(Error(code, text));
}

void init_error(nb::module_& m) {
  classes.error = make_class(m, "Error",
                             "Any problem that Leadline reports. `code` says what kind: 'invalid_model', "
                             "'unsupported', 'invalid_argument', 'budget', 'io', 'runtime', 'cancelled', 'timeout', "
                             "'internal' or 'out_of_memory'.",
                             {PyExc_RuntimeError});
  nb::handle(classes.error).attr("code") = "runtime";
  const auto subclass = [&m](const char* name, ErrorCode code, const char* doc,
                             std::initializer_list<PyObject*> bases) {
    PyObject* type = make_class(m, name, doc, bases);
    nb::handle(type).attr("code") = error_code_name(code);
    return type;
  };
  classes.invalid_model =
      subclass("InvalidModelError", ErrorCode::kInvalidModel,
               "The file is damaged, truncated or breaks a rule of the format.", {classes.error, PyExc_ValueError});
  classes.unsupported = subclass("UnsupportedError", ErrorCode::kUnsupported,
                                 "The model is legal but needs an op, version or type that Leadline does not have.",
                                 {classes.error, PyExc_NotImplementedError, PyExc_ValueError});
  classes.invalid_argument = subclass("InvalidArgumentError", ErrorCode::kInvalidArgument,
                                      "A value of the caller does not fit: an index, shape, dtype or option.",
                                      {classes.error, PyExc_ValueError});
  classes.budget = subclass("BudgetError", ErrorCode::kBudget,
                            "The job needs more memory than its budget allows. `needed` and `limit` are in bytes; the "
                            "message ends with a table of what needs how much.",
                            {classes.error, PyExc_MemoryError});
  nb::handle(classes.budget).attr("needed") = 0;
  nb::handle(classes.budget).attr("limit") = 0;
  classes.io = subclass("IoError", ErrorCode::kIo, "The operating system refused to read, write or map a file.",
                        {classes.error, PyExc_ValueError, PyExc_OSError});
  classes.out_of_memory =
      subclass("OutOfMemoryError", ErrorCode::kOutOfMemory,
               "The system refused memory that is too small for a budget to count. What was begun has been undone.",
               {classes.error, PyExc_MemoryError});
  classes.timeout = subclass("TimeLimitError", ErrorCode::kTimeout,
                             "The work took longer than its time limit. The message names the node it was at.",
                             {classes.error, PyExc_TimeoutError});

  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Error& error) {
      if (!raise_nested(error)) {
        raise(error);
      }
    }
  });
}

}  // namespace leadline::python
