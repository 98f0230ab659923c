// SPDX-License-Identifier: Apache-2.0
// A callable of any type with little code for each type. std::function, and a class with a virtual function for each
// callable, also keep what names, copies and compares the type: for the kernels, of which there are more than a
// thousand, that was a sixth of what compiling ops takes.
#pragma once

#include <utility>

namespace leadline {

/// Owns a callable void(Arguments...), or is empty. Calls of one object are not made at the same time unless the
/// callable allows it.
template <typename... Arguments>
class StoredFunction {
 public:
  StoredFunction() = default;
  template <typename F>
  StoredFunction(F function)
      : function_(new F(std::move(function))),
        call_([](void* f, Arguments... arguments) { (*static_cast<F*>(f))(arguments...); }),
        destroy_([](void* f) { delete static_cast<F*>(f); }) {}
  StoredFunction(StoredFunction&& other) noexcept
      : function_(std::exchange(other.function_, nullptr)), call_(other.call_), destroy_(other.destroy_) {}
  StoredFunction& operator=(StoredFunction&& other) noexcept {
    std::swap(function_, other.function_);
    std::swap(call_, other.call_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  ~StoredFunction() {
    if (function_ != nullptr) destroy_(function_);
  }

  explicit operator bool() const { return function_ != nullptr; }
  void operator()(Arguments... arguments) const { call_(function_, arguments...); }

 private:
  void* function_ = nullptr;
  void (*call_)(void*, Arguments...) = nullptr;
  void (*destroy_)(void*) = nullptr;
};

}  // namespace leadline
