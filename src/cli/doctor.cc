// SPDX-License-Identifier: Apache-2.0
// `leadline doctor`: what in a Python environment and on this machine is known to kill kernels, and how to fix it.
#include "leadline/guard/doctor.h"

#include <fmt/core.h>

#include "cli/command.h"
#include "cli/printing.h"
#include "leadline/types.h"

namespace leadline::cli {
namespace {

constexpr const char* kDoctorExamples =
    "  leadline doctor\n"
    "  leadline doctor --python .venv/bin/python\n"
    "  leadline doctor --deep\n"
    "  leadline doctor --site-packages /opt/app/site-packages --no-machine --json\n"
    "\n"
    "Exit codes: 0 no problems (with --strict: and no warnings), 1 otherwise.\n"
    "Files are read; nothing is imported or run.";

class Doctor final : public Command {
 public:
  explicit Doctor(CLI::App& program)
      : Command(program, "doctor", "Look for what is known to kill kernels: versions, libraries, limits",
                kDoctorExamples) {
    add_option("--python", options_.python,
               "Interpreter or environment (default: VIRTUAL_ENV, CONDA_PREFIX, then PATH)")
        .placeholder("PATH");
    add_option("--site-packages", options_.site_packages,
               "Look at this folder instead of the interpreter's own; may be repeated")
        .placeholder("FOLDER")
        .repeatable();
    add_option("--python-version", options_.python_version, "Version of that Python, where files do not say it")
        .placeholder("X.Y");
    add_flag("!--no-machine", options_.machine, "Skip limits, memory and disk of this machine");
    add_flag("--deep", options_.deep, "Compare every file of every package with its RECORD; reads gigabytes");
    add_flag("--strict", strict_, "Exit code 1 for warnings too");
    add_flag("--list", list_, "List what is checked");
  }

  void run() override {
    if (list_) {
      print_checks();
      return;
    }
    const guard::DoctorReport report = guard::doctor(options_);
    if (json()) {
      print_json(document(report));
    } else {
      fmt::print("{}", report.to_text());
    }
    const int bad = report.count(guard::Severity::kProblem) + (strict_ ? report.count(guard::Severity::kWarning) : 0);
    set_exit_code(bad > 0 ? 1 : 0);
  }

 private:
  static Json document(const guard::DoctorReport& report);
  void print_checks() const;

  guard::DoctorOptions options_;
  bool strict_ = false;
  bool list_ = false;
};

Json Doctor::document(const guard::DoctorReport& report) {
  Json json = {{"python", report.python},
               {"python_version", report.python_version},
               {"site_packages", report.site_packages},
               {"package_count", report.package_count},
               {"problems", report.count(guard::Severity::kProblem)},
               {"warnings", report.count(guard::Severity::kWarning)},
               {"table_date", report.table_date}};
  json["packages"] = Json::array();
  for (const guard::InstalledPackage& package : report.packages) {
    json["packages"].push_back({{"name", package.name},
                                {"version", package.version},
                                {"location", package.location},
                                {"installer", package.installer}});
  }
  json["findings"] = Json::array();
  for (const guard::Finding& finding : report.findings) {
    json["findings"].push_back({{"id", finding.id},
                                {"severity", guard::severity_name(finding.severity)},
                                {"what", finding.what},
                                {"why", finding.why},
                                {"fix", finding.fix},
                                {"source", finding.source}});
  }
  json["notes"] = report.notes;
  return json;
}

void Doctor::print_checks() const {
  if (json()) {
    Json list = Json::array();
    for (const guard::DoctorCheck& check : guard::doctor_checks())
      list.push_back({{"id", check.id}, {"what", check.what}});
    print_json({{"checks", list}});
    return;
  }
  Table table("ll");
  for (const guard::DoctorCheck& check : guard::doctor_checks()) table.add({check.id, check.what});
  fmt::print("{}", table.text(0));
}

}  // namespace

std::unique_ptr<Command> doctor_command(CLI::App& program) { return std::make_unique<Doctor>(program); }

}  // namespace leadline::cli
