// SPDX-License-Identifier: Apache-2.0
#include "guard/cgroup_scope.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <exception>
#include <string_view>
#include <vector>

namespace leadline::guard {
namespace {

/// The caller's path in the unified hierarchy.
std::optional<std::string> own_group(const SystemPaths& paths) {
  const std::optional<std::string> text = read_text_file(paths.proc + "/self/cgroup");
  if (!text) return std::nullopt;
  size_t at = text->starts_with("0::") ? 0 : text->find("\n0::");
  if (at == std::string::npos) return std::nullopt;
  at = text->find("0::", at) + 3;
  std::string path = text->substr(at, text->find('\n', at) - at);
  if (path.find("..") != std::string::npos) return std::nullopt;  // outside the namespace's view
  if (path == "/") path.clear();
  return path;
}

bool has_spaced_word(const std::string& text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || text[at - 1] == ' ') && (end == text.size() || text[end] == ' ' || text[end] == '\n')) return true;
  }
  return false;
}

bool write_file(const std::string& path, const std::string& text) {
  // O_CREAT makes nothing in a control group's folder; it is for trees that stand for one.
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  return file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// Folders in which a group with a memory limit can be made.
std::vector<std::string> parents(const SystemPaths& paths) {
  std::vector<std::string> found;
  const std::optional<std::string> group = own_group(paths);
  if (!group) return found;
  for (const std::string& mount : {paths.cgroup, paths.cgroup + "/unified"}) {
    const std::string own = mount + *group;
    const auto controls_memory = [](const std::string& folder) {
      const std::optional<std::string> text = read_text_file(folder + "/cgroup.subtree_control");
      return text && has_spaced_word(*text, "memory");
    };
    if (controls_memory(own)) found.push_back(own);
    if (group->empty()) continue;
    // A group with processes cannot hand out controllers, so ours stands beside it; but not to get around its limit.
    const std::optional<std::string> limit = read_text_file(own + "/memory.max");
    const std::string above = own.substr(0, own.rfind('/'));
    if (limit && limit->starts_with("max") && controls_memory(above)) found.push_back(above);
  }
  return found;
}

}  // namespace

std::optional<CgroupScope> CgroupScope::make(const GuardLimits& limits, const SystemPaths& paths) {
  static std::atomic<int> count = 0;
  if (limits.memory_bytes <= 0) return std::nullopt;
  for (const std::string& parent : parents(paths)) {
    const std::string folder = parent + "/leadline-guard-" + std::to_string(getpid()) + "-" + std::to_string(++count);
    if (mkdir(folder.c_str(), 0755) != 0) continue;
    CgroupScope scope(folder, Descriptor());
    if (!write_file(folder + "/memory.max", std::to_string(limits.memory_bytes))) continue;
    write_file(folder + "/memory.swap.max", "0");   // absent without swap accounting
    write_file(folder + "/memory.oom.group", "1");  // since Linux 4.19
    if (limits.processes > 0) write_file(folder + "/pids.max", std::to_string(limits.processes));
    scope.procs_ = Descriptor(open((folder + "/cgroup.procs").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (scope.procs_) return scope;
  }
  return std::nullopt;
}

CgroupScope::~CgroupScope() {
  if (folder_.empty()) return;
  procs_.close();
  try {
    kill_all();
  } catch (const std::exception&) {  // no memory for a path; the supervisor has killed the tree one by one
  }
  for (int attempt = 0; attempt < 500 && rmdir(folder_.c_str()) != 0 && errno == EBUSY; ++attempt) usleep(2000);
}

int64_t CgroupScope::number(const char* file, const char* key) const {
  const std::optional<std::string> text = read_text_file(folder_ + "/" + file);
  if (!text) return 0;
  if (*key != '\0') return find_number(*text, key).value_or(0);
  int64_t value = 0;
  std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

int64_t CgroupScope::current_bytes() const {
  // memory.current has the cache of every file that was read; it fills what the limit leaves, and shrinks when it must.
  const std::optional<std::string> text = read_text_file(folder_ + "/memory.stat");
  if (!text) return number("memory.current", "");
  return find_number(*text, "anon").value_or(0) + find_number(*text, "shmem").value_or(0);
}
int64_t CgroupScope::peak_bytes() const { return number("memory.peak", ""); }
int64_t CgroupScope::oom_kills() const { return number("memory.events", "oom_kill"); }
bool CgroupScope::hit_process_limit() const { return number("pids.events", "max") > 0; }
void CgroupScope::kill_all() { write_file(folder_ + "/cgroup.kill", "1"); }

}  // namespace leadline::guard
