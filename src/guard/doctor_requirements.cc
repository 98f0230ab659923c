// SPDX-License-Identifier: Apache-2.0
// Checks of doctor about requirements between packages, and installations that are damaged.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "guard/doctor_subject.h"
#include "guard/untrusted_file.h"

namespace leadline::guard {
namespace {

// A package with more files than this is looked at in part.
constexpr size_t kMostFiles = 50000;

std::string why_conflict(const std::string& name) {
  if (name == "protobuf") {
    return "generated code and the runtime must fit: \"Descriptors cannot be created directly\", \"GetPrototype\", or "
           "a "
           "segmentation fault inside the descriptor pool at import";
  }
  if (name == "numpy") {
    return "native code was built for another layout of arrays: imports fail with \"_ARRAY_API not found\" or crash "
           "later";
  }
  if (name == "h5py") return "models in HDF5 files fail to load, or two copies of the HDF5 library meet and abort";
  if (name == "flatbuffers") return "the TFLite converter writes or reads models with the wrong schema code and fails";
  if (name == "ml-dtypes" || name == "jaxlib") {
    return "types like bfloat16 are registered twice or with another layout: errors at import, or wrong results";
  }
  return "the package was made and tested with another version of it; calls fail that are missing or have changed";
}

void check_distribution(const Subject& subject, const Distribution& distribution, const MarkerValues& markers,
                        Findings& findings) {
  for (const std::string& line : distribution.requirements) {
    const std::optional<Requirement> requirement = Requirement::parse(line);
    if (!requirement || !marker_holds(requirement->marker, markers)) continue;
    const Distribution* other = subject.environment.find(requirement->name);
    const bool core = is_core(subject, requirement->name) || is_core(subject, distribution.name);
    const std::string target = requirement->name + requirement->range;
    if (other == nullptr) {
      findings.push_back({"requirements-missing", Severity::kWarning,
                          fmt::format("{} needs {}, which is not installed", label(distribution), target),
                          "a part of it fails with ModuleNotFoundError, perhaps hours into a run",
                          fmt::format("{} install '{}'", subject.pip(), target), ""});
    } else if (other->parsed && !requirement->specifiers.allows(*other->parsed)) {
      findings.push_back({"requirements", core ? Severity::kProblem : Severity::kWarning,
                          fmt::format("{} needs {} {}, but {} is installed", label(distribution), requirement->name,
                                      requirement->range, other->version),
                          why_conflict(requirement->name), fmt::format("{} install '{}'", subject.pip(), target), ""});
    }
  }
}

void check_duplicates(const Subject& subject, Findings& findings) {
  std::map<std::string, std::vector<const Distribution*>> by_name;
  for (const Distribution& distribution : subject.environment.distributions)
    by_name[distribution.name].push_back(&distribution);
  for (const auto& [name, list] : by_name) {
    const Distribution& first = *list.front();
    for (size_t i = 1; i < list.size(); ++i) {
      const Distribution& other = *list[i];
      if (other.site == first.site) {
        findings.push_back(
            {"duplicate-metadata", is_core(subject, name) ? Severity::kProblem : Severity::kWarning,
             fmt::format("{} is recorded as {} and as {} in {}", name, first.version, other.version, first.site),
             "one of them was removed or replaced halfway; files of both versions are mixed, and native "
             "parts of one meet Python parts of the other",
             fmt::format("{0} uninstall -y {1} && {0} uninstall -y {1} ; {0} install --force-reinstall {1}",
                         subject.pip(), name),
             ""});
      } else if (other.version != first.version && is_core(subject, name)) {
        findings.push_back(
            {"shadowed", Severity::kWarning,
             fmt::format("{} of {} hides {} of {}", label(first), first.site, other.version, other.site),
             "what is imported is not what was installed last; after an upgrade the old version still runs",
             fmt::format("{} uninstall {}   (removes the first; or set PYTHONNOUSERSITE=1 when it is in ~/.local)",
                         subject.pip(), name),
             ""});
      }
    }
  }
}

void check_files(const Subject& subject, Findings& findings) {
  for (const Distribution& distribution : subject.environment.distributions) {
    if (!is_core(subject, distribution.name)) continue;
    size_t missing = 0;
    std::string example;
    for (const std::string& file : distribution.files(kMostFiles)) {
      const bool compiled = file.ends_with(".pyc") || file.find("__pycache__") != std::string::npos;
      if (compiled || is_regular_file(distribution.site + "/" + file)) continue;
      if (++missing == 1) example = file;
    }
    if (missing == 0) continue;
    findings.push_back({"files-missing", Severity::kProblem,
                        fmt::format("{} files of {} are missing, {} among them", missing, label(distribution), example),
                        "the installation is incomplete: imports fail, or an older copy of a library is loaded instead",
                        fmt::format("{} install --force-reinstall --no-deps {}{}", subject.pip(), distribution.name,
                                    exact(distribution)),
                        ""});
  }
}

void check_conda(const Subject& subject, Findings& findings) {
  if (subject.environment.conda.empty()) return;
  std::vector<std::string> by_pip;
  std::vector<std::string> by_conda;
  for (const Distribution& distribution : subject.environment.distributions) {
    if (!is_core(subject, distribution.name)) continue;
    const auto conda = subject.environment.conda.find(distribution.name);
    const bool pip = distribution.installer == "pip" || distribution.installer == "uv";
    if (conda != subject.environment.conda.end() && pip && conda->second != distribution.version) {
      findings.push_back(
          {"conda-pip", Severity::kProblem,
           fmt::format("conda installed {} {}, and {} replaced it by {}", distribution.name, conda->second,
                       distribution.installer, distribution.version),
           "conda's other packages are linked against the one that is gone; native code calls functions "
           "that are not there or have another layout",
           fmt::format("conda install --force-reinstall {}   (or a fresh environment with one installer)",
                       shell_word(distribution.name + "=" + conda->second)),
           ""});
    }
    if (pip) by_pip.push_back(distribution.name);
    if (!pip && conda != subject.environment.conda.end()) by_conda.push_back(distribution.name);
  }
  if (!by_pip.empty() && !by_conda.empty()) {
    findings.push_back(
        {"conda-pip-mixed", Severity::kWarning,
         fmt::format("{} come from pip, {} from conda", fmt::join(by_pip, ", "), fmt::join(by_conda, ", ")),
         "both bring their own C++ and OpenMP libraries into one process",
         "install the packages that carry native code with one of the two, in a fresh environment", ""});
  }
}

void check_working_folder(const Subject& subject, Findings& findings) {
  static constexpr const char* kNames[] = {"tensorflow", "keras",  "numpy", "google", "h5py",  "jax",
                                           "torch",      "random", "types", "typing", "queue", "logging",
                                           "copy",       "string", "token", "code",   "select"};
  if (subject.machine.working_folder.empty()) return;
  for (const char* name : kNames) {
    const std::string file = subject.machine.working_folder + "/" + name + ".py";
    if (!is_regular_file(file)) continue;
    findings.push_back(
        {"local-shadow", Severity::kWarning, fmt::format("{} hides the module {}", file, name),
         "programs started in this folder import that file instead; libraries fail with AttributeError "
         "or \"partially initialized module\"",
         fmt::format("mv {} {}", shell_word(file), shell_word(subject.machine.working_folder + "/my_" + name + ".py")),
         ""});
  }
}

}  // namespace

void check_requirements(const Subject& subject, Findings& findings) {
  const MarkerValues markers = subject.environment.markers();
  if (subject.environment.version.empty()) return;  // markers about Python could not be answered
  for (const Distribution& distribution : subject.environment.distributions) {
    if (subject.environment.find(distribution.name) != &distribution) continue;  // hidden by another
    check_distribution(subject, distribution, markers, findings);
  }
}

void check_installation(const Subject& subject, Findings& findings) {
  for (const std::string& folder : subject.environment.leftovers) {
    findings.push_back(
        {"leftovers", Severity::kWarning, fmt::format("{} is left from an installation that was stopped", folder),
         "pip could not finish replacing a package (often because a running notebook held its libraries); "
         "what is installed may be half of each version",
         fmt::format("rm -r {}   (then install the package again with --force-reinstall)", shell_word(folder)), ""});
  }
  for (const std::string& folder : subject.environment.without_metadata) {
    findings.push_back({"broken-metadata", Severity::kWarning, fmt::format("{} has no readable METADATA", folder),
                        "pip does not know that the package is there and neither upgrades nor removes it",
                        fmt::format("rm -r {}   (then install the package again)", shell_word(folder)), ""});
  }
  check_duplicates(subject, findings);
  check_files(subject, findings);
  check_conda(subject, findings);
  check_working_folder(subject, findings);
}

}  // namespace leadline::guard
