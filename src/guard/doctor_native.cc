// SPDX-License-Identifier: Apache-2.0
// Checks of doctor about native code: NumPy's binary interface, CUDA, processor, system libraries, OpenMP.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/join.h"
#include "guard/doctor_subject.h"
#include "guard/elf_file.h"
#include "guard/untrusted_file.h"

namespace leadline::guard {
namespace {

constexpr size_t kMostScannedFiles = 50000;
constexpr size_t kMostScannedLibraries = 400;   // per package, whose headers are read
constexpr size_t kSearchedLibraries = 12;       // per package, whose contents are searched
constexpr uint64_t kSearchedBytes = 64u << 20;  // per library
constexpr uint64_t kSearchedInAll = 512u << 20;

bool requires_package(const Distribution& distribution, const std::string& name) {
  return std::any_of(distribution.requirements.begin(), distribution.requirements.end(), [&](const std::string& line) {
    const std::optional<Requirement> requirement = Requirement::parse(line);
    return requirement && requirement->name == name;
  });
}

/// An extension module of the package that was compiled with the headers of NumPy 1; empty when there is none.
/// Headers of NumPy 2 make a module look for numpy._core and fall back to numpy.core; those of NumPy 1 know only the
/// latter.
std::string module_for_numpy1(const Distribution& distribution, uint64_t& budget) {
  std::string old_module;
  size_t searched = 0;
  for (const std::string& file : distribution.files(kMostScannedFiles)) {
    if (!file.ends_with(".so") || searched >= kSearchedLibraries || budget == 0) continue;
    const std::string path = distribution.site + "/" + file;
    const FileReader reader(path);
    if (!reader.good() || reader.size() > kSearchedBytes) continue;
    ++searched;
    budget -= std::min(budget, reader.size());
    const std::vector<bool> found =
        find_in_file(path, {"numpy._core", "numpy.core.multiarray", "numpy.core._multiarray_umath"}, kSearchedBytes);
    if (found[0]) return {};
    if ((found[1] || found[2]) && old_module.empty()) old_module = file;
  }
  return old_module;
}

/// The highest "N.N.N" behind `name` among the libraries of a folder: libcudnn.so.8.9.7.
std::optional<Version> library_version(const std::string& folder, const std::string& name) {
  std::optional<Version> best;
  for (const std::string& file : list_folder(folder)) {
    if (!file.starts_with(name + ".so.")) continue;
    const std::optional<Version> version = Version::parse(file.substr(name.size() + 4));
    if (version && (!best || *best < *version || (*best == *version && best->release_size() < version->release_size())))
      best = version;
  }
  return best;
}

struct NvidiaPackage {
  const Distribution* distribution;
  std::string part;  // "cudnn"
  int cuda;          // 12 of "-cu12"
};

std::vector<NvidiaPackage> nvidia_packages(const PythonEnvironment& environment) {
  std::vector<NvidiaPackage> result;
  for (const Distribution& distribution : environment.distributions) {
    const std::string& name = distribution.name;
    const size_t suffix = name.rfind("-cu");
    if (!name.starts_with("nvidia-") || suffix == std::string::npos || suffix < 7 || name.size() != suffix + 5)
      continue;
    const std::string number = name.substr(suffix + 3);
    if (number.find_first_not_of("0123456789") != std::string::npos) continue;
    result.push_back({&distribution, name.substr(7, suffix - 7), std::stoi(number)});
  }
  return result;
}

std::string cuda_fix(const Subject& subject, const Distribution& tensorflow) {
  return fmt::format("{} install --force-reinstall 'tensorflow[and-cuda]{}'", subject.pip(), exact(tensorflow));
}

void check_cudnn(const Subject& subject, const Distribution& tensorflow, const TensorFlowRow& row, const Version& found,
                 const std::string& where, Findings& findings) {
  const std::optional<Version> built = Version::parse(row.cudnn);
  if (!built) return;
  const bool other_major = found.release(0) != built->release(0);
  if (!other_major && found.release(1) >= built->release(1)) return;
  findings.push_back(
      {"cudnn-version", Severity::kProblem,
       fmt::format("{} was built for cuDNN {}, but {} has {}.{}", label(tensorflow), row.cudnn, where, found.release(0),
                   found.release(1)),
       other_major ? "TensorFlow looks for another libcudnn and finds no GPU, or loads the wrong one and dies at "
                     "the first convolution"
                   : "\"Loaded runtime CuDNN library ... but source was compiled with ...\": the first "
                     "convolution ends in DNN_LIBRARY_NOT_FOUND or an abort",
       cuda_fix(subject, tensorflow), subject.table.source("builds")});
}

void check_driver(const Subject& subject, const Distribution& tensorflow, int cuda, Findings& findings) {
  if (!subject.machine.nvidia_driver) return;
  for (const auto& [major, oldest] : subject.table.cuda_drivers) {
    const std::optional<Version> needed = Version::parse(oldest);
    if (major != cuda || !needed || *subject.machine.nvidia_driver >= *needed) continue;
    findings.push_back(
        {"nvidia-driver", Severity::kProblem,
         fmt::format("{} needs CUDA {}, and that a driver from {} on; this one is older", label(tensorflow), cuda,
                     oldest),
         "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH or \"CUDA driver version is insufficient\": no GPU, or a crash "
         "when a kernel is compiled",
         fmt::format("install an NVIDIA driver from {} on (Debian, Ubuntu: apt-get install nvidia-driver)", oldest),
         subject.table.source("driver")});
  }
}

void check_cpu(const Subject& subject, Findings& findings) {
  const Machine& machine = subject.machine;
  if (machine.cpu_features.empty()) return;
  for (const CpuRow& row : subject.table.cpu) {
    if (row.machine != machine.architecture) continue;
    std::vector<std::string> missing;
    for (const std::string& feature : row.features) {
      if (machine.cpu_features.count(feature) == 0) missing.push_back(feature);
    }
    const std::optional<Version> since = Version::parse(row.since);
    for (const std::string& name : row.packages) {
      const Distribution* distribution = subject.environment.find(name);
      if (missing.empty() || distribution == nullptr || !distribution->parsed ||
          (since && *distribution->parsed < *since))
        continue;
      findings.push_back(
          {"cpu-features", Severity::kProblem,
           fmt::format("{} is compiled for processors with {}, which this one lacks", label(*distribution),
                       join(missing, ", ")),
           "the import dies with \"Illegal instruction\" (SIGILL); no except clause can catch it",
           fmt::format("run models with leadline.lite (it chooses kernels when it runs), or build {} for this "
                       "processor; in a virtual machine, pass the host's CPU through",
                       name),
           subject.table.source(row.source)});
    }
  }
}

struct Needs {
  std::optional<Version> glibc;
  std::optional<Version> libstdcxx;
  std::string glibc_file;
  std::string libstdcxx_file;
  std::string foreign_file;
  std::string foreign_machine;
};

void raise_to(std::optional<Version>& highest_so_far, std::string& file, const std::optional<Version>& version,
              const std::string& path) {
  if (!version || (highest_so_far && *highest_so_far >= *version)) return;
  highest_so_far = version;
  file = path;
}

Needs needs_of(const Distribution& distribution, const std::string& architecture) {
  Needs needs;
  size_t read = 0;
  for (const std::string& file : distribution.files(kMostScannedFiles)) {
    if (!is_library(file) || ++read > kMostScannedLibraries) continue;
    const std::optional<ElfFile> elf = read_elf(distribution.site + "/" + file);
    if (!elf) continue;
    if (!architecture.empty() && elf->machine != architecture && needs.foreign_file.empty()) {
      needs.foreign_file = file;
      needs.foreign_machine = elf->machine;
      continue;
    }
    raise_to(needs.glibc, needs.glibc_file, highest(elf->needs, "GLIBC_"), file);
    raise_to(needs.libstdcxx, needs.libstdcxx_file, highest(elf->needs, "GLIBCXX_"), file);
  }
  return needs;
}

std::string version_text(const Version& version) {
  std::string text = std::to_string(version.release(0));
  for (size_t i = 1; i < version.release_size(); ++i) text += "." + std::to_string(version.release(i));
  return text;
}

void check_loaded_libraries(const Subject& subject, Findings& findings) {
  const Machine& machine = subject.machine;
  std::optional<Version> libstdcxx;
  for (const std::string& folder : machine.library_folders) {
    const std::optional<ElfFile> elf = read_elf(folder + "/libstdc++.so.6");
    if (!elf || elf->machine != machine.architecture) continue;
    libstdcxx = highest(elf->definitions, "GLIBCXX_");
    break;
  }
  for (const Distribution& distribution : subject.environment.distributions) {
    if (subject.environment.find(distribution.name) != &distribution) continue;
    const Needs needs = needs_of(distribution, machine.architecture);
    const std::string again =
        fmt::format("{} install --force-reinstall {}{}", subject.pip(), distribution.name, exact(distribution));
    if (!needs.foreign_file.empty() && !needs.glibc) {
      findings.push_back({"wrong-machine", Severity::kProblem,
                          fmt::format("{} of {} is for {}, but this machine is {}", needs.foreign_file,
                                      label(distribution), needs.foreign_machine, machine.architecture),
                          "the library cannot be loaded: \"wrong ELF class\" or \"cannot open shared object file\"",
                          again, ""});
    }
    if (machine.glibc && needs.glibc && *machine.glibc < *needs.glibc) {
      findings.push_back(
          {"glibc", Severity::kProblem,
           fmt::format("{} of {} needs glibc {}, but this system has {}", needs.glibc_file, label(distribution),
                       version_text(*needs.glibc), version_text(*machine.glibc)),
           "the import fails with \"version GLIBC_... not found\"",
           fmt::format("{} install --force-reinstall --only-binary :all: {}   (pip picks a wheel for this "
                       "system; or use a newer system image)",
                       subject.pip(), distribution.name),
           ""});
    }
    if (libstdcxx && needs.libstdcxx && *libstdcxx < *needs.libstdcxx) {
      findings.push_back(
          {"libstdcxx", Severity::kProblem,
           fmt::format("{} of {} needs GLIBCXX_{}, but libstdc++ offers up to {}", needs.libstdcxx_file,
                       label(distribution), version_text(*needs.libstdcxx), version_text(*libstdcxx)),
           "the import fails with \"version GLIBCXX_... not found\", or, when another copy is loaded first, "
           "crashes",
           "apt-get install -y libstdc++6   (in conda: conda install -c conda-forge libstdcxx-ng)", ""});
    }
  }
}

void check_openmp(const Subject& subject, Findings& findings) {
  std::map<std::string, std::string> runtimes;  // first package by runtime
  const auto look = [&](const std::string& file, const std::string& owner) {
    const std::string name = file.substr(file.rfind('/') + 1);
    for (const char* runtime : {"libiomp5", "libgomp", "libomp"}) {
      if (name.starts_with(runtime) && is_library(name) && name.size() > std::string(runtime).size() &&
          (name[std::string(runtime).size()] == '.' || name[std::string(runtime).size()] == '-')) {
        runtimes.emplace(runtime, owner);
      }
    }
  };
  for (const Distribution& distribution : subject.environment.distributions) {
    for (const std::string& file : distribution.files(kMostScannedFiles)) look(file, distribution.name);
  }
  if (!subject.environment.conda.empty()) {
    for (const std::string& file : list_folder(subject.environment.prefix + "/lib")) look(file, "conda");
  }
  // Copies of libgomp live with each other; Intel's and LLVM's runtime stop the process when they meet another.
  if (runtimes.size() < 2 || (runtimes.count("libiomp5") == 0 && runtimes.count("libomp") == 0)) return;
  std::vector<std::string> list;
  for (const auto& [runtime, owner] : runtimes) list.push_back(runtime + " (" + owner + ")");
  findings.push_back(
      {"openmp-duplicates", Severity::kWarning,
       fmt::format("several OpenMP runtimes can meet in one process: {}", join(list, ", ")),
       "\"OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized\" aborts the "
       "process; with libgomp, threads of both compete and can hang after a fork",
       "install the packages from one channel (all from pip, or all from conda-forge with 'nomkl'); until then "
       "import only one of them in a process",
       ""});
}

}  // namespace

void check_numpy_abi(const Subject& subject, Findings& findings) {
  const Distribution* numpy = subject.environment.find("numpy");
  if (numpy == nullptr || !numpy->parsed || numpy->parsed->release(0) < 2) return;
  const std::string why =
      "\"A module that was compiled using NumPy 1.x cannot be run in NumPy 2\": the import ends in \"_ARRAY_API not "
      "found\", or "
      "native code reads arrays at the wrong places and dies by a segmentation fault";
  const Distribution* tensorflow = subject.tensorflow();
  const std::optional<Version> since = Version::parse(subject.table.numpy2_since);
  if (tensorflow != nullptr && since && *tensorflow->parsed < *since) {
    findings.push_back(
        {"numpy-abi", Severity::kProblem,
         fmt::format("{} is built for NumPy 1, but {} is installed", label(*tensorflow), label(*numpy)), why,
         fmt::format("{} install 'numpy<2'   (or tensorflow>={})", subject.pip(), subject.table.numpy2_since),
         subject.table.source("numpy")});
  }
  uint64_t budget = kSearchedInAll;
  for (const Distribution& distribution : subject.environment.distributions) {
    if (distribution.name == "numpy" || &distribution == tensorflow) continue;
    if (!requires_package(distribution, "numpy") && !is_core(subject, distribution.name)) continue;
    const std::string module = module_for_numpy1(distribution, budget);
    if (module.empty()) continue;
    findings.push_back(
        {"numpy-abi", Severity::kProblem,
         fmt::format("{} of {} is built for NumPy 1, but {} is installed", module, label(distribution), label(*numpy)),
         why, fmt::format("{} install -U {}   (or 'numpy<2')", subject.pip(), distribution.name),
         subject.table.source("numpy")});
  }
}

void check_cuda(const Subject& subject, Findings& findings) {
  const std::vector<NvidiaPackage> packages = nvidia_packages(subject.environment);
  std::map<std::string, std::vector<const NvidiaPackage*>> by_part;
  for (const NvidiaPackage& package : packages) by_part[package.part].push_back(&package);
  for (const auto& [part, list] : by_part) {
    if (list.size() < 2 || list[0]->distribution->name == list[1]->distribution->name) continue;
    findings.push_back(
        {"cuda-duplicates", Severity::kProblem,
         fmt::format("{} and {} are both installed", label(*list[0]->distribution), label(*list[1]->distribution)),
         "both write the folder nvidia/; libraries of two CUDA versions are mixed, and the first GPU kernel "
         "ends in an error or a crash",
         fmt::format("{} uninstall -y {}", subject.pip(), list[0]->distribution->name), ""});
  }
  const Distribution* tensorflow = subject.tensorflow();
  const TensorFlowRow* row = tensorflow == nullptr ? nullptr : subject.table.row_of(*tensorflow->parsed);
  const std::optional<Version> cuda = row == nullptr ? std::nullopt : Version::parse(row->cuda);
  const bool for_cpu_only = tensorflow != nullptr && tensorflow->name.find("-cpu") != std::string::npos;
  if (!cuda || for_cpu_only || (packages.empty() && !subject.machine.gpu)) return;
  const int major = static_cast<int>(cuda->release(0));

  const auto runtime = by_part.find("cuda-runtime");
  const bool fits = runtime == by_part.end() || std::any_of(runtime->second.begin(), runtime->second.end(),
                                                            [&](const auto* p) { return p->cuda == major; });
  if (!fits) {
    findings.push_back(
        {"cuda-version", Severity::kProblem,
         fmt::format("{} was built for CUDA {}, but {} is installed", label(*tensorflow), row->cuda,
                     label(*runtime->second.front()->distribution)),
         "TensorFlow does not find the libraries it was linked to: \"Cannot dlopen some GPU libraries\", no GPU",
         cuda_fix(subject, *tensorflow), subject.table.source("builds")});
  }
  const auto cudnn = by_part.find("cudnn");
  if (cudnn != by_part.end()) {
    const Distribution& found = *cudnn->second.front()->distribution;
    if (found.parsed) check_cudnn(subject, *tensorflow, *row, *found.parsed, found.name, findings);
  } else if (subject.machine.gpu) {
    bool any = false;
    for (const std::string& folder : subject.machine.library_folders) {
      const std::optional<Version> version = library_version(folder, "libcudnn");
      if (!version) continue;
      any = true;
      // "libcudnn.so.8" alone has the major version only.
      if (version->release_size() > 1 ||
          version->release(0) != Version::parse(row->cudnn).value_or(*version).release(0)) {
        check_cudnn(subject, *tensorflow, *row, *version, folder, findings);
      }
      break;
    }
    if (!any) {
      findings.push_back({"cuda-missing", Severity::kWarning,
                          fmt::format("an NVIDIA driver is loaded, but there is no cuDNN for {}", label(*tensorflow)),
                          "TensorFlow runs on the CPU and says so in one line that is easily missed",
                          cuda_fix(subject, *tensorflow), subject.table.source("builds")});
    }
  }
  check_driver(subject, *tensorflow, major, findings);
}

void check_native(const Subject& subject, Findings& findings) {
  check_cpu(subject, findings);
  check_loaded_libraries(subject, findings);
  check_openmp(subject, findings);
}

}  // namespace leadline::guard
