// SPDX-License-Identifier: Apache-2.0
// A control group (v2) of the guard's own, where the machine lets us make one. Removed, with all in it, at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/cgroup.h"
#include "io/descriptor.h"
#include "leadline/guard/process_report.h"

namespace leadline::guard {

class CgroupScope {
 public:
  /// Makes a group with these limits beside or below the caller's. Nothing where no memory controller is delegated, or
  /// where the group would escape a limit of the caller's.
  static std::optional<CgroupScope> make(const GuardLimits& limits, const SystemPaths& paths);
  ~CgroupScope();
  CgroupScope(CgroupScope&& other) noexcept
      : folder_(std::exchange(other.folder_, {})), procs_(std::move(other.procs_)) {}

  /// A child joins by writing "0" here.
  int procs() const { return procs_.get(); }
  const std::string& folder() const { return folder_; }

  int64_t current_bytes() const;  ///< without the cache of files
  int64_t peak_bytes() const;     ///< with it; 0 where the kernel does not keep it
  int64_t oom_kills() const;
  bool hit_process_limit() const;
  void kill_all();

 private:
  CgroupScope(std::string folder, Descriptor procs) : folder_(std::move(folder)), procs_(std::move(procs)) {}
  int64_t number(const char* file, const char* key) const;

  std::string folder_;
  Descriptor procs_;
};

}  // namespace leadline::guard
