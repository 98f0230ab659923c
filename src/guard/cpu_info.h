// SPDX-License-Identifier: Apache-2.0
// The processor as /proc/cpuinfo describes it.
#pragma once

#include <string>
#include <vector>

#include "core/cgroup.h"

namespace leadline::guard {

struct CpuInfo {
  std::string model;                  ///< "unknown" when the file does not say
  std::vector<std::string> features;  ///< every flag, as the kernel spells them
};

CpuInfo read_cpu_info(const SystemPaths& paths);

/// Those flags that matter to numeric code, in the order of their age.
std::vector<std::string> numeric_features(const CpuInfo& cpu);

/// Those that other CPUs of the same kind have besides `features`; empty when nothing is known of this one.
std::vector<std::string> missing_numeric_features(const std::vector<std::string>& features);

}  // namespace leadline::guard
