// SPDX-License-Identifier: Apache-2.0
// The file of a flight recorder: parts of fixed size at fixed places, so that a reader follows no offset of the file's.
// Each record has a checksum of its own; one that does not match was being written when the process died, or is not
// ours, and counts as absent. Numbers are in the machine's byte order: a file is read where it was written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/running_op.h"

namespace leadline::guard::flight {

inline constexpr uint64_t kMagic = 0x4C31544847494C46;  // "FLIGHT1L"
inline constexpr uint32_t kVersion = 1;
inline constexpr size_t kSamples = 1024;
inline constexpr size_t kEvents = 256;
inline constexpr size_t kFrames = 48;
inline constexpr size_t kFactsBytes = 8192;

enum class EventKind : uint32_t {
  kCellBegin = 1,  // number, first line
  kCellEnd = 2,    // number; value: peak of resident bytes
  kAlarm = 3,      // near the limit; text: which
  kRaised = 4,     // MemoryError was raised in the running cell
  kStop = 5,       // the watch ended, the process went on
  kExit = 6,       // the process is about to end by itself; text: the exception that it ends with
  kResume = 7,     // a watch began again
  kSaved = 8,      // variables were saved, for death was near; text: the file
  kExec = 9,       // the process is about to become another program; text: which
};

struct Header {
  uint64_t checksum = 0;  // of the rest, up to `reported`
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  int32_t pid = 0;
  uint64_t start_ticks = 0;     // field 22 of /proc/PID/stat
  int64_t wall_ns = 0;          // CLOCK_REALTIME when the recorder was made
  int64_t clock_ns = 0;         // CLOCK_BOOTTIME then: all other times are of that clock
  uint64_t pid_namespace = 0;   // inode
  int64_t group_oom_kills = 0;  // counters of that moment; -1: not known
  int64_t machine_oom_kills = 0;
  char boot_id[40] = {};
  uint32_t reported = 0;  // this death was reported; not in the checksum
  uint32_t reserved = 0;
};

/// Lines "key=value"; two of them are written in turn.
struct Facts {
  uint64_t checksum = 0;
  uint64_t sequence = 0;
  uint32_t size = 0;
  uint32_t reserved = 0;
  char text[kFactsBytes - 24] = {};
};

struct FlightSample {
  uint64_t checksum = 0;
  uint64_t sequence = 0;  // 1, 2, ...; 0: empty
  int64_t clock_ns = 0;
  int64_t resident = 0;
  int64_t used = 0;
  int64_t capacity = 0;
  int64_t available = 0;
  int64_t swap_free = 0;
};

struct Event {
  uint64_t checksum = 0;
  uint64_t sequence = 0;
  int64_t clock_ns = 0;
  EventKind kind = EventKind::kStop;
  int32_t number = 0;
  int64_t value = 0;
  uint32_t size = 0;
  char text[212] = {};
};

struct Frame {
  uint64_t address = 0;
  uint64_t offset = 0;       // in the module's file
  uint32_t interrupted = 0;  // a signal came here
  char module[172] = {};     // the end of a longer path
};

struct Crash {
  uint64_t checksum = 0;
  int64_t clock_ns = 0;
  int32_t signal = 0;  // 0: empty
  int32_t code = 0;
  uint64_t fault_address = 0;
  int32_t thread = 0;
  int32_t sender = 0;  // pid of a signal that a process sent
  uint32_t stack_overflow = 0;
  uint32_t instruction_size = 0;
  unsigned char instruction[16] = {};
  char thread_name[16] = {};
  uint32_t message_size = 0;
  uint32_t frame_count = 0;
  char message[1000] = {};
  Frame frames[kFrames] = {};
};

// The parts, in order. Python's stack is the last: its writer does not know a bound.
inline constexpr size_t kHeaderAt = 0;
inline constexpr size_t kFactsAt = 4096;
inline constexpr size_t kOpsAt = kFactsAt + 2 * kFactsBytes;
inline constexpr size_t kCrashAt = kOpsAt + 4096;
inline constexpr size_t kSamplesAt = kCrashAt + 16384;
inline constexpr size_t kEventsAt = kSamplesAt + kSamples * sizeof(FlightSample);
inline constexpr size_t kPythonStackAt = kEventsAt + kEvents * sizeof(Event);
inline constexpr size_t kMappedBytes = kPythonStackAt;
inline constexpr size_t kFileBytes = 256 * 1024;
inline constexpr size_t kMostFileBytes = 4 * 1024 * 1024;  // a larger file is not ours

static_assert(sizeof(Header) <= 4096 && sizeof(Facts) == kFactsBytes && sizeof(FlightSample) == 64 &&
              sizeof(Event) == 256);
static_assert(kRunningOps * sizeof(RunningOp) <= 4096 && sizeof(Crash) <= 16384 && kMappedBytes < kFileBytes);

/// FNV-1a over a record behind its checksum. Async-signal-safe.
inline uint64_t checksum_of(const void* record, size_t bytes) {
  const auto* data = static_cast<const unsigned char*>(record);
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (size_t i = sizeof(uint64_t); i < bytes; ++i) hash = (hash ^ data[i]) * 0x100000001b3ULL;
  return hash;
}
template <typename Record>
uint64_t checksum_of(const Record& record) {
  return checksum_of(&record, sizeof(Record));
}
inline uint64_t checksum_of(const Header& header) { return checksum_of(&header, offsetof(Header, reported)); }

}  // namespace leadline::guard::flight
