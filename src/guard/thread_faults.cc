// SPDX-License-Identifier: Apache-2.0
#include "guard/thread_faults.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "core/cgroup.h"

namespace leadline::guard {
namespace {

/// Minor and major faults: fields 10 and 12 of /proc/PID/task/TID/stat.
int64_t faults_of(const std::string& path) {
  const std::string text = read_text_file(path).value_or("");
  const size_t name_end = text.rfind(')');  // a name may have spaces and parentheses
  long long minor = 0;
  long long major = 0;
  if (name_end == std::string::npos) return 0;
  if (sscanf(text.c_str() + name_end + 1, " %*c %*s %*s %*s %*s %*s %*s %lld %*s %lld", &minor, &major) != 2) return 0;
  return minor + major;
}

}  // namespace

std::vector<ThreadFaults> ThreadFaultProbe::since_last() {
  std::vector<ThreadFaults> now;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(folder_.c_str()), &closedir);
  if (directory == nullptr) return now;
  while (const dirent* entry = readdir(directory.get())) {
    const int thread = std::atoi(entry->d_name);
    if (thread > 0 && thread != syscall(SYS_gettid))
      now.push_back({thread, faults_of(folder_ + "/" + entry->d_name + "/stat")});
  }
  std::vector<ThreadFaults> grown;
  if (!last_.empty()) {
    for (const ThreadFaults& thread : now) {
      const auto before = std::find_if(last_.begin(), last_.end(),
                                       [&](const ThreadFaults& other) { return other.thread == thread.thread; });
      const int64_t faults = thread.faults - (before != last_.end() ? before->faults : 0);
      if (faults > 0) grown.push_back({thread.thread, faults});
    }
    std::sort(grown.begin(), grown.end(),
              [](const ThreadFaults& a, const ThreadFaults& b) { return a.faults > b.faults; });
  }
  last_ = std::move(now);
  return grown;
}

}  // namespace leadline::guard
