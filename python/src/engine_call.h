// SPDX-License-Identifier: Apache-2.0
// What surrounds every call of the engine that may take long.
#pragma once

#include <optional>
#include <string>

#include "leadline/work_limit.h"
#include "module.h"

namespace leadline::python {

/// Releases the GIL, or all of Python would wait for a run; lets signals end the work where Python handles them, and
/// applies the thread's time limits.
class EngineCall {
 public:
  EngineCall();
  void ask() const { limit_->ask(); }

 private:
  nb::gil_scoped_release released_;
  std::optional<WorkLimit> limit_;
};
using InEngine = nb::call_guard<EngineCall>;

/// The text that `make` returns, which may take long: a report of a large model.
template <typename Make>
nb::str text_in_engine(const Make& make) {
  std::string text;
  {
    const EngineCall call;
    text = make();
  }
  return to_str(text);
}

/// time_limit() and check_limits().
void init_time_limit(nb::module_& m);

}  // namespace leadline::python
