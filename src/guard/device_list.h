// SPDX-License-Identifier: Apache-2.0
// The parts of devices() that tests can feed.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/cgroup.h"
#include "leadline/devices.h"

namespace leadline::guard {

/// Where devices are looked for.
struct DeviceSources {
  SystemPaths paths;
  std::string nvml = "libnvidia-ml.so.1";
  std::string opencl = "libOpenCL.so.1";
  std::string visible_gpus = "all";  ///< CUDA_VISIBLE_DEVICES; "all": it is not set
  std::chrono::milliseconds timeout{5000};
};

DeviceList list_devices(const DeviceSources& sources);

}  // namespace leadline::guard
