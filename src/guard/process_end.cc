// SPDX-License-Identifier: Apache-2.0
// The post-mortem of a process whose parent saw it end: with its own recording where there is one, else with what can
// be seen from outside.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "guard/flight_folder.h"
#include "guard/flight_recorder.h"
#include "guard/postmortem.h"
#include "guard/units.h"
#include "guard/untrusted_file.h"

namespace leadline::guard {
namespace {

constexpr double kClockSlack = 2.0;  // seconds by which clocks and starts may differ

int64_t nanoseconds(double seconds) {
  constexpr double kMost = 9e9;  // what 64 bits hold: the year 2255
  return std::isfinite(seconds) ? static_cast<int64_t>(std::clamp(seconds, 0.0, kMost) * 1e9) : 0;
}

struct OwnRecording {
  std::string path;
  Flight flight;
};

/// The newest recording of that process, or, where something like `conda run` stands between, of its session.
std::optional<OwnRecording> find_recording(const ProcessEnd& end) {
  std::vector<std::string> files = list_flights(end.flights.empty() ? flights_folder() : end.flights);
  std::reverse(files.begin(), files.end());
  const uint64_t here = pid_namespace(SystemPaths{}.proc);
  for (const std::string& file : files) {
    const std::optional<std::string> bytes = read_start(file, flight::kMostFileBytes);
    std::optional<Flight> flight = bytes ? read_flight(std::as_bytes(std::span(*bytes))) : std::nullopt;
    if (!flight) continue;
    const double begun = static_cast<double>(flight->header.wall_ns) / 1e9;
    if (begun < end.started - kClockSlack || begun > end.ended + kClockSlack) continue;
    const bool same_process = flight->header.pid == end.pid && flight->header.pid_namespace == here;
    const bool same_session = !end.session.empty() && flight->fact("session") == end.session;
    if (same_process || same_session) return OwnRecording{file, std::move(*flight)};
  }
  return std::nullopt;
}

/// What a recorder would have written, as far as it can be seen from outside.
Flight recording_from_outside(const ProcessEnd& end) {
  Flight flight;
  flight.header.pid = end.pid;
  flight.header.pid_namespace = pid_namespace(SystemPaths{}.proc);
  flight.header.wall_ns = nanoseconds(end.started);
  const int64_t now = flight_clock_ns();
  const int64_t ended = now - nanoseconds(std::max(0.0, static_cast<double>(time(nullptr)) - end.ended));
  flight.header.clock_ns = std::max<int64_t>(0, ended - nanoseconds(end.ended - end.started));
  flight.header.group_oom_kills = end.before.group_oom_kills;
  flight.header.machine_oom_kills = end.before.machine_oom_kills;
  const std::string boot = read_boot_id(SystemPaths{}.proc);
  std::memcpy(flight.header.boot_id, boot.data(), std::min(boot.size(), sizeof flight.header.boot_id - 1));
  flight.facts = {{"command", end.command},
                  {"session", end.session},
                  {"folder", end.folder},
                  {"cgroup", end.before.cgroup},
                  {"cgroup_version", end.before.cgroup_v2 ? "2" : "1"}};
  for (const RecordedSample& sample : end.samples) {
    flight::FlightSample kept;
    kept.sequence = flight.samples.size() + 1;
    kept.clock_ns = std::max<int64_t>(0, ended - nanoseconds(sample.seconds_before_end));
    kept.resident = sample.resident;
    kept.used = sample.used;
    kept.capacity = sample.capacity;
    flight.samples.push_back(kept);
  }
  return flight;
}

/// The source is not known of a cell at whose start the kernel died: it said that it was busy, and no more.
void add_cell(const ProcessEnd& end, Flight& flight) {
  const auto last = std::find_if(flight.events.rbegin(), flight.events.rend(), [](const auto& event) {
    return event.kind == flight::EventKind::kCellBegin || event.kind == flight::EventKind::kCellEnd;
  });
  const bool recorded = last != flight.events.rend();
  if (end.cell_source.empty()) {
    if (!end.cell_running) return;
    if (recorded && last->kind == flight::EventKind::kCellBegin) return;  // the recording knows more
  } else {
    flight.cell_source = end.cell_source;
    if (recorded && !end.cell_running) return;
  }
  std::string first;
  for_each_line(end.cell_source, [&](std::string_view line) {
    if (first.empty() && line.find_first_not_of(" \t\r") != std::string_view::npos) first = line.substr(0, 200);
  });
  // The front end knows the number that is shown beside the cell. Before the last word, which is the end's.
  const auto place = flight.events.empty() || flight.events.back().kind < flight::EventKind::kStop
                         ? flight.events.end()
                         : flight.events.end() - 1;
  const auto kind = end.cell_running ? flight::EventKind::kCellBegin : flight::EventKind::kCellEnd;
  flight.events.insert(
      place, {place == flight.events.end() ? flight.header.clock_ns : place->clock_ns, kind, end.cell, 0, first});
}

}  // namespace

Postmortem postmortem_of_end(const ProcessEnd& end) {
  std::optional<OwnRecording> own = find_recording(end);
  Flight flight = own ? std::move(own->flight) : recording_from_outside(end);
  Evidence evidence;
  evidence.boot_id = flight.header.boot_id;
  evidence.exit_status = end.exit_status;
  evidence.replaced = !flight.events.empty() && flight.events.back().kind == flight::EventKind::kExec;
  evidence.group_oom_kills = oom_kills({end.before.cgroup, end.before.cgroup_v2});
  if (end.before.group_oom_kills >= 0) evidence.group_oom_kills_before = end.before.group_oom_kills;
  if (const int64_t kills = machine_oom_kills(SystemPaths{}.proc); kills >= 0) evidence.machine_oom_kills = kills;
  if (end.before.machine_oom_kills >= 0) evidence.machine_oom_kills_before = end.before.machine_oom_kills;
  evidence.kernel_log = read_kernel_log();
  add_cell(end, flight);
  Postmortem report = judge(flight, evidence);
  report.peak_resident = std::max(report.peak_resident, end.before.peak_resident);
  if (own) add_files(own->path, flight, report);
  return report;
}

}  // namespace leadline::guard
