// SPDX-License-Identifier: Apache-2.0
// What the binding files share. Each init_* binds one public header; none holds logic beyond adapting types.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "leadline/budget.h"
#include "leadline/interpreter.h"
#include "leadline/job_progress.h"
#include "leadline/plan.h"
#include "leadline/progress.h"
#include "leadline/types.h"

namespace leadline::python {

namespace nb = nanobind;

/// Every call that may wait for another thread's run releases the GIL, or all of Python would wait with it.
using WithoutGil = nb::call_guard<nb::gil_scoped_release>;

void init_error(nb::module_& m);
void init_types(nb::module_& m);
void init_budget(nb::module_& m);
void init_model(nb::module_& m);
void init_model_builder(nb::module_& m);
void init_converter(nb::module_& m);
void init_keras_layer(nb::module_& m);
void init_debugger(nb::module_& m);
void init_evaluate(nb::module_& m);
void init_guard(nb::module_& m);
void init_watch(nb::module_& m);
void init_allocators(nb::module_& m);
void init_devices(nb::module_& m);
void init_doctor(nb::module_& m);
void init_laps(nb::module_& m);
void init_live_objects(nb::module_& m);
void init_object_census(nb::module_& m);
void init_op_list(nb::module_& m);
void init_observer(nb::module_& m);
void init_plan(nb::module_& m);
void init_interpreter(nb::module_& m);
void init_job_plan(nb::module_& m);
void init_jobs(nb::module_& m);
void init_custom_op(nb::module_& m);
void init_calibration(nb::module_& m);
void init_quantizer(nb::module_& m);
void init_records(nb::module_& m);
void init_samples(nb::module_& m);

/// A budget as users may give it: none, one, its bytes, or a text such as "200MB".
using BudgetArgument = std::optional<std::variant<std::shared_ptr<Budget>, int64_t, std::string>>;
std::shared_ptr<Budget> to_budget(BudgetArgument budget);

/// Text from a model file, which need not be UTF-8: what is not becomes U+FFFD.
nb::str to_str(const std::string& text);

/// Containers with the types of their items in the stub.
using IntTuple = nb::typed<nb::tuple, int, nb::ellipsis>;
using StrList = nb::typed<nb::list, nb::str>;
using BytesByName = nb::typed<nb::dict, nb::str, int>;
using Record = nb::typed<nb::dict, nb::str, nb::any>;

/// The dimensions as a tuple of int.
IntTuple to_tuple(const Shape& shape);

/// Texts from a model file as a list of str.
StrList to_list(const std::vector<std::string>& texts);

/// A tensor's memory as Python sees it: a buffer that shares ownership, so that an array made from it outlives resizes
/// and the interpreter.
struct SharedTensor {
  TensorMemory memory;
  bool read_only;
};

/// Bytes by the name of their category, in the order of reports.
BytesByName to_dict(std::span<const CategoryBytes> categories);

/// Lets Ctrl-C through, and calls a Python function (or None) now and then. The GIL is taken for that only.
Progress progress_of(const nb::object& callback);
/// The same of a job: the function is called with the phase, what is done of it and of how much, or None where that is
/// not known. Of samples and trials it is told one by one.
JobObserver observer_of(const nb::object& callback);
/// Lets Ctrl-C and other signals end a run on the main thread, where Python handles them; empty on other threads.
RunCheck signal_check();

/// A reference to `object` that any thread may drop, with or without the GIL.
std::shared_ptr<const void> keep_alive(nb::object object);

/// Throws the Error that stands for `error`, which is being handled, with `error` nested in it. Needs the GIL.
[[noreturn]] void throw_as_error(const nb::python_error& error);

/// The memory of a Python object that offers the buffer protocol, for the lifetime of this. Needs the GIL.
class BufferView {
 public:
  explicit BufferView(nb::handle object);
  ~BufferView();
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;

  std::span<const std::byte> bytes() const;
  bool read_only() const { return view_.readonly != 0; }

 private:
  Py_buffer view_{};
};

/// The same for as long as someone holds it; any thread may drop it, with or without the GIL.
std::shared_ptr<const BufferView> hold_buffer(nb::handle object);

}  // namespace leadline::python
