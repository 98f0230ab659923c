// SPDX-License-Identifier: Apache-2.0
// Reads the file of a flight recorder, which a dying process, another version or an enemy may have written.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "guard/flight_format.h"

namespace leadline::guard {

struct FlightEvent {
  int64_t clock_ns = 0;
  flight::EventKind kind = flight::EventKind::kStop;
  int number = 0;
  int64_t value = 0;
  std::string text;
};

struct FlightOp {
  bool running = false;
  int subgraph = 0;
  int node = 0;
  std::string op;
  std::string name;
};

/// What the file says. All text is printable.
struct Flight {
  flight::Header header;
  std::map<std::string, std::string> facts;
  std::vector<flight::FlightSample> samples;  // in order
  std::vector<FlightEvent> events;            // in order
  std::vector<FlightOp> ops;                  // running ones first
  std::optional<flight::Crash> crash;
  std::string crash_message;
  std::vector<std::string> crash_modules;  // one for each frame
  std::string python_stack;
  std::string cell_source;  // not of the recording, but of somebody who knows the notebook

  std::string fact(const std::string& key) const;
};

/// Nothing when the header is not that of a recording this version can read.
std::optional<Flight> read_flight(std::span<const std::byte> file);

}  // namespace leadline::guard
