// SPDX-License-Identifier: Apache-2.0
// NVIDIA GPUs: the driver's files in /proc, and NVML where it can be loaded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/cgroup.h"
#include "guard/device_probe.h"

namespace leadline::guard {

/// "535.104.05" of /proc/driver/nvidia/version; nothing when no driver is loaded.
std::optional<std::string> nvidia_driver_version(const SystemPaths& paths);

/// Models of the GPUs that /proc/driver/nvidia/gpus lists.
std::vector<std::string> nvidia_models(const SystemPaths& paths);

/// Loads NVML and asks it for every GPU. To be run in a child: drivers hang and crash.
ProbeResult probe_nvml(const std::string& library);

}  // namespace leadline::guard
