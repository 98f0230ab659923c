// SPDX-License-Identifier: Apache-2.0
// `leadline postmortem`: how processes that leadline.watch watched came to their end.
#include "leadline/guard/postmortem.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "cli/command.h"
#include "leadline/error.h"

namespace leadline::cli {
namespace {

constexpr const char* kPostmortemExamples =
    "  leadline postmortem                 the last process that died\n"
    "  leadline postmortem --all           every process that was watched\n"
    "  leadline postmortem FILE --json\n"
    "\n"
    "Exit code of what is shown first:\n"
    "  0   it runs, ended by itself, or was not watched any more\n"
    "  6   there are no recordings\n"
    "  10  out of memory\n"
    "  11  killed, asked to end, or replaced by another program (exec)\n"
    "  12  crashed: segmentation fault, abort, illegal instruction, ...\n"
    "  13  the machine was restarted\n"
    "  14  the recording cannot be read";

enum PostmortemExit { kNone = 6, kMemory = 10, kKilledExit = 11, kCrash = 12, kRestart = 13, kUnreadable = 14 };

int postmortem_exit_code(const guard::Postmortem& report) {
  switch (report.cause) {
    case guard::DeathCause::kRunning:
    case guard::DeathCause::kExit:
    case guard::DeathCause::kUnwatched:
      return 0;
    case guard::DeathCause::kOutOfMemory:
      return kMemory;
    case guard::DeathCause::kKilled:
    case guard::DeathCause::kSignal:
    case guard::DeathCause::kReplaced:
      return kKilledExit;
    case guard::DeathCause::kReboot:
      return kRestart;
    case guard::DeathCause::kUnknown:
      return kUnreadable;
    default:
      return kCrash;
  }
}

Json postmortem_document(const guard::Postmortem& report) {
  Json json = {{"cause", guard::death_cause_name(report.cause)},
               {"confidence", report.confidence},
               {"died", report.died()},
               {"summary", report.summary},
               {"advice", report.advice},
               {"evidence", report.evidence},
               {"pid", report.pid},
               {"started", report.started},
               {"last_sign", report.last_sign},
               {"command", report.command},
               {"session", report.session},
               {"folder", report.folder},
               {"cell", report.cell > 0 ? Json(report.cell) : Json()},
               {"cell_line", report.cell_line},
               {"cell_source", report.cell_source},
               {"cell_running", report.cell_running},
               {"op", report.op},
               {"op_running", report.op_running},
               {"exit_status", report.exit_status ? Json(*report.exit_status) : Json()},
               {"signal", report.signal != 0 ? Json(report.signal) : Json()},
               {"signal_code", report.signal_code},
               {"fault_address", report.fault_address},
               {"module", report.module},
               {"message", report.message},
               {"instruction", report.instruction},
               {"trap", report.trap},
               {"missing_features", report.missing_features},
               {"thread", report.thread},
               {"python_stack", report.python_stack},
               {"guilty_file", report.guilty.file},
               {"guilty_line", report.guilty.line > 0 ? Json(report.guilty.line) : Json()},
               {"guilty_function", report.guilty.function},
               {"peak_resident_bytes", report.peak_resident},
               {"recording", report.path}};
  json["frames"] = Json::array();
  for (const guard::NativeFrame& frame : report.frames) {
    json["frames"].push_back({{"module", frame.module}, {"offset", frame.offset}, {"symbol", frame.symbol}});
  }
  json["samples"] = Json::array();
  for (const guard::RecordedSample& sample : report.samples) {
    json["samples"].push_back({{"seconds_before_end", sample.seconds_before_end},
                               {"resident_bytes", sample.resident},
                               {"used_bytes", sample.used},
                               {"capacity_bytes", sample.capacity}});
  }
  json["facts"] = Json::object();
  for (const auto& [key, value] : report.facts) json["facts"][key] = value;
  return json;
}

class PostmortemCommand final : public Command {
 public:
  explicit PostmortemCommand(CLI::App& program)
      : Command(program, "postmortem", "Explain why a watched process (a Jupyter kernel) died", kPostmortemExamples) {
    add_option("PATH", path_, "A recording, or a folder of them (default: LEADLINE_FLIGHTS, then the user's)");
    add_flag("--all", all_, "Every recording, newest first; else the newest of a process that died");
  }

  void run() override;

 private:
  std::vector<guard::Postmortem> collect() const;

  std::string path_;
  bool all_ = false;
};

std::vector<guard::Postmortem> PostmortemCommand::collect() const {
  struct stat status{};
  if (!path_.empty() && stat(path_.c_str(), &status) != 0) {
    throw Error(ErrorCode::kIo, fmt::format("no such file or folder: '{}'", path_));
  }
  if (!path_.empty() && !S_ISDIR(status.st_mode)) return {guard::postmortem_of(path_)};
  std::vector<guard::Postmortem> found = guard::postmortems(path_);
  if (all_ || found.empty()) return found;
  for (guard::Postmortem& report : found) {
    if (report.died()) return {std::move(report)};
  }
  return {found.front()};
}

void PostmortemCommand::run() {
  const std::vector<guard::Postmortem> found = collect();
  set_exit_code(found.empty() ? static_cast<int>(kNone) : postmortem_exit_code(found.front()));
  if (json()) {
    Json list = Json::array();
    for (const guard::Postmortem& report : found) list.push_back(postmortem_document(report));
    print_json({{"postmortems", std::move(list)}});
    return;
  }
  if (found.empty()) {
    fmt::print("There are no recordings in {}. `%load_ext leadline` or leadline.watch() makes them.\n",
               path_.empty() ? guard::flights_folder() : path_);
    return;
  }
  if (all_) {
    for (const guard::Postmortem& report : found) fmt::print("{}\n", report.summary);
    return;
  }
  fmt::print("{}", found.front().to_text());
}

}  // namespace

std::unique_ptr<Command> postmortem_command(CLI::App& program) { return std::make_unique<PostmortemCommand>(program); }

}  // namespace leadline::cli
