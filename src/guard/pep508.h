// SPDX-License-Identifier: Apache-2.0
// Lines of Requires-Dist (PEP 508): name, extras, range, and the marker that says when they count.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "guard/pep440.h"

namespace leadline::guard {

/// Values of marker variables: "python_version" -> "3.11", "extra" -> "and-cuda", ... What is absent is "".
using MarkerValues = std::map<std::string, std::string, std::less<>>;

struct Requirement {
  std::string name;   ///< normalized
  std::string range;  ///< as written: ">=3.11.0,<3.15"
  Specifiers specifiers;
  std::string marker;

  /// Nothing for a line that is not a requirement, or one by URL.
  static std::optional<Requirement> parse(std::string_view line);
};

/// Whether the requirement counts. A marker that cannot be read is false: better silent than a wrong alarm.
bool marker_holds(std::string_view marker, const MarkerValues& values);

}  // namespace leadline::guard
