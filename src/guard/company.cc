// SPDX-License-Identifier: Apache-2.0
#include "guard/company.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "guard/process_tree.h"
#include "io/descriptor.h"

namespace leadline::guard {
namespace {

constexpr size_t kMostNeighbours = 100;  // containers have few; a whole machine's worth is not looked at
/// As if half of all memory were theirs in addition; 1000 is the most.
constexpr int kOffered = 500;
constexpr int kMostScore = 1000;

std::string score_file(pid_t pid) { return "/proc/" + std::to_string(pid) + "/oom_score_adj"; }

std::optional<int> score_of(pid_t pid) {
  const std::optional<std::string> text = read_text_file(score_file(pid));
  int score = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), score).ec != std::errc()) return std::nullopt;
  return score;
}

}  // namespace

CompanyProbe::CompanyProbe(const SystemPaths& paths) {
  for (const MemoryGroup& group : memory_groups(paths)) {
    if (group.limit) members_ = group.directory + "/cgroup.procs";
  }
}

bool CompanyProbe::has_children() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

void CompanyProbe::offer_workers() {
  const std::optional<int> own = score_of(getpid());
  if (!own || !has_children()) return;
  const std::string offered = std::to_string(std::min(*own + kOffered, kMostScore));
  for (const Process& process : process_tree(getpid())) {
    if (process.pid == getpid() || score_of(process.pid) != own) continue;
    const Descriptor file(open(score_file(process.pid).c_str(), O_WRONLY | O_CLOEXEC));
    if (file) (void)!write(file.get(), offered.data(), offered.size());  // it may have ended, or be another user's
  }
}

Company CompanyProbe::look() const {
  Company company;
  std::vector<pid_t> own = {getpid()};
  if (has_children()) {
    for (const Process& process : process_tree(getpid())) {
      if (process.pid == getpid()) continue;
      own.push_back(process.pid);
      company.workers += process_memory(process.pid).value_or(ProcessMemory{}).resident;
      ++company.worker_count;
    }
  }
  if (members_.empty()) return company;
  const std::string text = read_text_file(members_).value_or("");
  size_t seen = 0;
  for (const char *at = text.data(), *end = at + text.size(); at < end && seen < kMostNeighbours; ++at) {
    pid_t pid = 0;
    const auto [stop, error] = std::from_chars(at, end, pid);
    if (error != std::errc()) break;
    at = stop;
    if (pid <= 0 || std::find(own.begin(), own.end(), pid) != own.end()) continue;  // 0: of another namespace
    company.neighbours += process_memory(pid).value_or(ProcessMemory{}).resident;
    ++seen;
  }
  return company;
}

}  // namespace leadline::guard
