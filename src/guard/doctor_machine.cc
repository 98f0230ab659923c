// SPDX-License-Identifier: Apache-2.0
// Checks of doctor about limits: memory, swap, ulimits, shared memory, disk. Thresholds are round numbers at which
// TensorFlow's own import or the first epoch is known to fail.
#include <fmt/core.h>

#include "guard/doctor_subject.h"
#include "guard/units.h"

namespace leadline::guard {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kTensorFlowImport = 600 * kMiB;  // resident after `import tensorflow` 2.21: about 450 MB

void check_memory(const Subject& subject, Findings& findings) {
  const Machine& machine = subject.machine;
  const bool tensorflow = subject.tensorflow() != nullptr;
  const int64_t available = machine.memory.available();
  const bool in_group = machine.memory.cgroup_available >= 0 && machine.memory.cgroup_available == available;
  const int64_t wanted = tensorflow ? 2 * kGiB : 512 * kMiB;
  if (available < wanted) {
    const bool too_little = available < (tensorflow ? kTensorFlowImport : 128 * kMiB);
    findings.push_back(
        {"memory-limit", too_little ? Severity::kProblem : Severity::kWarning,
         fmt::format("{} of memory can be used{}", format_bytes(available),
                     in_group ? ", because the container's limit (cgroup) leaves no more" : ""),
         "beyond it the kernel kills the process (SIGKILL): the notebook only says that the kernel died",
         in_group ? "give the container more (docker run -m 8g), or run jobs with a budget: "
                    "leadline.lite.Interpreter(..., budget=\"500MB\")"
                  : "close other programs, or run jobs with a budget: leadline.lite.Interpreter(..., budget=\"500MB\")",
         ""});
  }
  if (machine.oom_kills.value_or(0) > 0) {
    findings.push_back(
        {"oom-kills", Severity::kWarning,
         fmt::format("the kernel has killed {} process(es) of this container for lack of memory", *machine.oom_kills),
         "this is how kernels die without a message",
         "find the job that takes too much: leadline guard --memory 2GB -- python job.py", ""});
  }
  if (machine.swap_total == 0) {
    findings.push_back(
        {"swap", Severity::kNote, "there is no swap",
         "a peak above the memory ends in a kill at once instead of a slow moment",
         "fallocate -l 4G /swapfile && chmod 600 /swapfile && mkswap /swapfile && swapon /swapfile   (as root)", ""});
  }
  if (machine.overcommit == 2) {
    findings.push_back(
        {"overcommit", Severity::kWarning, "vm.overcommit_memory is 2",
         "large reservations that would never be touched are refused: TensorFlow and forked workers fail with "
         "\"Cannot allocate memory\" while much is free",
         "sysctl vm.overcommit_memory=0   (as root)", ""});
  }
}

void check_limits(const Machine& machine, Findings& findings) {
  if (machine.limit_address_space) {
    findings.push_back(
        {"limit-address-space", *machine.limit_address_space < 16 * kGiB ? Severity::kWarning : Severity::kNote,
         fmt::format("the address space is limited to {} (ulimit -v)", format_bytes(*machine.limit_address_space)),
         "native libraries reserve far more than they use; they abort with std::bad_alloc when they cannot",
         "ulimit -v unlimited   (or limit memory by a cgroup or leadline guard instead)", ""});
  }
  if (machine.limit_processes && *machine.limit_processes < 512) {
    findings.push_back(
        {"limit-processes", Severity::kWarning,
         fmt::format("at most {} processes and threads may exist (ulimit -u, pids.max)", *machine.limit_processes),
         "TensorFlow makes several threads per CPU; std::system_error \"Resource temporarily unavailable\" "
         "aborts the process",
         "ulimit -u 4096   (container: --pids-limit 4096)", ""});
  }
  if (machine.limit_files && *machine.limit_files < 1024) {
    findings.push_back({"limit-files", Severity::kWarning,
                        fmt::format("at most {} files may be open (ulimit -n)", *machine.limit_files),
                        "input pipelines and notebooks with many sockets fail with \"Too many open files\"",
                        "ulimit -n 4096", ""});
  }
  if (machine.limit_stack && *machine.limit_stack < 2 * kMiB) {
    findings.push_back({"limit-stack", Severity::kWarning,
                        fmt::format("stacks are limited to {} (ulimit -s)", format_bytes(*machine.limit_stack)),
                        "deep recursion in compilers (XLA, MLIR) runs over the end: segmentation fault",
                        "ulimit -s 8192", ""});
  }
}

}  // namespace

void check_machine(const Subject& subject, Findings& findings) {
  const Machine& machine = subject.machine;
  check_memory(subject, findings);
  check_limits(machine, findings);
  if (machine.shared_memory && *machine.shared_memory <= 64 * kMiB) {
    findings.push_back(
        {"shared-memory", Severity::kWarning,
         fmt::format("/dev/shm has {} (64 MiB is Docker's default)", format_bytes(*machine.shared_memory)),
         "processes that exchange arrays (data loaders, NCCL) die with \"Bus error\" (SIGBUS) when it is full",
         "docker run --shm-size=2g   (on a machine: mount -o remount,size=2g /dev/shm)", ""});
  }
  if (machine.temporary_free && *machine.temporary_free < kGiB) {
    findings.push_back(
        {"disk-space", *machine.temporary_free < 100 * kMiB ? Severity::kProblem : Severity::kWarning,
         fmt::format("{} has {} free", machine.temporary_folder, format_bytes(*machine.temporary_free)),
         "checkpoints, caches and converters write there; a full disk ends jobs, and a mapped file on it ends in "
         "\"Bus error\"",
         fmt::format("free some, or: export TMPDIR=/a/larger/folder   (du -sh {}/* shows what is large)",
                     shell_word(machine.temporary_folder)),
         ""});
  }
}

}  // namespace leadline::guard
