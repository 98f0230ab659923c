// SPDX-License-Identifier: Apache-2.0
// Checks of doctor about packages that are installed side by side.
#include <fmt/core.h>

#include <algorithm>

#include "core/join.h"
#include "guard/doctor_subject.h"
#include "guard/untrusted_file.h"

namespace leadline::guard {
namespace {

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::vector<const Distribution*> installed(const Subject& subject, const std::vector<std::string>& names) {
  std::vector<const Distribution*> found;
  for (const std::string& name : names) {
    if (const Distribution* distribution = subject.environment.find(name)) found.push_back(distribution);
  }
  return found;
}

bool in_range(const Version& version, const std::string& range) {
  const std::optional<Specifiers> specifiers = Specifiers::parse(range);
  return !specifiers || specifiers->allows(version);
}

std::string names_of(const std::vector<const Distribution*>& list) {
  std::vector<std::string> names;
  for (const Distribution* distribution : list) names.push_back(distribution->name);
  return join(names, " ");
}

std::string labels_of(const std::vector<const Distribution*>& list) {
  std::vector<std::string> labels;
  for (const Distribution* distribution : list) labels.push_back(label(*distribution));
  return join(labels, ", ");
}

/// tensorflow-intel and -cpu-aws are parts that `tensorflow` itself installs on some systems.
bool is_part_of(const Distribution& whole, const Distribution& part) {
  return std::any_of(whole.requirements.begin(), whole.requirements.end(), [&](const std::string& line) {
    const std::optional<Requirement> requirement = Requirement::parse(line);
    return requirement && requirement->name == part.name;
  });
}

void check_keras(const Subject& subject, const Distribution& tensorflow, Findings& findings) {
  const Version keras3 = Version::parse(subject.table.keras3_since).value_or(Version());
  const bool wants_keras3 = *tensorflow.parsed >= keras3;
  const Distribution* keras = subject.environment.find("keras");
  const Distribution* tf_keras = subject.environment.find("tf-keras");
  const auto variable = subject.machine.variables.find("TF_USE_LEGACY_KERAS");
  const bool legacy = variable != subject.machine.variables.end() &&
                      (variable->second == "1" || variable->second == "True" || variable->second == "true");
  if (wants_keras3 && legacy && tf_keras == nullptr) {
    findings.push_back({"keras-legacy", Severity::kProblem, "TF_USE_LEGACY_KERAS is set, but tf_keras is not installed",
                        "every use of tf.keras ends in an ImportError, often in the middle of loading a model",
                        fmt::format("{} install 'tf_keras~={}.{}'   (or unset TF_USE_LEGACY_KERAS)", subject.pip(),
                                    tensorflow.parsed->release(0), tensorflow.parsed->release(1)),
                        subject.table.source("keras")});
  }
  if (tf_keras != nullptr && tf_keras->parsed && tf_keras->parsed->release(1) != tensorflow.parsed->release(1)) {
    findings.push_back(
        {"tf-keras-version", Severity::kWarning,
         fmt::format("{} is installed beside {}; their versions should agree", label(*tf_keras), label(tensorflow)),
         "tf_keras uses internals of the TensorFlow of the same number; with another one models fail to "
         "load or to train with AttributeError",
         fmt::format("{} install 'tf_keras~={}.{}.0'", subject.pip(), tensorflow.parsed->release(0),
                     tensorflow.parsed->release(1)),
         subject.table.source("keras")});
  }
  if (keras == nullptr || !keras->parsed) return;
  const bool is_keras3 = keras->parsed->release(0) >= 3;
  if (wants_keras3 && !is_keras3) {
    findings.push_back(
        {"keras-version", Severity::kProblem,
         fmt::format("{} needs Keras 3, but {} is installed", label(tensorflow), label(*keras)),
         "importing tensorflow.keras fails, or models saved by one Keras are read by the other and end in "
         "TypeError, or in an abort in the TFLite converter",
         fmt::format("{} install -U 'keras>=3'", subject.pip()), subject.table.source("keras")});
  } else if (!wants_keras3 && is_keras3) {
    findings.push_back(
        {"keras-version", Severity::kProblem,
         fmt::format("{} is made for Keras 2, but {} is installed", label(tensorflow), label(*keras)),
         "the TFLite converter aborts the process (\"LLVM ERROR: Failed to infer result type(s)\") on "
         "models of the other Keras, and tf.keras mixes with keras until something fails",
         fmt::format("{} install 'keras=={}.{}.*'   (or a TensorFlow from {} on)", subject.pip(),
                     tensorflow.parsed->release(0), tensorflow.parsed->release(1), subject.table.keras3_since),
         subject.table.source("keras")});
  }
}

/// Where the package lists no requirements (conda, builds by hand), the table knows those of its wheel.
void check_against_table(const Subject& subject, const Distribution& tensorflow, const TensorFlowRow& row,
                         Findings& findings) {
  if (!tensorflow.requirements.empty()) return;
  for (const auto& [name, range] : row.requirements) {
    const Distribution* other = subject.environment.find(name);
    if (other == nullptr || !other->parsed || name == "keras" || in_range(*other->parsed, range)) continue;
    findings.push_back(
        {"requirements", Severity::kProblem,
         fmt::format("{} needs {} {}, but {} is installed", label(tensorflow), name, range, other->version),
         "TensorFlow was built against another one; imports fail, or native code crashes when it reads "
         "structures that have changed",
         fmt::format("{} install '{}{}'", subject.pip(), name, range), subject.table.source("wheels")});
  }
}

}  // namespace

const Distribution* Subject::tensorflow() const {
  for (const std::string& name : table.tensorflow_family) {
    const Distribution* found = environment.find(name);
    if (found != nullptr && found->parsed) return found;
  }
  return nullptr;
}

std::string Subject::pip() const {
  return shell_word(environment.executable.empty() ? "python" : environment.executable) + " -m pip";
}

std::string shell_word(const std::string& text) {
  static constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string label(const Distribution& distribution) { return distribution.name + " " + distribution.version; }

std::string exact(const Distribution& distribution) { return distribution.parsed ? "==" + distribution.version : ""; }

bool is_core(const Subject& subject, const std::string& name) {
  static const std::set<std::string> kCore{"numpy",     "protobuf", "h5py",     "flatbuffers",
                                           "ml-dtypes", "keras",    "tf-keras", "jax",
                                           "jaxlib",    "scipy",    "torch",    "tensorflow-io-gcs-filesystem"};
  return kCore.count(name) != 0 || contains(subject.table.tensorflow_family, name) ||
         contains(subject.table.lite_runtimes, name) || contains(subject.table.lite_converters, name);
}

void check_python(const Subject& subject, Findings& findings) {
  const PythonEnvironment& environment = subject.environment;
  const std::optional<Version> python = Version::parse(environment.version);
  if (!python) {
    findings.push_back({"python-unknown", Severity::kWarning, "no Python was found, or its version is unknown",
                        "without it, packages cannot be compared with the Python they are made for",
                        "leadline doctor --python PATH_OF_THE_INTERPRETER", ""});
    return;
  }
  const Distribution* tensorflow = subject.tensorflow();
  const TensorFlowRow* row = tensorflow == nullptr ? nullptr : subject.table.row_of(*tensorflow->parsed);
  if (row != nullptr) {
    const Version minor = *Version::parse(fmt::format("{}.{}", python->release(0), python->release(1)));
    const std::optional<Version> oldest = Version::parse(row->oldest_python);
    const std::optional<Version> newest = Version::parse(row->newest_python);
    if (oldest && newest && (minor < *oldest || *newest < minor)) {
      findings.push_back(
          {"python-version", Severity::kProblem,
           fmt::format("{} is made for Python {} to {}, but this is {}", label(*tensorflow), row->oldest_python,
                       row->newest_python, environment.version),
           "there is no wheel of it for this Python; one that was put here all the same fails to load its "
           "native parts",
           fmt::format("python{} -m venv .venv && .venv/bin/python -m pip install tensorflow{}", row->newest_python,
                       exact(*tensorflow)),
           subject.table.source("builds")});
    }
  }
  for (const Distribution& distribution : environment.distributions) {
    if (distribution.requires_python.empty() || in_range(*python, distribution.requires_python)) continue;
    findings.push_back({"python-requires",
                        is_core(subject, distribution.name) ? Severity::kProblem : Severity::kWarning,
                        fmt::format("{} needs Python {}, but this is {}", label(distribution),
                                    distribution.requires_python, environment.version),
                        "it uses syntax or C functions that this Python lacks: imports fail, or native code crashes",
                        fmt::format("{} install --force-reinstall {}", subject.pip(), distribution.name), ""});
  }
}

void check_tensorflow(const Subject& subject, Findings& findings) {
  std::vector<const Distribution*> family = installed(subject, subject.table.tensorflow_family);
  if (family.empty()) return;
  std::erase_if(family, [&](const Distribution* part) {
    return std::any_of(family.begin(), family.end(), [&](const Distribution* whole) {
      return whole != part && whole->version == part->version && is_part_of(*whole, *part);
    });
  });
  if (family.size() > 1) {
    findings.push_back({"tensorflow-duplicates", Severity::kProblem,
                        fmt::format("{} are installed at once", labels_of(family)),
                        "all of them write the same folder tensorflow/: native libraries of one are loaded with Python "
                        "files of another, which ends in undefined symbols or a segmentation fault at import",
                        fmt::format("{0} uninstall -y {1} && {0} install {2}{3}", subject.pip(), names_of(family),
                                    family.front()->name, exact(*family.front())),
                        subject.table.source("wheels")});
  }
  const Distribution* tensorflow = subject.tensorflow();
  if (tensorflow == nullptr) return;
  check_keras(subject, *tensorflow, findings);
  if (const TensorFlowRow* row = subject.table.row_of(*tensorflow->parsed)) {
    check_against_table(subject, *tensorflow, *row, findings);
  } else {
    findings.push_back({"tensorflow-unknown", Severity::kNote,
                        fmt::format("{} is not in the table of {}", label(*tensorflow), subject.table.date),
                        "its Python, CUDA and cuDNN are not checked", "a newer Leadline knows more versions",
                        subject.table.source("builds")});
  }
}

void check_lite(const Subject& subject, Findings& findings) {
  std::vector<const Distribution*> runtimes = installed(subject, subject.table.lite_runtimes);
  const std::vector<const Distribution*> converters = installed(subject, subject.table.lite_converters);
  const Distribution* tensorflow = subject.tensorflow();
  if (runtimes.size() > 1) {
    findings.push_back(
        {"lite-runtimes", Severity::kWarning,
         fmt::format("several TFLite runtimes are installed: {}", labels_of(runtimes)),
         "each brings its own copy of the interpreter and of its C symbols; a process that imports two can "
         "call from one into the other and die by a segmentation fault",
         fmt::format("{} uninstall -y {}   (keep {})", subject.pip(), names_of({runtimes.begin() + 1, runtimes.end()}),
                     runtimes.front()->name),
         subject.table.source("litert")});
  }
  if (tensorflow != nullptr && !converters.empty()) {
    findings.push_back(
        {"litert-torch-beside-tensorflow", Severity::kProblem,
         fmt::format("{} is installed beside {}", labels_of(converters), label(*tensorflow)),
         "both carry MLIR and TFLite in native code; importing both in one process is reported to end in a "
         "segmentation fault",
         fmt::format("python -m venv convert && convert/bin/python -m pip install {}   (an environment of "
                     "its own), then {} uninstall -y {}",
                     names_of(converters), subject.pip(), names_of(converters)),
         subject.table.source("litert")});
  }
  const Distribution* tflite_runtime = subject.environment.find("tflite-runtime");
  if (tensorflow != nullptr && tflite_runtime != nullptr) {
    findings.push_back(
        {"tflite-runtime-beside-tensorflow", Severity::kWarning,
         fmt::format("{} is installed beside {}", label(*tflite_runtime), label(*tensorflow)),
         "TensorFlow has the same interpreter inside; two copies in one process can crash at import or "
         "when delegates are loaded",
         fmt::format("{} uninstall -y tflite-runtime   (use tf.lite, ai-edge-litert or leadline.lite)", subject.pip()),
         subject.table.source("litert")});
  }
}

}  // namespace leadline::guard
