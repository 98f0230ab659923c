// SPDX-License-Identifier: Apache-2.0
// Checks of doctor about the files of packages: missing, cut off, or other than what was installed.
#include <fmt/core.h>

#include <algorithm>

#include "guard/doctor_subject.h"
#include "guard/elf_damage.h"
#include "guard/elf_file.h"
#include "guard/sha256.h"
#include "guard/untrusted_file.h"

namespace leadline::guard {
namespace {

constexpr size_t kMostFiles = 100000;    // of a package; the rest is not looked at
constexpr size_t kMostLibraries = 2000;  // of a package, whose headers are read

/// Files that are written again after the installation.
bool is_made_later(const std::string& file) {
  return file.ends_with(".pyc") || file.find("__pycache__") != std::string::npos || file.ends_with("/RECORD") ||
         file.ends_with("/INSTALLER") || file.ends_with("/REQUESTED") || file.ends_with("/direct_url.json");
}

std::string install_again(const Subject& subject, const Distribution& distribution) {
  return fmt::format("{} install --force-reinstall --no-deps {}{}", subject.pip(), distribution.name,
                     exact(distribution));
}

/// Files of one kind: how many, and the first.
struct Tally {
  size_t count = 0;
  std::string example;

  void add(const std::string& text) {
    if (++count == 1) example = text;
  }
};

void check_missing(const Subject& subject, const Distribution& distribution, const std::vector<RecordedFile>& files,
                   Findings& findings) {
  Tally missing;
  for (const RecordedFile& file : files) {
    if (!is_made_later(file.path) && !is_regular_file(distribution.site + "/" + file.path)) missing.add(file.path);
  }
  if (missing.count == 0) return;
  findings.push_back(
      {"files-missing", Severity::kProblem,
       fmt::format("{} files of {} are missing, {} among them", missing.count, label(distribution), missing.example),
       "the installation is incomplete: imports fail, or an older copy of a library is loaded instead",
       install_again(subject, distribution), ""});
}

/// Libraries whose headers name parts that lie behind the end of the file.
void check_libraries(const Subject& subject, const Distribution& distribution, const std::vector<RecordedFile>& files,
                     Findings& findings) {
  size_t read = 0;
  Tally damaged;
  for (const RecordedFile& file : files) {
    if (!is_library(file.path) || ++read > kMostLibraries) continue;
    const std::string damage = elf_damage(distribution.site + "/" + file.path);
    if (!damage.empty()) damaged.add(file.path + " " + damage);
  }
  if (damaged.count == 0) return;
  const std::string others = damaged.count > 1 ? fmt::format(" ({} more are damaged)", damaged.count - 1) : "";
  findings.push_back(
      {"library-damaged", Severity::kProblem, fmt::format("{}: {}{}", label(distribution), damaged.example, others),
       "a download or a copy that was stopped, or a disk that was full: the import dies of SIGBUS or SIGSEGV, "
       "or fails with \"file too short\"",
       install_again(subject, distribution), ""});
}

bool is_changed(const RecordedFile& file, const std::string& path) {
  if (file.sha256.empty() || is_made_later(file.path)) return false;
  if (!is_regular_file(path)) return false;
  if (file.size && FileReader(path).size() != *file.size) return true;
  const std::optional<std::string> hash = record_hash(path);
  return hash && *hash != file.sha256;
}

void check_hashes(const Subject& subject, const Distribution& distribution, const std::vector<RecordedFile>& files,
                  Findings& findings) {
  Tally libraries;
  Tally others;
  for (const RecordedFile& file : files) {
    if (!is_changed(file, distribution.site + "/" + file.path)) continue;
    (is_library(file.path) ? libraries : others).add(file.path);
  }
  if (libraries.count + others.count == 0) return;
  const Tally& shown = libraries.count > 0 ? libraries : others;
  findings.push_back({"files-changed", libraries.count > 0 ? Severity::kProblem : Severity::kWarning,
                      fmt::format("{} files of {} are not what was installed, {} among them",
                                  libraries.count + others.count, label(distribution), shown.example),
                      "they were damaged, edited, or overwritten by another package: anything may happen, from wrong "
                      "results to a crash",
                      install_again(subject, distribution), ""});
}

}  // namespace

void check_files(const Subject& subject, Findings& findings) {
  for (const Distribution& distribution : subject.environment.distributions) {
    const std::vector<RecordedFile> files = distribution.records(kMostFiles);
    if (subject.deep || is_core(subject, distribution.name)) check_missing(subject, distribution, files, findings);
    check_libraries(subject, distribution, files, findings);
    if (subject.deep) check_hashes(subject, distribution, files, findings);
  }
}

}  // namespace leadline::guard
