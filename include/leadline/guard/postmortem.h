// SPDX-License-Identifier: Apache-2.0
// Why a watched process (see watch.h) died, from what its flight recorder and the system still know.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace leadline::guard {

enum class DeathCause {
  kRunning,             ///< it is alive
  kExit,                ///< it ended by itself
  kUnwatched,           ///< the watch was stopped before the end
  kOutOfMemory,         ///< the OOM killer chose it
  kKilled,              ///< it was killed, or ended itself without a word (_exit), while there was memory
  kSegfault,            ///< SIGSEGV
  kStackOverflow,       ///< SIGSEGV at the end of a stack
  kAbort,               ///< SIGABRT
  kBusError,            ///< SIGBUS
  kArithmetic,          ///< SIGFPE
  kIllegalInstruction,  ///< SIGILL
  kSignal,              ///< another signal asked it to end
  kReboot,              ///< the machine was restarted
  kUnknown,             ///< the file is damaged or of another version
};

/// "running", "exit", "unwatched", "out of memory", "killed", "segmentation fault", "stack overflow", "abort",
/// "bus error", "arithmetic error", "illegal instruction", "signal", "reboot", "unknown".
const char* death_cause_name(DeathCause cause) noexcept;

struct NativeFrame {
  std::string module;   ///< path of the library or program; empty: in no file
  uint64_t offset = 0;  ///< in that file
  std::string symbol;   ///< of the function; empty: unknown
};

struct RecordedSample {
  double seconds_before_end = 0.0;
  int64_t resident = 0;
  int64_t used = 0;      ///< of capacity
  int64_t capacity = 0;  ///< what the container or machine could give; 0: unknown
};

struct Postmortem {
  std::string path;  ///< of the recorder's file
  DeathCause cause = DeathCause::kUnknown;
  std::string confidence;  ///< "certain", "very likely", "likely", "unclear"
  std::string summary;     ///< which process, when, in which cell, why: one sentence
  std::string advice;      ///< what to do about it; may be empty
  std::vector<std::string> evidence;

  int pid = 0;
  double started = 0.0;    ///< seconds since 1970
  double last_sign = 0.0;  ///< of life, or the moment of the crash
  std::string command;
  std::string session;  ///< distinguishes one notebook's kernels from another's
  std::string folder;   ///< where it ran
  int cell = 0;         ///< number of the last cell; 0: none
  std::string cell_line;
  bool cell_running = false;
  std::string op;  ///< Leadline's op that ran last: "CONV_2D #17 'block3/conv'"
  bool op_running = false;

  int signal = 0;
  int signal_code = 0;
  uint64_t fault_address = 0;
  std::string module;                         ///< of the native code to blame; empty: unknown
  std::string message;                        ///< of an abort
  std::string instruction;                    ///< bytes of an illegal one, in hexadecimal
  bool trap = false;                          ///< that is one which compilers put where a program must never come
  std::vector<std::string> missing_features;  ///< of an illegal one: flags of numeric code that the CPU does not have
  std::string thread;
  std::vector<NativeFrame> frames;
  std::string python_stack;
  std::vector<RecordedSample> samples;  ///< oldest first
  int64_t peak_resident = 0;
  std::vector<std::pair<std::string, std::string>> facts;
  bool reported = false;  ///< mark_reported() was called

  /// Whether the process is gone, and not by its own will.
  bool died() const noexcept;
  std::string to_text() const;
};

/// LEADLINE_FLIGHTS, else leadline/flights in XDG_STATE_HOME (~/.local/state), else a folder for temporary files.
std::string flights_folder();

/// One recording. Never throws for what is in the file; Error(kIo) when it cannot be read at all.
Postmortem postmortem_of(const std::string& file);

/// All recordings in a folder (empty: flights_folder()), newest first, at most `most`.
std::vector<Postmortem> postmortems(const std::string& folder = {}, size_t most = 100);

/// The death of the newest process of the same session, or else of one in the same folder, unless it was reported
/// already. An empty list when there is none.
std::vector<Postmortem> previous_death(const std::string& session, const std::string& folder);

/// Notes in the file that its death was reported.
void mark_reported(const std::string& file);

}  // namespace leadline::guard
