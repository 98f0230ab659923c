// SPDX-License-Identifier: Apache-2.0
#include "guard/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "core/cgroup.h"
#include "guard/units.h"
#include "io/descriptor.h"

namespace leadline::guard {
namespace {

constexpr int kRounds =
    200;  // a tree that still grows after as many is killed as it was last seen, and looked at again

std::string proc_path(pid_t pid, const char* name) { return "/proc/" + std::to_string(pid) + "/" + name; }

std::optional<pid_t> parse_pid(std::string_view text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return pid;
}

template <typename Visit>
void for_each_number(const std::string& folder, Visit visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(folder.c_str()), &closedir);
  if (directory == nullptr) return;
  while (const dirent* entry = readdir(directory.get())) {
    if (const std::optional<pid_t> pid = parse_pid(entry->d_name)) visit(*pid);
  }
}

struct Stat {
  char state = '?';
  pid_t parent = 0;
  pid_t session = 0;
  uint64_t start = 0;
};

std::optional<Stat> read_stat(pid_t pid) {
  const std::optional<std::string> text = read_text_file(proc_path(pid, "stat"));
  if (!text) return std::nullopt;
  const size_t name_end = text->rfind(')');  // a name may have spaces and parentheses
  if (name_end == std::string::npos) return std::nullopt;
  Stat stat;
  int group = 0;
  // state ppid pgrp session, then 15 fields of no interest before starttime
  constexpr const char* kFormat = " %c %d %d %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu";
  unsigned long long start = 0;
  const char* const fields = text->c_str() + name_end + 1;
  if (sscanf(fields, kFormat, &stat.state, &stat.parent, &group, &stat.session, &start) != 5) return std::nullopt;
  stat.start = start;
  return stat;
}

bool is_dead(const Stat& stat) { return stat.state == 'Z' || stat.state == 'X'; }

/// Children by the kernel's own list, which not every kernel has.
bool children_by_task(pid_t pid, std::vector<pid_t>& children) {
  bool listed = false;
  for_each_number(proc_path(pid, "task"), [&](pid_t task) {
    const std::optional<std::string> text =
        read_text_file(proc_path(pid, "task/") + std::to_string(task) + "/children");
    if (!text) return;
    listed = true;
    std::string_view rest = *text;
    while (!rest.empty()) {
      const size_t size = std::min(rest.find(' '), rest.size());
      if (const std::optional<pid_t> child = parse_pid(rest.substr(0, size))) children.push_back(*child);
      rest.remove_prefix(std::min(size + 1, rest.size()));
    }
  });
  return listed;
}

std::unordered_multimap<pid_t, pid_t> all_children() {
  std::unordered_multimap<pid_t, pid_t> children;
  for_each_number("/proc", [&](pid_t pid) {
    if (const std::optional<Stat> stat = read_stat(pid)) children.emplace(stat->parent, pid);
  });
  return children;
}

bool kernel_lists_children() {
  static const bool lists = access(("/proc/self/task/" + std::to_string(getpid()) + "/children").c_str(), R_OK) == 0;
  return lists;
}

/// Zombies too.
std::vector<pid_t> whole_tree(pid_t root) {
  std::vector<pid_t> tree = {root};
  if (kernel_lists_children()) {
    for (size_t i = 0; i < tree.size(); ++i) children_by_task(tree[i], tree);
    return tree;
  }
  const std::unordered_multimap<pid_t, pid_t> children = all_children();
  for (size_t i = 0; i < tree.size(); ++i) {
    const auto [begin, end] = children.equal_range(tree[i]);
    for (auto it = begin; it != end; ++it) tree.push_back(it->second);
  }
  return tree;
}

/// Proportional share of anonymous and shared pages.
std::optional<int64_t> proportional_memory(pid_t pid) {
  const std::optional<std::string> text = read_text_file(proc_path(pid, "smaps_rollup"));
  if (!text) return std::nullopt;
  const std::optional<int64_t> anonymous = find_number(*text, "Pss_Anon");
  const std::optional<int64_t> shared = find_number(*text, "Pss_Shmem");
  if (!anonymous || !shared) return std::nullopt;
  return (*anonymous + *shared) * kKiB;
}

/// Proportional share of all pages.
std::optional<int64_t> whole_share(pid_t pid) {
  const std::optional<std::string> text = read_text_file(proc_path(pid, "smaps_rollup"));
  const std::optional<int64_t> share = text ? find_number(*text, "Pss") : std::nullopt;
  return share ? std::optional<int64_t>(*share * kKiB) : std::nullopt;
}

bool has_marker(pid_t pid, const std::string& marker) {
  const std::optional<std::string> environment = read_text_file(proc_path(pid, "environ"));
  return environment && environment->find(marker) != std::string::npos;
}

/// Signals the process that `pid` means while `belongs` is true of it; the number may be another's a moment later.
template <typename Belongs>
Descriptor signal_if(pid_t pid, int signal, Belongs belongs) {
  Descriptor process(open_pidfd(pid));
  if (!belongs(pid)) return Descriptor();
  if (process) {
    syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
  } else {
    ::kill(pid, signal);
  }
  return process;
}

void await_end(const std::vector<Descriptor>& processes) {
  constexpr int kMilliseconds = 5000;
  for (const Descriptor& process : processes) {
    pollfd event = {process.get(), POLLIN, 0};
    if (process) poll(&event, 1, kMilliseconds);
  }
}

}  // namespace

int open_pidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

std::optional<ProcessMemory> process_memory(pid_t pid) {
  const std::optional<std::string> text = read_text_file(proc_path(pid, "status"));
  if (!text) return std::nullopt;
  const auto kilobytes = [&](const char* key) { return find_number(*text, key).value_or(0); };
  ProcessMemory memory;
  memory.resident = (kilobytes("RssAnon") + kilobytes("RssShmem")) * kKiB;
  memory.file = kilobytes("RssFile") * kKiB;
  memory.high_water = kilobytes("VmHWM") * kKiB;
  return memory;
}

std::vector<Process> process_tree(pid_t root) {
  std::vector<Process> tree;
  for (const pid_t pid : whole_tree(root)) {
    const std::optional<Stat> stat = read_stat(pid);
    if (stat && !is_dead(*stat)) tree.push_back({pid, stat->start});
  }
  if (!tree.empty() && tree[0].pid != root) tree.clear();
  return tree;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  if (kernel_lists_children()) {
    children_by_task(parent, children);
    return children;
  }
  const std::unordered_multimap<pid_t, pid_t> all = all_children();
  const auto [begin, end] = all.equal_range(parent);
  for (auto it = begin; it != end; ++it) children.push_back(it->second);
  return children;
}

int64_t tree_memory(const std::vector<Process>& tree, int64_t limit) {
  int64_t sum = 0;
  for (const auto [pid, start] : tree) sum += process_memory(pid).value_or(ProcessMemory{}).resident;
  if (tree.size() < 2 || limit == 0 || sum <= limit) return sum;
  int64_t shared_once = 0;
  for (const auto [pid, start] : tree) {
    const std::optional<int64_t> share = proportional_memory(pid);
    shared_once += share ? *share : process_memory(pid).value_or(ProcessMemory{}).resident;
  }
  return std::min(sum, shared_once);
}

int64_t tree_peak(const std::vector<Process>& tree, int64_t known) {
  int64_t peak = 0;
  int64_t sum = 0;
  for (const auto [pid, start] : tree) {
    const ProcessMemory memory = process_memory(pid).value_or(ProcessMemory{});
    peak = std::max(peak, memory.high_water);
    sum += memory.resident + memory.file;
  }
  if (tree.size() < 2 || sum <= std::max(known, peak)) return peak;
  int64_t shared_once = 0;  // without those that ended since: nobody knows what they shared
  for (const auto [pid, start] : tree) shared_once += whole_share(pid).value_or(0);
  return std::max(peak, shared_once > 0 ? shared_once : sum);
}

void kill_tree(pid_t root) {
  std::unordered_set<pid_t> stopped;
  std::vector<pid_t> tree;
  // Top down: a stopped process neither starts nor reaps others, so what is found below it keeps its number.
  for (int round = 0; round < kRounds; ++round) {
    tree = whole_tree(root);
    bool grew = false;
    for (const pid_t pid : tree) {
      if (!stopped.insert(pid).second) continue;
      if (pid != getpid()) ::kill(pid, SIGSTOP);
      grew = true;
    }
    if (!grew) break;
  }
  const std::unordered_set<pid_t> members(tree.begin(), tree.end());
  std::vector<Descriptor> killed;
  for (size_t i = tree.size(); i-- > 1;) {
    killed.push_back(signal_if(tree[i], SIGKILL, [&](pid_t pid) {
      const std::optional<Stat> stat = read_stat(pid);
      return stat && (members.contains(stat->parent) || stopped.contains(pid));
    }));
  }
  ::kill(root, SIGKILL);
  await_end(killed);
}

void kill_leftovers(pid_t session, const std::string& marker, const std::vector<Process>& known) {
  const pid_t self = getpid();
  const auto is_known = [&](pid_t pid, uint64_t start) {
    return std::ranges::any_of(known, [&](const Process& one) { return one.pid == pid && one.start == start; });
  };
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Descriptor> killed;
    for_each_number("/proc", [&](pid_t pid) {
      const auto belongs = [&](pid_t candidate) {
        const std::optional<Stat> stat = read_stat(candidate);
        if (!stat || is_dead(*stat)) return false;
        return (session != 0 && stat->session == session) || is_known(candidate, stat->start) ||
               has_marker(candidate, marker);
      };
      if (pid == self || !belongs(pid)) return;
      killed.push_back(signal_if(pid, SIGKILL, belongs));
    });
    if (killed.empty()) return;
    await_end(killed);
  }
}

void kill_children() {
  constexpr int kAttempts = 2500;  // of 2 ms
  const pid_t self = getpid();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::vector<pid_t> tree = whole_tree(self);
    for (size_t i = 1; i < tree.size(); ++i) ::kill(tree[i], SIGKILL);
    pid_t reaped = 0;
    do {
      reaped = waitpid(-1, nullptr, WNOHANG);
    } while (reaped > 0);
    if (reaped < 0 && errno == ECHILD) return;
    usleep(2000);
  }
}

}  // namespace leadline::guard
