// SPDX-License-Identifier: Apache-2.0
// Looks at a Python environment and the machine for what is known to kill notebooks. Reads files; imports nothing.
#pragma once

#include <string>
#include <vector>

namespace leadline::guard {

enum class Severity {
  kNote,     ///< good to know
  kWarning,  ///< can end badly
  kProblem,  ///< something fails or dies
};

/// "note", "warning", "problem".
const char* severity_name(Severity severity) noexcept;

struct Finding {
  std::string id;  ///< "numpy-abi"; docs/doctor.md lists all
  Severity severity = Severity::kNote;
  std::string what;    ///< what was found
  std::string why;     ///< what it does to a running program
  std::string fix;     ///< the command that fixes it, or what to do
  std::string source;  ///< the page that says so; may be empty
};

struct InstalledPackage {
  std::string name;
  std::string version;
  std::string location;   ///< the site-packages folder
  std::string installer;  ///< "pip", "conda", ...; empty: unknown
};

struct DoctorReport {
  std::string python;          ///< the interpreter; empty: none was found
  std::string python_version;  ///< "3.11.7"; empty: unknown
  std::vector<std::string> site_packages;
  int package_count = 0;
  std::vector<InstalledPackage> packages;  ///< those that the checks are about
  std::vector<Finding> findings;           ///< worst first
  std::vector<std::string> notes;          ///< what could not be looked at
  std::string table_date;                  ///< of the table of compatible versions

  int count(Severity severity) const noexcept;
  std::string to_text() const;
};

struct DoctorOptions {
  /// An interpreter, its name, or the folder of an environment. Empty: VIRTUAL_ENV, CONDA_PREFIX, then PATH.
  std::string python;
  /// Folders to look at instead of the interpreter's own.
  std::vector<std::string> site_packages;
  /// Version of that Python where the caller knows it: "3.11.7".
  std::string python_version;
  /// Also limits, memory and disk of this machine.
  bool machine = true;
  /// Also compare every file of every package with the hash of its RECORD: reads all of them.
  bool deep = false;
};

/// Never throws for what it finds in files; Error(kInvalidArgument) when `python` names nothing that exists.
DoctorReport doctor(const DoctorOptions& options = {});

/// What is checked: the id of each finding there can be, and when it is made.
struct DoctorCheck {
  const char* id;
  const char* what;
};
const std::vector<DoctorCheck>& doctor_checks();

}  // namespace leadline::guard
