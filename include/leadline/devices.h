// SPDX-License-Identifier: Apache-2.0
// Which device a model runs on. Leadline has kernels for "/CPU:0"; what else a machine has, and why it cannot be used
// yet, is found by leadline::guard (leadline/guard/devices.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leadline {

/// One device. Names are those of TensorFlow: "/CPU:0", "/GPU:1".
struct Device {
  std::string name;
  std::string kind;   ///< "CPU", "GPU", "ACCELERATOR"
  std::string api;    ///< how it is reached: "native", "CUDA", "OpenCL"
  std::string model;  ///< "AMD EPYC 7B13", "NVIDIA T4"; "unknown"
  std::string driver;
  int cores = 0;                      ///< CPUs that may be used (affinity, cgroup quota), or compute units; 0: unknown
  int64_t memory_bytes = -1;          ///< in all; -1: unknown
  int64_t memory_available = -1;      ///< that can be used now; -1: unknown
  std::vector<std::string> features;  ///< instruction sets, "compute 7.5", ...
  bool runs = false;                  ///< Leadline has kernels for it
};

struct DeviceList {
  std::vector<Device> devices;     ///< "/CPU:0" first; it is always there
  std::vector<std::string> notes;  ///< why other kinds were not found

  /// The one that a name means: "/GPU:0", "GPU:0", "gpu", "/device:GPU:0"; null when there is none.
  const Device* find(std::string_view name) const;
  std::string to_text() const;
};

/// What to do when a device that is asked for does not exist or has no kernels yet.
enum class MissingDevice {
  kError,     ///< refuse, with a message that lists what exists
  kFallback,  ///< run on "/CPU:0" and keep that message
};

struct DeviceChoice {
  std::string name = "/CPU:0";  ///< where a model will run
  std::string message;          ///< why that is not what was asked for; empty when it is
};

/// The device for `wanted` (empty: "/CPU:0"). Throws Error(kInvalidArgument) for text that is not the name of a device
/// and for a device that does not exist, Error(kUnsupported) for one without kernels; with kFallback only the former.
DeviceChoice choose_device(std::string_view wanted, MissingDevice on_missing = MissingDevice::kError);

/// Looks for the devices of this machine when choose_device() has to say what exists instead of the one asked for.
/// Programs that link leadline::guard set guard::find_devices; without it (null) the answer knows "/CPU:0" alone.
using DeviceFinder = DeviceList (*)();
void set_device_finder(DeviceFinder finder) noexcept;

}  // namespace leadline
