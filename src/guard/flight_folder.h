// SPDX-License-Identifier: Apache-2.0
// The folder where flight recorders keep their files: private to its user, bounded in number and age.
#pragma once

#include <string>
#include <vector>

#include "io/descriptor.h"

namespace leadline::guard {

inline constexpr size_t kMostFlights = 40;
inline constexpr int kMostFlightDays = 14;

struct FlightFile {
  Descriptor descriptor;
  std::string path;
};

/// Makes an empty file of the size of a recording. It and its folder belong to the caller alone: links and folders of
/// others are refused. A descriptor that is none when it cannot be made.
FlightFile make_flight_file(const std::string& folder);

/// The first of the usual folders (see flights_folder()) that can be used.
FlightFile make_flight_file_in_default_folder();

/// The files in the folder, oldest first.
std::vector<std::string> list_flights(const std::string& folder);

/// Removes the oldest files that are not written any more, down to the bounds.
void prune_flights(const std::string& folder);

}  // namespace leadline::guard
