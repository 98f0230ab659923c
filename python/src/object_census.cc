// SPDX-License-Identifier: Apache-2.0
// How many objects of each type there are: what the garbage collector knows, and what these refer to. numpy's arrays,
// strings and numbers are not in the collector's own list.
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "module.h"

namespace leadline::python {
namespace {

/// Pointers in memory of its own: blocks of this size would change what malloc does with the program's.
class Pointers {
 public:
  Pointers() = default;
  ~Pointers() {
    if (data_ != nullptr) munmap(data_, capacity_ * sizeof *data_);
  }
  Pointers(const Pointers&) = delete;
  Pointers& operator=(const Pointers&) = delete;

  /// False: out of memory.
  bool add(PyObject* object) {
    if (size_ == capacity_ && !grow()) return false;
    data_[size_++] = object;
    return true;
  }
  void make_unique() {
    std::sort(begin(), end());
    size_ = static_cast<size_t>(std::unique(begin(), end()) - begin());
  }
  PyObject** begin() { return data_; }
  PyObject** end() { return data_ + size_; }

 private:
  bool grow() {
    const size_t wanted = std::max<size_t>(capacity_ * 2, 1 << 16);
    void* memory = data_ == nullptr ? mmap(nullptr, wanted * sizeof *data_, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                    : mremap(data_, capacity_ * sizeof *data_, wanted * sizeof *data_, MREMAP_MAYMOVE);
    if (memory == MAP_FAILED) return false;
    data_ = static_cast<PyObject**>(memory);
    capacity_ = wanted;
    return true;
  }

  PyObject** data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

/// Whether the garbage collector knows objects of its type, and this one (a type may make exceptions).
bool is_collected(PyObject* object) {
  if ((PyType_GetFlags(Py_TYPE(object)) & Py_TPFLAGS_HAVE_GC) == 0) return false;
  const auto ask = reinterpret_cast<inquiry>(PyType_GetSlot(Py_TYPE(object), Py_tp_is_gc));
  return ask == nullptr || ask(object) != 0;
}

bool is_tracked(PyObject* object) { return is_collected(object) && PyObject_GC_IsTracked(object) != 0; }

int visit(PyObject* object, void* found) {
  if (object == nullptr || is_tracked(object)) return 0;
  return static_cast<Pointers*>(found)->add(object) ? 0 : 1;
}

void visit_referents(PyObject* object, Pointers& found) {
  if (!is_collected(object)) return;
  const auto traverse = reinterpret_cast<traverseproc>(PyType_GetSlot(Py_TYPE(object), Py_tp_traverse));
  if (traverse != nullptr) traverse(object, &visit, &found);
}

std::string name_of(PyTypeObject* type) {
  const nb::handle handle(reinterpret_cast<PyObject*>(type));
  const auto text = [&](const char* attribute) -> std::string {
    const nb::object value = nb::getattr(handle, attribute, nb::none());
    return nb::isinstance<nb::str>(value) ? std::string(nb::str(value).c_str()) : std::string();
  };
  const std::string module = text("__module__");
  const std::string name = text("__qualname__");
  return module.empty() || module == "builtins" ? name : module + "." + name;
}

BytesByName count_objects() {
  std::unordered_map<PyTypeObject*, int64_t> counts;
  Pointers others;
  {
    const nb::object all = nb::module_::import_("gc").attr("get_objects")();
    for (const nb::handle object : nb::borrow<nb::list>(all)) {
      ++counts[Py_TYPE(object.ptr())];
      visit_referents(object.ptr(), others);
    }
  }
  others.make_unique();
  // Tuples and dicts of plain values are not tracked; what they hold is found through them, to a small depth.
  constexpr int kDepth = 3;
  for (int depth = 0; depth < kDepth; ++depth) {
    Pointers inner;
    for (PyObject* object : others) visit_referents(object, inner);
    const auto before = others.end() - others.begin();
    for (PyObject* object : inner) {
      if (!others.add(object)) break;
    }
    others.make_unique();
    if (others.end() - others.begin() == before) break;
  }
  for (PyObject* object : others) ++counts[Py_TYPE(object)];

  nb::dict result;
  for (const auto& [type, count] : counts) {
    const std::string name = name_of(type);
    const nb::object key = to_str(name);
    const int64_t before = result.contains(key) ? nb::cast<int64_t>(result[key]) : 0;
    result[key] = before + count;
  }
  return result;
}

}  // namespace

void init_object_census(nb::module_& m) {
  m.def("count_objects", &count_objects, "How many objects of each type there are, by 'module.name' of the type.");
}

}  // namespace leadline::python
