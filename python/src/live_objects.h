// SPDX-License-Identifier: Apache-2.0
// Which of Leadline's objects live, and which line of the user's made them.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

namespace leadline::python {

/// Remembers a new object (weakly) and the innermost line outside the package that made it. Needs the GIL; never fails:
/// an object that cannot be remembered is not listed.
void remember(nanobind::handle object) noexcept;

/// A result whose Python object is remembered.
template <typename T>
struct Remembered {
  T value;
};

}  // namespace leadline::python

namespace nanobind::detail {

template <typename T>
struct type_caster<leadline::python::Remembered<T>> {
  static constexpr auto Name = make_caster<T>::Name;

  static handle from_cpp(leadline::python::Remembered<T>&& result, rv_policy, cleanup_list* cleanup) noexcept {
    const handle object = make_caster<T>::from_cpp(std::move(result.value), rv_policy::move, cleanup);
    if (object.is_valid()) leadline::python::remember(object);
    return object;
  }
};

}  // namespace nanobind::detail
