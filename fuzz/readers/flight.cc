// SPDX-License-Identifier: Apache-2.0
// Recordings of processes that are gone, and what is told of them.
#include <signal.h>

#include <algorithm>
#include <cstring>

#include "guard/flight_reader.h"
#include "guard/postmortem.h"
#include "readers/readers.h"

namespace leadline::fuzz {
namespace {

namespace flight = guard::flight;

/// A seed leaves out the zeros: small inputs are mutated better. Each part begins with its place.
constexpr size_t kPart = 4;  // bytes of a place

std::string expand(Bytes bytes) {
  std::string file(flight::kFileBytes, '\0');
  std::string_view left = as_text(bytes);
  while (left.size() > 2 * kPart) {
    uint32_t place = 0;
    uint32_t size = 0;
    std::memcpy(&place, left.data(), kPart);
    std::memcpy(&size, left.data() + kPart, kPart);
    left.remove_prefix(2 * kPart);
    const std::string_view part = left.substr(0, size);
    left.remove_prefix(part.size());
    if (place > file.size() || part.size() > file.size() - place) continue;
    file.replace(place, part.size(), part);
  }
  return file;
}

template <typename Record>
void sign(std::string& file, size_t offset) {
  Record record;
  std::memcpy(static_cast<void*>(&record), file.data() + offset, sizeof record);
  record.checksum = flight::checksum_of(record);
  std::memcpy(file.data() + offset, &record.checksum, sizeof record.checksum);
}

void sign_all(std::string& file) {
  sign<flight::Header>(file, flight::kHeaderAt);
  for (size_t i = 0; i < 2; ++i) sign<flight::Facts>(file, flight::kFactsAt + i * sizeof(flight::Facts));
  sign<flight::Crash>(file, flight::kCrashAt);
  for (size_t i = 0; i < 32; ++i) {
    sign<flight::FlightSample>(file, flight::kSamplesAt + i * sizeof(flight::FlightSample));
    sign<flight::Event>(file, flight::kEventsAt + i * sizeof(flight::Event));
  }
}

void tell(const std::string& file) {
  const auto read = guard::read_flight(as_bytes(file));
  if (!read) return;
  for (const bool alive : {false, true}) {
    guard::Evidence evidence;
    evidence.alive = alive;
    evidence.boot_id = "boot";
    evidence.group_oom_kills = 1;
    evidence.kernel_log = "Out of memory: Killed process 77 (python3) total-vm:1kB";
    guard::Postmortem report = guard::judge(*read, evidence);
    guard::explain(report, *read);
    use(report.to_text());
  }
}

void run(Bytes bytes) {
  std::string file = expand(bytes);
  tell(file.substr(0, bytes.size() * 100));
  sign_all(file);
  tell(file);
}

template <typename Record>
void add(std::string& out, size_t place, const Record& record, size_t bytes = sizeof(Record)) {
  const auto at = static_cast<uint32_t>(place);
  const auto size = static_cast<uint32_t>(bytes);
  out.append(reinterpret_cast<const char*>(&at), kPart);
  out.append(reinterpret_cast<const char*>(&size), kPart);
  out.append(reinterpret_cast<const char*>(&record), bytes);
}

std::string recording(int signal, flight::EventKind last) {
  std::string out;
  flight::Header header;
  header.pid = 77;
  header.clock_ns = 1'000'000'000;
  header.wall_ns = header.clock_ns;
  std::strcpy(header.boot_id, "boot");
  header.checksum = flight::checksum_of(header);
  add(out, flight::kHeaderAt, header);
  flight::Facts facts;
  facts.sequence = 1;
  std::strcpy(facts.text, "command=python3 x.py\nsession=a\nfolder=/tmp\nlimit=1000000\n");
  facts.size = static_cast<uint32_t>(std::strlen(facts.text));
  add(out, flight::kFactsAt, facts, 24 + facts.size);
  for (uint64_t i = 1; i < 4; ++i) {
    flight::FlightSample sample;
    sample.sequence = i;
    sample.clock_ns = header.clock_ns + static_cast<int64_t>(i) * 1'000'000'000;
    sample.resident = sample.used = 1 << 30;
    sample.capacity = 1 << 30;
    add(out, flight::kSamplesAt + i * sizeof sample, sample);
    flight::Event event;
    event.sequence = i;
    event.clock_ns = sample.clock_ns;
    event.kind = i == 3 ? last : flight::EventKind::kCellBegin;
    event.number = static_cast<int32_t>(i);
    event.size = 5;
    std::strcpy(event.text, "x = 1");
    add(out, flight::kEventsAt + i * sizeof event, event, 64);
  }
  RunningOp op;
  std::memset(static_cast<void*>(&op), 0, sizeof op);
  op.running = 1;
  op.node = 3;
  std::strcpy(op.op, "CONV_2D");
  std::strcpy(op.name, "block");
  add(out, flight::kOpsAt, op);
  if (signal == 0) return out;
  flight::Crash crash;
  crash.clock_ns = 5'000'000'000;
  crash.signal = signal;
  crash.instruction_size = 6;
  std::memcpy(crash.instruction, "\x62\xf1\x7c\x48\x58\xc1", 6);
  crash.message_size = 9;
  std::strcpy(crash.message, "terminate");
  crash.frame_count = 2;
  std::strcpy(crash.frames[0].module, "/usr/lib/libc.so.6");
  std::strcpy(crash.frames[1].module, "/usr/lib/libfoo.so");
  add(out, flight::kCrashAt, crash, offsetof(flight::Crash, frames) + 2 * sizeof(flight::Frame));
  const char stack[] = "Current thread 0x1 (most recent call first):\n  File \"x.py\", line 1 in <module>\n";
  add(out, flight::kPythonStackAt, stack, sizeof stack);
  return out;
}

std::vector<std::string> seeds() {
  return {recording(0, flight::EventKind::kAlarm), recording(0, flight::EventKind::kExit),
          recording(SIGSEGV, flight::EventKind::kCellEnd), recording(SIGILL, flight::EventKind::kRaised),
          recording(SIGABRT, flight::EventKind::kStop)};
}

std::vector<std::string> words() {
  return {"command=", "session=", "folder=", "\n", "libc.so", "boot", "\x1b[31m", "<script>", std::string(8, '\xFF')};
}

}  // namespace

Reader flight_reader() { return {.name = "flight", .run = run, .seeds = seeds, .words = words, .most_bytes = 16384}; }

}  // namespace leadline::fuzz
