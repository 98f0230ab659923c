// SPDX-License-Identifier: Apache-2.0
// What the checks of doctor look at, and the list they write to. Tests make subjects of their own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/cgroup.h"
#include "guard/compatibility.h"
#include "guard/pep440.h"
#include "guard/python_env.h"
#include "leadline/budget.h"
#include "leadline/guard/doctor.h"

namespace leadline::guard {

/// The machine as far as checks ask; nothing or empty where it is unknown.
struct Machine {
  std::string architecture;            ///< "x86_64"
  std::set<std::string> cpu_features;  ///< flags of /proc/cpuinfo; empty: unknown
  std::optional<Version> glibc;
  std::optional<Version> nvidia_driver;
  bool gpu = false;                          ///< an NVIDIA driver is loaded
  std::vector<std::string> library_folders;  ///< where the loader finds libraries
  std::string working_folder;
  std::map<std::string, std::string> variables;  ///< TF_USE_LEGACY_KERAS, ...

  MemoryLimits memory;
  std::optional<int64_t> memory_total;
  std::optional<int64_t> swap_total;
  std::optional<int64_t> oom_kills;
  std::optional<int64_t> overcommit;  ///< vm.overcommit_memory
  std::optional<int64_t> limit_address_space;
  std::optional<int64_t> limit_processes;  ///< the smaller of RLIMIT_NPROC and pids.max
  std::optional<int64_t> limit_files;
  std::optional<int64_t> limit_stack;
  std::optional<int64_t> shared_memory;  ///< size of /dev/shm
  std::string temporary_folder;
  std::optional<int64_t> temporary_free;
};

Machine read_machine(const SystemPaths& paths);

struct Subject {
  PythonEnvironment environment;
  Machine machine;
  bool deep = false;  ///< read the contents of all files
  const Compatibility& table = compatibility();

  const Distribution* tensorflow() const;
  /// "python -m pip", with the interpreter in question.
  std::string pip() const;
};

using Findings = std::vector<Finding>;

void check_python(const Subject& subject, Findings& findings);
void check_tensorflow(const Subject& subject, Findings& findings);
void check_lite(const Subject& subject, Findings& findings);
void check_requirements(const Subject& subject, Findings& findings);
void check_installation(const Subject& subject, Findings& findings);
void check_files(const Subject& subject, Findings& findings);
void check_numpy_abi(const Subject& subject, Findings& findings);
void check_cuda(const Subject& subject, Findings& findings);
void check_native(const Subject& subject, Findings& findings);
void check_machine(const Subject& subject, Findings& findings);

/// All checks; worst findings first.
Findings run_checks(const Subject& subject, bool machine);

/// A word for a shell, in quotes where it needs them: folders may be called anything.
std::string shell_word(const std::string& text);

/// "name version" as messages have it.
std::string label(const Distribution& distribution);

/// "==2.1", or nothing for a version that is none.
std::string exact(const Distribution& distribution);

/// Whether the package is one that kernels die of: TensorFlow, NumPy, protobuf, ...
bool is_core(const Subject& subject, const std::string& name);

}  // namespace leadline::guard
