// SPDX-License-Identifier: Apache-2.0
#include "guard/flight_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "guard/flight_format.h"
#include "guard/untrusted_file.h"
#include "leadline/guard/postmortem.h"

namespace leadline::guard {
namespace {

std::string state_folder() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state == '/') return std::string(state) + "/leadline/flights";
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return std::string(home) + "/.local/state/leadline/flights";
  return "";
}

std::string temporary_folder() {
  const char* const folder = std::getenv("TMPDIR");
  return fmt::format("{}/leadline-{}/flights", folder != nullptr && *folder == '/' ? folder : "/tmp", geteuid());
}

}  // namespace

std::string flights_folder() {
  if (const char* const wanted = std::getenv("LEADLINE_FLIGHTS"); wanted != nullptr && *wanted != '\0') return wanted;
  const std::string state = state_folder();
  // A home that cannot be written has sent recorders to the other folder.
  if (!state.empty() && (is_folder(state) || !is_folder(temporary_folder()))) return state;
  return temporary_folder();
}

namespace {

constexpr std::string_view kSuffix = ".flight";

/// Makes the folder and its parents; existing ones may be links (a home often is), the last one must be ours.
Descriptor open_folder(const std::string& folder) {
  for (size_t end = folder.find('/', 1); end != std::string::npos; end = folder.find('/', end + 1)) {
    if (mkdir(folder.substr(0, end).c_str(), 0700) != 0 && errno != EEXIST && errno != EROFS) return {};
  }
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return {};
  Descriptor descriptor(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status{};
  if (!descriptor || fstat(descriptor.get(), &status) != 0) return {};
  const bool ours = status.st_uid == geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  return ours ? std::move(descriptor) : Descriptor();
}

std::string new_name(int attempt) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}.{:03}Z-{}{}{}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, now.tv_nsec / 1000000, getpid(),
                     attempt > 0 ? fmt::format("-{}", attempt) : "", kSuffix);
}

}  // namespace

FlightFile make_flight_file(const std::string& folder) {
  FlightFile file;
  const Descriptor parent = open_folder(folder);
  if (!parent) return file;
  for (int attempt = 0; attempt < 1000 && !file.descriptor; ++attempt) {
    const std::string name = new_name(attempt);
    file.descriptor = Descriptor(
        openat(parent.get(), name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
    file.path = folder + "/" + name;
    if (!file.descriptor && errno != EEXIST) return {};
  }
  if (!file.descriptor) return {};
  // The blocks are taken now: writing to a mapped hole on a full disk would be a SIGBUS of our own making.
  if (posix_fallocate(file.descriptor.get(), 0, flight::kFileBytes) == 0 &&
      flock(file.descriptor.get(), LOCK_EX | LOCK_NB) == 0) {
    return file;
  }
  unlink(file.path.c_str());
  return {};
}

FlightFile make_flight_file_in_default_folder() {
  if (const char* const wanted = std::getenv("LEADLINE_FLIGHTS"); wanted != nullptr && *wanted != '\0') {
    return make_flight_file(wanted);
  }
  FlightFile file;
  if (const std::string folder = state_folder(); !folder.empty()) file = make_flight_file(folder);
  return file.descriptor ? std::move(file) : make_flight_file(temporary_folder());
}

std::vector<std::string> list_flights(const std::string& folder) {
  std::vector<std::string> paths;
  for (const std::string& name : list_folder(folder)) {
    if (name.ends_with(kSuffix)) paths.push_back(folder + "/" + name);  // names sort by time
  }
  return paths;
}

void prune_flights(const std::string& folder) {
  std::vector<std::string> paths = list_flights(folder);
  size_t left = paths.size();
  const time_t oldest = time(nullptr) - time_t{kMostFlightDays} * 24 * 3600;
  for (const std::string& path : paths) {
    struct stat status{};
    const Descriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!file || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (left <= kMostFlights && status.st_mtime >= oldest) continue;
    // A recorder holds this lock as long as its process lives.
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
    if (unlink(path.c_str()) == 0) --left;
  }
}

}  // namespace leadline::guard
