// SPDX-License-Identifier: Apache-2.0
// What the system's files say about this machine. A file that is missing is a fact that is unknown.
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "guard/cpu_info.h"
#include "guard/doctor_subject.h"
#include "guard/nvidia.h"
#include "guard/untrusted_file.h"

namespace leadline::guard {
namespace {

constexpr size_t kProcBytes = size_t{1} << 20;

std::string variable(const char* name) {
  const char* const value = getenv(name);
  return value == nullptr ? std::string() : value;
}

std::optional<int64_t> soft_limit(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<int64_t>::max()));
}

std::optional<int64_t> number_in(const std::string& path, std::string_view key) {
  const std::optional<std::string> text = read_start(path, kProcBytes);
  return text ? find_number(*text, key) : std::nullopt;
}

std::optional<int64_t> kib_in(const std::string& path, std::string_view key) {
  const std::optional<int64_t> kib = number_in(path, key);
  return kib && *kib >= 0 && *kib < (int64_t{1} << 50) ? std::optional<int64_t>(*kib * 1024) : std::nullopt;
}

/// The number that a file consists of; nothing for "max".
std::optional<int64_t> number_file(const std::string& path) {
  const std::optional<std::string> text = read_start(path, 100);
  return text ? find_number("x " + *text, "x") : std::nullopt;
}

/// The folder of this process's cgroup v2, if that is what it is in.
std::optional<std::string> own_cgroup(const SystemPaths& paths) {
  std::optional<std::string> folder;
  for_each_line(read_start(paths.proc + "/self/cgroup", kProcBytes).value_or(""), [&](std::string_view line) {
    if (line.starts_with("0::/") && line.find("..") == std::string_view::npos)
      folder = paths.cgroup + std::string(line.substr(3));
  });
  return folder;
}

std::optional<int64_t> file_system_bytes(const std::string& path, bool free) {
  struct statvfs status{};
  if (path.empty() || statvfs(path.c_str(), &status) != 0) return std::nullopt;
  const uint64_t blocks = free ? status.f_bavail : status.f_blocks;
  if (status.f_frsize == 0 || blocks > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / status.f_frsize)
    return std::nullopt;
  return static_cast<int64_t>(blocks * status.f_frsize);
}

std::vector<std::string> library_folders(const std::string& architecture) {
  std::vector<std::string> folders;
  const std::string path = variable("LD_LIBRARY_PATH");
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin) folders.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  if (const std::string conda = variable("CONDA_PREFIX"); !conda.empty()) folders.push_back(conda + "/lib");
  folders.push_back("/usr/local/cuda/lib64");
  for (const std::string& name : list_folder("/usr/local")) {
    if (name.starts_with("cuda-")) folders.push_back("/usr/local/" + name + "/lib64");
  }
  for (const std::string& folder :
       {"/usr/lib/" + architecture + "-linux-gnu", "/lib/" + architecture + "-linux-gnu", std::string("/usr/lib64"),
        std::string("/usr/lib"), std::string("/usr/local/lib")}) {
    folders.push_back(folder);
  }
  return folders;
}

}  // namespace

Machine read_machine(const SystemPaths& paths) {
  Machine machine;
  utsname system{};
  if (uname(&system) == 0) machine.architecture = system.machine;
  const CpuInfo cpu = read_cpu_info(paths);
  machine.cpu_features = {cpu.features.begin(), cpu.features.end()};
  machine.glibc = Version::parse(gnu_get_libc_version());
  if (const std::optional<std::string> driver = nvidia_driver_version(paths)) {
    machine.gpu = true;
    machine.nvidia_driver = Version::parse(*driver);
  }
  machine.library_folders = library_folders(machine.architecture);
  char folder[4096];
  if (getcwd(folder, sizeof folder) != nullptr) machine.working_folder = folder;
  machine.variables["TF_USE_LEGACY_KERAS"] = variable("TF_USE_LEGACY_KERAS");

  machine.memory = read_memory_limits();
  machine.memory_total = kib_in(paths.proc + "/meminfo", "MemTotal");
  machine.swap_total = kib_in(paths.proc + "/meminfo", "SwapTotal");
  machine.overcommit = number_file(paths.proc + "/sys/vm/overcommit_memory");
  machine.limit_processes = soft_limit(RLIMIT_NPROC);
  if (const std::optional<std::string> group = own_cgroup(paths)) {
    machine.oom_kills = number_in(*group + "/memory.events", "oom_kill");
    const std::optional<int64_t> tasks = number_file(*group + "/pids.max");
    if (tasks && (!machine.limit_processes || *tasks < *machine.limit_processes)) machine.limit_processes = tasks;
  }
  machine.limit_address_space = soft_limit(RLIMIT_AS);
  machine.limit_files = soft_limit(RLIMIT_NOFILE);
  machine.limit_stack = soft_limit(RLIMIT_STACK);
  machine.shared_memory = file_system_bytes("/dev/shm", false);
  machine.temporary_folder = variable("TMPDIR").empty() ? "/tmp" : variable("TMPDIR");
  machine.temporary_free = file_system_bytes(machine.temporary_folder, true);
  return machine;
}

}  // namespace leadline::guard
