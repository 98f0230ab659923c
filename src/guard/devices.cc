// SPDX-License-Identifier: Apache-2.0
#include "leadline/guard/devices.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "core/error.h"
#include "core/memory_limits.h"
#include "core/thread_pool.h"
#include "guard/cpu_info.h"
#include "guard/device_list.h"
#include "guard/device_probe.h"
#include "guard/nvidia.h"
#include "guard/opencl.h"
#include "guard/untrusted_file.h"
#include "leadline/types.h"

namespace leadline::guard {
namespace {

Device cpu_device(const SystemPaths& paths) {
  const CpuInfo cpu = read_cpu_info(paths);
  Device device;
  device.kind = "CPU";
  device.api = "native";
  device.model = cpu.model;
  device.cores = usable_cpus();
  device.features = numeric_features(cpu);
  device.runs = true;
  const std::optional<int64_t> total = find_number(read_start(paths.proc + "/meminfo", 65536).value_or(""), "MemTotal");
  if (total && *total >= 0 && *total < (int64_t{1} << 50)) device.memory_bytes = *total * 1024;
  const int64_t available = read_memory_limits().available();
  if (available != INT64_MAX) device.memory_available = available;
  return device;
}

/// Keeps the GPUs that CUDA_VISIBLE_DEVICES names, in its order, as CUDA and so TensorFlow number them. Names of
/// devices (GPU-8932f937...) are not resolved: all stay.
void apply_visibility(const std::string& visible, std::vector<Device>& gpus, std::vector<std::string>& notes) {
  if (visible == "all" || gpus.empty()) return;
  std::vector<Device> kept;
  std::string_view rest = visible;
  while (!rest.empty()) {
    const size_t size = std::min(rest.find(','), rest.size());
    const std::string_view part = rest.substr(0, size);
    rest.remove_prefix(std::min(size + 1, rest.size()));
    if (part.empty() || part.size() > 4 || part.find_first_not_of("0123456789") != std::string_view::npos) {
      if (part.starts_with("GPU-") || part.starts_with("MIG-")) return;
      break;  // as CUDA does: what follows an invalid entry does not count
    }
    const size_t index = static_cast<size_t>(std::atoi(std::string(part).c_str()));
    if (index >= gpus.size()) break;
    kept.push_back(gpus[index]);
  }
  if (kept.size() != gpus.size()) {
    notes.push_back(fmt::format("NVIDIA: CUDA_VISIBLE_DEVICES={} hides {} of {} GPUs", printable(visible),
                                gpus.size() - kept.size(), gpus.size()));
  }
  gpus = std::move(kept);
}

/// GPUs by NVML, or by /proc when NVML does not answer.
std::vector<Device> nvidia_gpus(const DeviceSources& sources, ProbeResult nvml, const std::string& driver,
                                std::vector<std::string>& notes) {
  if (!nvml.note.empty()) notes.push_back(nvml.note);
  if (nvml.devices.empty()) {
    for (const std::string& model : nvidia_models(sources.paths)) {
      Device device;
      device.kind = "GPU";
      device.api = "CUDA";
      device.model = model;
      nvml.devices.push_back(std::move(device));
    }
  }
  for (Device& device : nvml.devices) {
    if (device.driver.empty()) device.driver = driver;
  }
  apply_visibility(sources.visible_gpus, nvml.devices, notes);
  return std::move(nvml.devices);
}

bool same_card(const Device& opencl, const std::vector<Device>& gpus) {
  return std::any_of(gpus.begin(), gpus.end(), [&](const Device& gpu) { return gpu.model == opencl.model; });
}

}  // namespace

DeviceList list_devices(const DeviceSources& sources) {
  DeviceList list;
  list.devices.push_back(cpu_device(sources.paths));
  const auto end = std::chrono::steady_clock::now() + sources.timeout;
  const std::optional<std::string> driver = nvidia_driver_version(sources.paths);
  // Both start before either is waited for.
  std::optional<ChildProbe> nvml;
  if (driver) nvml.emplace("NVIDIA (NVML)", [&] { return probe_nvml(sources.nvml); });
  ChildProbe opencl("OpenCL", [&] { return probe_opencl(sources.opencl); });

  std::vector<Device> gpus;
  if (driver) {
    gpus = nvidia_gpus(sources, nvml->result(end), *driver, list.notes);
  } else {
    list.notes.push_back("NVIDIA: no driver is loaded (no /proc/driver/nvidia)");
  }
  ProbeResult others = opencl.result(end);
  if (!others.note.empty()) list.notes.push_back(others.note);
  for (Device& device : others.devices) {
    if (device.kind == "GPU" && same_card(device, gpus)) continue;  // CUDA has it already
    list.devices.push_back(std::move(device));
  }
  list.devices.insert(list.devices.begin() + 1, gpus.begin(), gpus.end());
  std::map<std::string, int> counts;
  for (Device& device : list.devices) {
    if (device.model.empty()) device.model = "unknown";
    device.name = fmt::format("/{}:{}", device.kind, counts[device.kind]++);
  }
  return list;
}

DeviceList devices(double timeout_seconds) {
  require(timeout_seconds > 0 && timeout_seconds <= 3600, ErrorCode::kInvalidArgument,
          "a timeout of {} seconds: expected more than 0 and at most 3600", timeout_seconds);
  DeviceSources sources;
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  sources.visible_gpus = visible == nullptr ? "all" : visible;
  sources.timeout = std::chrono::milliseconds(static_cast<int64_t>(std::ceil(timeout_seconds * 1000)));
  return list_devices(sources);
}

DeviceList find_devices() { return devices(); }

}  // namespace leadline::guard
