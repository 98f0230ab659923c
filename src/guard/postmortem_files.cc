// SPDX-License-Identifier: Apache-2.0
// From files to post-mortems, and what else the system knows.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <span>

#include "core/error.h"
#include "guard/elf_symbols.h"
#include "guard/flight_folder.h"
#include "guard/flight_recorder.h"
#include "guard/postmortem.h"
#include "guard/untrusted_file.h"
#include "io/descriptor.h"

namespace leadline::guard {

std::string read_kernel_log() {
  constexpr int kReadAll = 3;  // SYSLOG_ACTION_READ_ALL
  std::string text(size_t{1} << 20, '\0');
  const int size = klogctl(kReadAll, text.data(), static_cast<int>(text.size()));
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

namespace {

/// A recorder holds its lock as long as its process lives.
bool is_locked(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file || flock(file.get(), LOCK_SH | LOCK_NB) == 0) return false;
  return errno == EWOULDBLOCK;
}

/// The recorder's lock does not outlive exec. Processes that close everything (daemons) lose it too: only another
/// command line tells that there was an exec which nobody noted.
bool was_replaced(const Flight& flight, bool alive, bool holds_lock, const SystemPaths& paths) {
  if (holds_lock) return false;
  if (!flight.events.empty() && flight.events.back().kind == flight::EventKind::kExec) return true;
  if (!alive) return false;
  std::string command = read_start(fmt::format("{}/{}/cmdline", paths.proc, flight.header.pid), 2000).value_or("");
  std::replace(command.begin(), command.end(), '\0', ' ');
  while (command.ends_with(' ')) command.pop_back();
  return !command.empty() && !flight.fact("command").empty() && printable(command, false) != flight.fact("command");
}

void name_functions(std::vector<NativeFrame>& frames) {
  std::map<std::string, std::vector<size_t>> modules;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (frames[i].module.starts_with('/')) modules[frames[i].module].push_back(i);
  }
  for (const auto& [path, members] : modules) {
    std::vector<uint64_t> offsets;
    // Callers are where their calls return to, which may be another function already.
    for (const size_t i : members) offsets.push_back(frames[i].offset - (i > 0 ? 1 : 0));
    const std::vector<std::string> names = function_names(path, offsets);
    for (size_t k = 0; k < members.size(); ++k) frames[members[k]].symbol = names[k];
  }
}

Postmortem unreadable(const std::string& path) {
  Postmortem report;
  report.path = path;
  report.confidence = "unclear";
  report.summary = file_name(path) + " is damaged, empty, or of another version of Leadline";
  return report;
}

}  // namespace

Evidence gather_evidence(const Flight& flight, bool holds_lock, const SystemPaths& paths) {
  Evidence evidence;
  evidence.boot_id = read_boot_id(paths.proc);
  const bool same_boot = evidence.boot_id == flight.header.boot_id;
  const uint64_t here = pid_namespace(paths.proc);
  if (here == flight.header.pid_namespace || here == 0) {
    const uint64_t ticks = process_start_ticks(paths.proc, flight.header.pid);
    evidence.alive = same_boot && ticks != 0 && ticks == flight.header.start_ticks;
  } else {
    evidence.alive = same_boot && holds_lock;  // the number means nothing here
  }
  evidence.replaced = was_replaced(flight, evidence.alive, holds_lock, paths);
  if (evidence.alive || !same_boot) return evidence;
  const std::string directory = flight.fact("cgroup");
  // A path that a file names is looked at only where control groups are.
  if (directory.starts_with(paths.cgroup) && directory.find("/..") == std::string::npos) {
    evidence.group_oom_kills = oom_kills({directory, flight.fact("cgroup_version") == "2"});
  }
  if (const int64_t kills = machine_oom_kills(paths.proc); kills >= 0) evidence.machine_oom_kills = kills;
  const bool has_last_word =
      flight.crash || (!flight.events.empty() && (flight.events.back().kind == flight::EventKind::kExit ||
                                                  flight.events.back().kind == flight::EventKind::kStop));
  if (!has_last_word) evidence.kernel_log = read_kernel_log();
  return evidence;
}

void add_files(const std::string& file, const Flight& flight, Postmortem& report) {
  name_functions(report.frames);
  report.path = file;
  report.reported = flight.header.reported != 0;
  const std::string variables = file.substr(0, file.rfind('.')) + ".saved";  // as _guard/save.py names it
  if (is_regular_file(variables)) report.variables_path = variables;
}

namespace {

std::optional<Flight> read_flight_file(const std::string& file) {
  const std::optional<std::string> bytes = read_start(file, flight::kMostFileBytes);
  require(bytes.has_value(), ErrorCode::kIo, "cannot read '{}'", file);
  return read_flight(std::as_bytes(std::span(*bytes)));
}

}  // namespace

Postmortem postmortem_of(const std::string& file) {
  const std::optional<Flight> flight = read_flight_file(file);
  if (!flight) return unreadable(file);
  Postmortem report = judge(*flight, gather_evidence(*flight, is_locked(file), SystemPaths{}));
  add_files(file, *flight, report);
  return report;
}

std::vector<Postmortem> postmortems(const std::string& folder, size_t most) {
  std::vector<std::string> files = list_flights(folder.empty() ? flights_folder() : folder);
  std::reverse(files.begin(), files.end());
  std::vector<Postmortem> result;
  for (const std::string& file : files) {
    if (result.size() >= most) break;
    if (is_regular_file(file)) result.push_back(postmortem_of(file));
  }
  return result;
}

std::vector<Postmortem> previous_death(const std::string& session, const std::string& folder) {
  const std::vector<Postmortem> all = postmortems({}, kMostFlights);
  // The newest one counts: a death before a life that ended well is an old story.
  const auto newest = [&](auto matches) {
    return std::find_if(all.begin(), all.end(), [&](const Postmortem& report) {
      return report.cause != DeathCause::kRunning && !report.session.empty() && matches(report);
    });
  };
  auto found = newest([&](const Postmortem& report) { return report.session == session; });
  if (found == all.end()) found = newest([&](const Postmortem& report) { return report.folder == folder; });
  if (found == all.end() || !found->died() || found->reported) return {};
  return {*found};
}

void note_exec(const std::string& program, bool failed) {
  FlightRecorder::instance().write_event(failed ? flight::EventKind::kResume : flight::EventKind::kExec, 0, 0, program);
}

void mark_reported(const std::string& file) {
  const Descriptor target(open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status{};
  if (!target || fstat(target.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  if (static_cast<size_t>(status.st_size) < flight::kMappedBytes) return;
  const uint32_t yes = 1;
  (void)!pwrite(target.get(), &yes, sizeof yes, offsetof(flight::Header, reported));
}

}  // namespace leadline::guard
