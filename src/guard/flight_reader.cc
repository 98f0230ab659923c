// SPDX-License-Identifier: Apache-2.0
#include "guard/flight_reader.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "guard/untrusted_file.h"
#include "leadline/types.h"

namespace leadline::guard {
namespace {

constexpr size_t kMostStackBytes = 64 * 1024;
constexpr size_t kMostFacts = 200;

/// The record at a place that the format fixes; nothing when it is not there whole or was never finished.
template <typename Record>
std::optional<Record> read_record(std::span<const std::byte> file, size_t offset) {
  if (offset > file.size() || sizeof(Record) > file.size() - offset) return std::nullopt;
  Record record;
  std::memcpy(static_cast<void*>(&record), file.data() + offset, sizeof(Record));
  if (record.checksum != flight::checksum_of(record)) return std::nullopt;
  return record;
}

/// Times and sizes that a real recording can have; sums and differences of them stay in range.
template <typename... Numbers>
bool plausible(Numbers... numbers) {
  constexpr int64_t kMost = int64_t{1} << 60;
  return ((numbers >= 0 && numbers <= kMost) && ...);
}

template <size_t N>
std::string bounded(const char (&text)[N], size_t size) {
  return printable(std::string_view(text, std::min(size, N)));
}

template <size_t N>
std::string up_to_zero(const char (&text)[N]) {
  return printable(std::string_view(text, strnlen(text, N)));
}

void read_facts(std::span<const std::byte> file, Flight& flight) {
  std::optional<flight::Facts> newest;
  for (size_t i = 0; i < 2; ++i) {
    const auto facts = read_record<flight::Facts>(file, flight::kFactsAt + i * sizeof(flight::Facts));
    if (facts && (!newest || facts->sequence > newest->sequence)) newest = facts;
  }
  if (!newest) return;
  const std::string_view text(newest->text, std::min<size_t>(newest->size, sizeof newest->text));
  for_each_line(text, [&](std::string_view line) {
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos || flight.facts.size() >= kMostFacts) return;
    flight.facts[printable(line.substr(0, equals))] = printable(line.substr(equals + 1));
  });
}

void read_samples(std::span<const std::byte> file, Flight& flight) {
  for (size_t i = 0; i < flight::kSamples; ++i) {
    const auto sample = read_record<flight::FlightSample>(file, flight::kSamplesAt + i * sizeof(flight::FlightSample));
    if (!sample || sample->sequence == 0 || sample->sequence % flight::kSamples != i) continue;
    if (!plausible(sample->clock_ns, sample->resident, sample->used, sample->capacity, sample->available)) continue;
    flight.samples.push_back(*sample);
  }
  std::sort(flight.samples.begin(), flight.samples.end(),
            [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
}

void read_events(std::span<const std::byte> file, Flight& flight) {
  std::vector<flight::Event> events;
  for (size_t i = 0; i < flight::kEvents; ++i) {
    const auto event = read_record<flight::Event>(file, flight::kEventsAt + i * sizeof(flight::Event));
    if (!event || event->sequence == 0 || event->sequence % flight::kEvents != i) continue;
    if (plausible(event->clock_ns)) events.push_back(*event);
  }
  std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
  for (const flight::Event& event : events) {
    flight.events.push_back({event.clock_ns, event.kind, event.number, event.value, bounded(event.text, event.size)});
  }
}

/// These have no checksum: a node is noted too often for that.
void read_ops(std::span<const std::byte> file, Flight& flight) {
  for (size_t i = 0; i < kRunningOps; ++i) {
    const size_t offset = flight::kOpsAt + i * sizeof(RunningOp);
    if (offset + sizeof(RunningOp) > file.size()) return;
    RunningOp op;
    std::memcpy(static_cast<void*>(&op), file.data() + offset, sizeof op);
    if (op.op[0] == '\0') continue;
    flight.ops.push_back({op.running == 1, op.subgraph, op.node, up_to_zero(op.op), up_to_zero(op.name)});
  }
  std::stable_sort(flight.ops.begin(), flight.ops.end(),
                   [](const FlightOp& a, const FlightOp& b) { return a.running > b.running; });
}

void read_crash(std::span<const std::byte> file, Flight& flight) {
  std::optional<flight::Crash> crash = read_record<flight::Crash>(file, flight::kCrashAt);
  if (!crash || crash->signal <= 0 || !plausible(crash->clock_ns)) return;
  crash->frame_count = std::min<uint32_t>(crash->frame_count, flight::kFrames);
  crash->instruction_size = std::min<uint32_t>(crash->instruction_size, sizeof crash->instruction);
  crash->thread_name[sizeof crash->thread_name - 1] = '\0';
  flight.crash_message = bounded(crash->message, crash->message_size);
  for (size_t i = 0; i < crash->frame_count; ++i) flight.crash_modules.push_back(up_to_zero(crash->frames[i].module));
  flight.crash = *crash;
}

/// Of the crash; without one, what the watch noted last.
void read_python_stack(std::span<const std::byte> file, Flight& flight) {
  if (file.size() <= flight::kPythonStackAt) return;
  const auto* const stack = reinterpret_cast<const char*>(file.data() + flight::kPythonStackAt);
  const size_t size = strnlen(stack, std::min(file.size() - flight::kPythonStackAt, kMostStackBytes));
  flight.python_stack = printable(std::string_view(stack, size), true);
}

}  // namespace

std::string Flight::fact(const std::string& key) const {
  const auto found = facts.find(key);
  return found == facts.end() ? "" : found->second;
}

std::optional<Flight> read_flight(std::span<const std::byte> file) {
  const auto header = read_record<flight::Header>(file, flight::kHeaderAt);
  if (!header || header->magic != flight::kMagic || header->version != flight::kVersion) return std::nullopt;
  if (!plausible(header->clock_ns)) return std::nullopt;
  Flight flight;
  flight.header = *header;
  flight.header.boot_id[sizeof flight.header.boot_id - 1] = '\0';
  read_facts(file, flight);
  read_samples(file, flight);
  read_events(file, flight);
  read_ops(file, flight);
  read_crash(file, flight);
  read_python_stack(file, flight);
  return flight;
}

}  // namespace leadline::guard
