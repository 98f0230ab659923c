// SPDX-License-Identifier: Apache-2.0
// A __repr__ for the classes that only hold values: their fields by name.
#include <string>

#include "module.h"

namespace leadline::python {
namespace {

constexpr size_t kMostItems = 6;  // of a list or dict that is shown whole

/// Lists of records, and long lists and dicts, are shown by their length.
std::string shown(const nb::object& value) {
  const bool list = nb::isinstance<nb::list>(value);
  if (!list && !nb::isinstance<nb::dict>(value)) return nb::repr(value).c_str();
  const size_t count = nb::len(value);
  const bool records = list && count > 0 && nb::type_check(nb::object(value[0]).type());
  if (!records && count <= kMostItems) return nb::repr(value).c_str();
  const std::string text = std::to_string(count) + (count == 1 ? " item" : " items");
  return list ? "[" + text + "]" : "{" + text + "}";
}

bool is_property(nb::handle member) { return PyObject_TypeCheck(member.ptr(), &PyProperty_Type) != 0; }

nb::object members(nb::handle type) { return type.attr("__dict__").attr("items")(); }

nb::str describe_record(nb::handle self) {
  std::string text = std::string("<leadline.") + nb::str(self.type().attr("__name__")).c_str();
  std::string separator = ": ";
  for (const nb::handle item : members(self.type())) {
    if (!is_property(item[1])) continue;
    text += separator + nb::str(item[0]).c_str() + "=" + shown(self.attr(item[0]));
    separator = ", ";
  }
  return to_str(text + ">");
}

/// Whether a class has fields, nothing else that users would call but setters, and no __repr__ yet.
bool is_record(nb::handle type) {
  bool fields = false;
  for (const nb::handle item : members(type)) {
    const std::string name = nb::str(item[0]).c_str();
    const bool hidden = name.starts_with("_") || name.starts_with("set_");
    if (name == "__repr__" || (!hidden && !is_property(item[1]))) return false;
    fields = fields || is_property(item[1]);
  }
  return fields;
}

}  // namespace

void init_records(nb::module_& m) {
  for (const nb::handle thing : nb::object(m.attr("__dict__").attr("values")())) {
    if (nb::isinstance<nb::type_object>(thing) && nb::type_check(thing) && is_record(thing)) {
      nb::setattr(thing, "__repr__",
                  nb::cpp_function(&describe_record, nb::is_method(), nb::name("__repr__"), nb::scope(thing)));
    }
  }
}

}  // namespace leadline::python
