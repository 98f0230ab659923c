// SPDX-License-Identifier: Apache-2.0
#include "guard/flight_recorder.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/cgroup.h"
#include "guard/untrusted_file.h"
#include "io/mapping_watch.h"

namespace leadline::guard {
namespace {

constexpr int64_t kBetweenSamples = 250'000'000;  // ns: a thousand samples are then at least four minutes

/// `text` without what a line cannot hold.
std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

template <size_t N>
uint32_t put_text(char (&to)[N], std::string_view text) {
  const size_t size = std::min(text.size(), N);
  std::memcpy(to, text.data(), size);
  return static_cast<uint32_t>(size);
}

/// A reader must not take a half-written record for a whole one: the checksum, which cannot match meanwhile, is last.
template <typename Record>
void publish(Record* place, const Record& record) {
  *place = record;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  place->checksum = flight::checksum_of(record);
}

}  // namespace

int64_t flight_clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

uint64_t process_start_ticks(const std::string& proc, int pid) {
  const std::string text = read_start(proc + "/" + std::to_string(pid) + "/stat", 4096).value_or("");
  const size_t name_end = text.rfind(')');  // a name may have spaces and parentheses
  if (name_end == std::string::npos) return 0;
  const char* rest = text.c_str() + name_end + 1;
  while (*rest == ' ') ++rest;
  if (*rest == 'Z' || *rest == 'X') return 0;
  for (int field = 3; field < 22 && *rest != '\0'; ++field) {
    while (*rest != '\0' && *rest != ' ') ++rest;
    while (*rest == ' ') ++rest;
  }
  return std::strtoull(rest, nullptr, 10);
}

std::string read_boot_id(const std::string& proc) {
  std::string text = read_start(proc + "/sys/kernel/random/boot_id", 64).value_or("");
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

uint64_t pid_namespace(const std::string& proc) {
  struct stat status{};
  return stat((proc + "/self/ns/pid").c_str(), &status) == 0 ? static_cast<uint64_t>(status.st_ino) : 0;
}

int64_t machine_oom_kills(const std::string& proc) {
  return find_number(read_start(proc + "/vmstat", size_t{256} << 10).value_or(""), "oom_kill").value_or(-1);
}

FlightRecorder& FlightRecorder::instance() {
  static auto* const recorder = new FlightRecorder;  // never destroyed: handlers may run to the very end
  return *recorder;
}

bool FlightRecorder::open(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  return active() || make_file(folder);
}

bool FlightRecorder::make_file(const std::string& folder) {
  FlightFile file = folder.empty() ? make_flight_file_in_default_folder() : make_flight_file(folder);
  if (!file.descriptor) return false;
  void* const mapping =
      mmap(nullptr, flight::kMappedBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor.get(), 0);
  if (mapping == MAP_FAILED) {
    unlink(file.path.c_str());
    return false;
  }
  // A child of fork shares the mapping, but what happens there is not this process's story.
  static const int registered = pthread_atfork(nullptr, nullptr, &FlightRecorder::leave_in_child);
  (void)registered;
  // Whoever cuts the file off must not end this process; what is written from then on is lost.
  mapping_watch_ = new MappingWatch(mapping, flight::kMappedBytes, true);
  file_ = std::move(file);
  facts_ = samples_ = events_ = 0;
  write_header(static_cast<std::byte*>(mapping));
  mapping_.store(static_cast<std::byte*>(mapping), std::memory_order_release);
  prune_flights(file_.path.substr(0, file_.path.rfind('/')));
  return true;
}

void FlightRecorder::write_header(std::byte* mapping) {
  const SystemPaths paths;
  flight::Header header;
  header.pid = getpid();
  header.start_ticks = process_start_ticks(paths.proc, getpid());
  header.clock_ns = flight_clock_ns();
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  header.wall_ns = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  header.pid_namespace = pid_namespace(paths.proc);
  const std::vector<MemoryGroup> groups = memory_groups(paths);
  header.group_oom_kills = groups.empty() ? -1 : oom_kills(groups.back()).value_or(-1);
  header.machine_oom_kills = machine_oom_kills(paths.proc);
  const std::string boot = read_boot_id(paths.proc);
  std::memcpy(header.boot_id, boot.data(), std::min(boot.size(), sizeof header.boot_id - 1));
  publish(reinterpret_cast<flight::Header*>(mapping + flight::kHeaderAt), header);
}

void FlightRecorder::leave_in_child() {
  FlightRecorder& self = instance();
  if (!self.active()) return;
  self.mapping_.store(nullptr, std::memory_order_release);
  running_ops.store(nullptr, std::memory_order_release);
  self.file_.descriptor.close();
}

void FlightRecorder::follow_ops(bool follow) {
  std::byte* const mapping = mapping_.load(std::memory_order_acquire);
  RunningOp* const table = mapping == nullptr ? nullptr : reinterpret_cast<RunningOp*>(mapping + flight::kOpsAt);
  running_ops.store(follow ? table : nullptr, std::memory_order_release);
}

template <typename Record>
Record* FlightRecorder::record(size_t offset, size_t index) const {
  std::byte* const mapping = mapping_.load(std::memory_order_acquire);
  return mapping == nullptr ? nullptr : reinterpret_cast<Record*>(mapping + offset) + index;
}

void FlightRecorder::write_facts(const FactList& facts) {
  auto* const place = record<flight::Facts>(flight::kFactsAt, 0);
  if (place == nullptr) return;
  std::string text;
  for (const auto& [key, value] : facts) text += one_line(key) + "=" + one_line(value) + "\n";
  const std::lock_guard lock(mutex_);
  flight::Facts next;
  next.sequence = ++facts_;
  next.size = put_text(next.text, text);
  publish(place + facts_ % 2, next);
}

void FlightRecorder::write_sample(const MemorySample& sample) {
  auto* const place = record<flight::FlightSample>(flight::kSamplesAt, 0);
  if (place == nullptr) return;
  flight::FlightSample next;
  next.clock_ns = flight_clock_ns();
  next.resident = sample.resident;
  next.used = sample.used();
  next.capacity = sample.capacity;
  next.available = sample.available;
  next.swap_free = sample.swap_free;
  const std::lock_guard lock(mutex_);
  // The newest one is overwritten until it is old enough, or different enough, to be kept.
  const int64_t change = std::max(std::abs(next.resident - last_kept_.resident), std::abs(next.used - last_kept_.used));
  if (samples_ == 0 || next.clock_ns - last_kept_.clock_ns >= kBetweenSamples || change > next.capacity / 50) {
    ++samples_;
    last_kept_ = next;
  }
  next.sequence = samples_;
  publish(place + samples_ % flight::kSamples, next);
}

void FlightRecorder::write_event(flight::EventKind kind, int number, int64_t value, std::string_view text) {
  auto* const place = record<flight::Event>(flight::kEventsAt, 0);
  if (place == nullptr) return;
  flight::Event next;
  next.clock_ns = flight_clock_ns();
  next.kind = kind;
  next.number = number;
  next.value = value;
  next.size = put_text(next.text, one_line(text));
  const std::lock_guard lock(mutex_);
  next.sequence = ++events_;
  publish(place + events_ % flight::kEvents, next);
}

flight::Crash* FlightRecorder::crash() { return record<flight::Crash>(flight::kCrashAt, 0); }

void FlightRecorder::finish_crash(flight::Crash& crash) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  crash.checksum = flight::checksum_of(crash);
}

void FlightRecorder::seek_python_stack() const {
  if (active()) lseek(file_.descriptor.get(), flight::kPythonStackAt, SEEK_SET);
}

}  // namespace leadline::guard
