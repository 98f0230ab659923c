// SPDX-License-Identifier: Apache-2.0
// Why a watched process (see watch.h) died, from what its flight recorder and the system still know.
#pragma once

#include <cstdint>
#include <optional>
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
  kReplaced,            ///< it became another program (exec)
  kReboot,              ///< the machine was restarted
  kUnknown,             ///< the file is damaged or of another version
};

/// "running", "exit", "unwatched", "out of memory", "killed", "segmentation fault", "stack overflow", "abort",
/// "bus error", "arithmetic error", "illegal instruction", "signal", "replaced", "reboot", "unknown".
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

/// A frame of Python's stack.
struct PythonFrame {
  std::string file;
  int line = 0;
  std::string function;
};

/// A line to look at first: the innermost one of the user's own code.
struct GuiltyLine {
  std::string file;
  int line = 0;  ///< 0: unknown
  std::string function;
  std::string source;    ///< its text, where that is known
  bool in_cell = false;  ///< `line` counts within the cell that ran
  int cell_line = 0;     ///< of the cell that ran and called it; 0: unknown
  std::string cell_source;
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
  std::string cell_source;  ///< all of it, where it is known
  bool cell_running = false;
  std::string op;  ///< Leadline's op that ran last: "CONV_2D #17 'block3/conv'"
  bool op_running = false;

  std::optional<int> exit_status;  ///< as its parent saw it: an exit code, or minus a signal
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
  GuiltyLine guilty;
  std::vector<RecordedSample> samples;  ///< oldest first
  int64_t peak_resident = 0;
  std::vector<std::pair<std::string, std::string>> facts;
  bool reported = false;       ///< mark_reported() was called
  std::string variables_path;  ///< what the watch saved of a notebook's variables; empty: nothing

  /// Whether the process is gone, and not by its own will.
  bool died() const noexcept;
  std::string to_text() const;
  /// A few lines for the place where it died: what happened, memory, the guilty line, what to do, where there is more.
  /// `more` is a file or address of the whole story; empty: the command that prints it.
  std::string to_brief(const std::string& more = {}) const;
};

/// Another process's memory, seen from outside. Numbers that cannot be read are -1, sizes 0.
struct ProcessLook {
  int64_t resident = 0;
  int64_t peak_resident = 0;
  int64_t used = 0;      ///< of capacity
  int64_t capacity = 0;  ///< what its container or the machine can give
  bool container = false;
  std::string cgroup;  ///< the folder of its control group
  bool cgroup_v2 = false;
  int64_t group_oom_kills = -1;
  int64_t machine_oom_kills = -1;
};

/// Nothing of the process is left in the result when it is gone.
ProcessLook look_at_process(int pid);

/// What the parent of a process knows of its end: Jupyter of a kernel.
struct ProcessEnd {
  int pid = 0;
  int exit_status = 0;   ///< an exit code, or minus a signal
  double started = 0.0;  ///< seconds since 1970
  double ended = 0.0;
  ProcessLook before;                   ///< when it was last looked at
  std::vector<RecordedSample> samples;  ///< seen from outside, oldest first
  std::string command;
  std::string session;  ///< see Postmortem
  std::string folder;
  int cell = 0;  ///< that was running; 0: none
  std::string cell_source;
  bool cell_running = false;
  std::string flights;  ///< folder of recordings; empty: flights_folder()
};

/// With what the recorder of that process kept, if it had one.
Postmortem postmortem_of_end(const ProcessEnd& end);

/// LEADLINE_FLIGHTS, else leadline/flights in XDG_STATE_HOME (~/.local/state), else a folder for temporary files.
std::string flights_folder();

/// One recording. Never throws for what is in the file; Error(kIo) when it cannot be read at all.
Postmortem postmortem_of(const std::string& file);

/// All recordings in a folder (empty: flights_folder()), newest first, at most `most`.
std::vector<Postmortem> postmortems(const std::string& folder = {}, size_t most = 100);

/// The death of the newest process of the same session, or else of one in the same folder, unless it was reported
/// already. An empty list when there is none.
std::vector<Postmortem> previous_death(const std::string& session, const std::string& folder);

/// Writes into this process's recording, if it has one, that it is about to become another program, or `failed` to.
void note_exec(const std::string& program, bool failed);

/// Notes in the file that its death was reported.
void mark_reported(const std::string& file);

}  // namespace leadline::guard
