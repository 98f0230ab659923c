// SPDX-License-Identifier: Apache-2.0
// Checks of doctor about requirements between packages, and installations that are damaged.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/join.h"
#include "guard/doctor_subject.h"
#include "guard/import_scan.h"
#include "guard/untrusted_file.h"

namespace leadline::guard {
namespace {

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

/// What an import of the package runs into because of the other one; empty when nothing of the kind is seen.
std::string failing_import(const Subject& subject, const Distribution& distribution,
                           const std::vector<std::string>& targets) {
  const std::optional<FailingImport> failing = find_failing_import(
      subject.environment.sites, distribution.modules(), std::set<std::string>(targets.begin(), targets.end()));
  if (!failing) return {};
  if (failing->name.empty()) {
    return fmt::format("the import fails: {} imports {}, which is not there (ModuleNotFoundError)", failing->file,
                       failing->module);
  }
  return fmt::format("the import fails: {} imports {} from {}, which does not have it (ImportError)", failing->file,
                     failing->name, failing->module);
}

void check_required(const Subject& subject, const Distribution& distribution, const Requirement& requirement,
                    Findings& findings) {
  std::string module = requirement.name;
  std::replace(module.begin(), module.end(), '-', '_');
  const std::string failing = failing_import(subject, distribution, {module});
  const std::string target = requirement.name + requirement.range;
  findings.push_back(
      {"requirements-missing", failing.empty() ? Severity::kWarning : Severity::kProblem,
       fmt::format("{} needs {}, which is not installed", label(distribution), target),
       failing.empty() ? "a part of it fails with ModuleNotFoundError, perhaps hours into a run" : failing,
       fmt::format("{} install '{}'", subject.pip(), target), ""});
}

/// A version that is too old lacks what was written for a later one, and who pins one checks it; one that is too new
/// often works.
void check_version(const Subject& subject, const Distribution& distribution, const Requirement& requirement,
                   const Distribution& other, Findings& findings) {
  const bool core = is_core(subject, requirement.name) || is_core(subject, distribution.name);
  const std::string failing = failing_import(subject, distribution, other.modules());
  const bool fails = core || !failing.empty() || requirement.specifiers.wants_newer_or_exact(*other.parsed);
  findings.push_back({"requirements", fails ? Severity::kProblem : Severity::kWarning,
                      fmt::format("{} needs {} {}, but {} is installed", label(distribution), requirement.name,
                                  requirement.range, other.version),
                      failing.empty() ? why_conflict(requirement.name) : failing,
                      fmt::format("{} install '{}'", subject.pip(), requirement.name + requirement.range), ""});
}

void check_distribution(const Subject& subject, const Distribution& distribution, const MarkerValues& markers,
                        Findings& findings) {
  for (const std::string& line : distribution.requirements) {
    const std::optional<Requirement> requirement = Requirement::parse(line);
    if (!requirement || !marker_holds(requirement->marker, markers)) continue;
    const Distribution* first = subject.environment.find(requirement->name);
    if (first == nullptr) check_required(subject, distribution, *requirement, findings);
    // Of a package that is recorded twice in one folder, nobody knows which one lies there.
    for (const Distribution& other : subject.environment.distributions) {
      if (first == nullptr || other.name != requirement->name || other.site != first->site) continue;
      if (!other.parsed || requirement->specifiers.allows(*other.parsed)) continue;
      if (&other == first || !failing_import(subject, distribution, other.modules()).empty()) {
        check_version(subject, distribution, *requirement, other, findings);
      }
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
    findings.push_back({"conda-pip-mixed", Severity::kWarning,
                        fmt::format("{} come from pip, {} from conda", join(by_pip, ", "), join(by_conda, ", ")),
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
  check_conda(subject, findings);
  check_working_folder(subject, findings);
}

}  // namespace leadline::guard
