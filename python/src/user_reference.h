// SPDX-License-Identifier: Apache-2.0
// Objects of the user's that the engine holds.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "leadline/error.h"
#include "module.h"

namespace leadline::python {

/// A reference to an object of the user's. Such objects often lead back to the interpreter that holds them (a function
/// knows the globals it was written in), which Python's collector cannot see: all are dropped when Python ends.
class UserReference {
 public:
  explicit UserReference(nb::object object) : object_(std::move(object)) { all().insert(this); }
  ~UserReference() {
    if (nb::is_alive()) {
      const nb::gil_scoped_acquire gil;
      all().erase(this);
      object_.reset();
    } else {
      object_.release();
    }
  }
  UserReference(const UserReference&) = delete;
  UserReference& operator=(const UserReference&) = delete;

  const nb::object& get() const {
    if (!object_.is_valid()) {
      throw Error(ErrorCode::kCancelled, "Python is ending, what it registered cannot run any more");
    }
    return object_;
  }

  static void drop_all() {
    const std::vector<UserReference*> references(all().begin(), all().end());
    std::vector<nb::object> dropped;  // destructors of the user's run when the set is not looked at any more
    for (UserReference* reference : references) {
      dropped.push_back(std::move(reference->object_));
    }
  }

 private:
  /// Guarded by the GIL; never destroyed.
  static std::set<UserReference*>& all() {
    static auto& set = *new std::set<UserReference*>;
    return set;
  }

  nb::object object_;
};

}  // namespace leadline::python
