// SPDX-License-Identifier: Apache-2.0
// doctor(): reads the environment and the machine, runs all checks, and puts the findings in order.
#include "leadline/guard/doctor.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/error.h"
#include "guard/doctor_subject.h"
#include "guard/untrusted_file.h"
#include "leadline/types.h"

namespace leadline::guard {

const char* severity_name(Severity severity) noexcept {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kProblem:
      return "problem";
  }
  return "unknown";
}

const std::vector<DoctorCheck>& doctor_checks() {
  static const std::vector<DoctorCheck> checks{
      {"python-unknown", "no Python, or one whose version is unknown"},
      {"python-version", "Python is outside the range the installed TensorFlow is made for"},
      {"python-requires", "a package asks for another Python (Requires-Python)"},
      {"tensorflow-duplicates", "more than one of tensorflow, -cpu, -gpu, -intel, -rocm, tf-nightly"},
      {"tensorflow-unknown", "a TensorFlow that the table of versions does not know"},
      {"keras-version", "Keras 2 where TensorFlow needs Keras 3, or the other way round"},
      {"keras-legacy", "TF_USE_LEGACY_KERAS without tf_keras"},
      {"tf-keras-version", "tf_keras of another number than TensorFlow"},
      {"numpy-abi", "extension modules built for NumPy 1 beside NumPy 2"},
      {"requirements",
       "an installed version is outside what another package requires (protobuf, h5py, flatbuffers, ...)"},
      {"requirements-missing", "a required package is not installed"},
      {"lite-runtimes", "several TFLite runtimes (ai-edge-litert, tflite-runtime, ...)"},
      {"tflite-runtime-beside-tensorflow", "tflite-runtime beside TensorFlow"},
      {"litert-torch-beside-tensorflow", "litert-torch or ai-edge-torch beside TensorFlow"},
      {"cuda-version", "CUDA wheels of another major version than TensorFlow was built for"},
      {"cudnn-version", "a cuDNN older than, or of another major version than, the one TensorFlow was built for"},
      {"cuda-duplicates", "NVIDIA wheels for two CUDA versions in one folder"},
      {"cuda-missing", "an NVIDIA driver but no cuDNN"},
      {"nvidia-driver", "a driver too old for the CUDA of TensorFlow"},
      {"cpu-features", "wheels compiled for processors with AVX on one without"},
      {"wrong-machine", "native code for another kind of processor"},
      {"glibc", "native code that needs a newer glibc"},
      {"libstdcxx", "native code that needs a newer libstdc++"},
      {"openmp-duplicates", "libiomp5 or libomp beside another OpenMP runtime"},
      {"conda-pip", "a package of conda replaced by pip"},
      {"conda-pip-mixed", "packages with native code from conda and from pip"},
      {"leftovers", "folders ~ackage of an installation that was stopped"},
      {"broken-metadata", "dist-info folders without readable METADATA"},
      {"duplicate-metadata", "two versions of a package recorded in one folder"},
      {"shadowed", "a package that hides another version of itself further down the path"},
      {"files-missing", "files of RECORD that are not there"},
      {"library-damaged", "native libraries that were cut off or hold zeros"},
      {"files-changed", "files that are not what RECORD says (with --deep)"},
      {"local-shadow", "a file of the working folder that hides a module"},
      {"memory-limit", "little memory that can really be used (container, machine, ulimit)"},
      {"oom-kills", "the kernel has killed processes of this container"},
      {"swap", "no swap"},
      {"overcommit", "strict accounting of reserved memory"},
      {"limit-address-space", "a limit of the address space (ulimit -v)"},
      {"limit-processes", "few processes and threads (ulimit -u, pids.max)"},
      {"limit-files", "few open files (ulimit -n)"},
      {"limit-stack", "small stacks (ulimit -s)"},
      {"shared-memory", "a small /dev/shm"},
      {"disk-space", "little space for temporary files"},
  };
  return checks;
}

int DoctorReport::count(Severity severity) const noexcept {
  return static_cast<int>(
      std::count_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.severity == severity; }));
}

std::string DoctorReport::to_text() const {
  std::string text = fmt::format("Python {} ({})\n", python_version.empty() ? "of unknown version" : python_version,
                                 python.empty() ? "no interpreter found" : printable(python));
  for (const std::string& site : site_packages) text += fmt::format("  {}\n", printable(site));
  text += fmt::format("{} packages", package_count);
  for (size_t i = 0; i < packages.size(); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? ": " : ", ", printable(packages[i].name), printable(packages[i].version));
  }
  text += "\n";
  for (const Finding& finding : findings) {
    text += fmt::format("\n{} [{}] {}\n  why  {}\n  fix  {}\n", severity_name(finding.severity), finding.id,
                        printable(finding.what), printable(finding.why), printable(finding.fix));
    if (!finding.source.empty()) text += fmt::format("  see  {}\n", finding.source);
  }
  for (const std::string& note : notes) text += fmt::format("\nnot looked at: {}\n", printable(note));
  text += findings.empty() ? "\nNothing was found that is known to kill kernels.\n"
                           : fmt::format("\n{} problems, {} warnings, {} notes.\n", count(Severity::kProblem),
                                         count(Severity::kWarning), count(Severity::kNote));
  return text;
}

Findings run_checks(const Subject& subject, bool machine) {
  Findings findings;
  for (const auto check : {check_python, check_tensorflow, check_numpy_abi, check_requirements, check_lite, check_cuda,
                           check_native, check_installation, check_files}) {
    check(subject, findings);
  }
  if (machine) check_machine(subject, findings);
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

DoctorReport doctor(const DoctorOptions& options) {
  PythonQuery query{options.python, options.site_packages, options.python_version, python_variables()};
  Subject subject{read_environment(query), read_machine({}), options.deep};
  const PythonEnvironment& environment = subject.environment;
  require(options.python.empty() || !environment.executable.empty() || !environment.version.empty(),
          ErrorCode::kInvalidArgument,
          "there is no Python at '{}': name an interpreter, or the folder of a virtual environment", options.python);
  for (const std::string& site : options.site_packages) {
    require(is_folder(site), ErrorCode::kInvalidArgument, "'{}' is not a folder that can be read", site);
  }
  DoctorReport report;
  report.python = environment.executable;
  report.python_version = environment.version;
  report.site_packages = environment.sites;
  report.package_count = static_cast<int>(environment.distributions.size());
  for (const Distribution& distribution : environment.distributions) {
    const bool nvidia = distribution.name.starts_with("nvidia-");
    if (!nvidia && !is_core(subject, distribution.name)) continue;
    report.packages.push_back({distribution.name, distribution.version, distribution.site, distribution.installer});
  }
  report.findings = run_checks(subject, options.machine);
  report.notes = environment.notes;
  report.table_date = subject.table.date;
  return report;
}

}  // namespace leadline::guard
