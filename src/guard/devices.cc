// SPDX-License-Identifier: Apache-2.0
#include "leadline/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

namespace leadline {
namespace guard {
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

/// GPUs by NVML, or by /proc when NVML gives no answer.
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

std::string canonical_device_name(std::string_view name) {
  std::string text(name);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  if (const size_t slash = text.rfind('/');
      slash != std::string::npos) {  // also "/job:localhost/replica:0/task:0/device:GPU:0"
    const std::string before = text.substr(0, slash);
    if (!before.empty() && !before.starts_with("/JOB:")) return {};
    text = text.substr(slash + 1);
  }
  if (text.starts_with("DEVICE:")) text = text.substr(7);
  const size_t colon = text.find(':');
  std::string kind = text.substr(0, colon);
  std::string number = colon == std::string::npos ? "0" : text.substr(colon + 1);
  const bool letters =
      !kind.empty() && kind.size() <= 20 && kind.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string::npos;
  if (!letters || number.empty() || number.size() > 4 || number.find_first_not_of("0123456789") != std::string::npos)
    return {};
  return fmt::format("/{}:{}", kind, std::atoi(number.c_str()));
}

DeviceChoice choose_device(std::string_view wanted, MissingDevice on_missing, const DeviceList& list) {
  const std::string name = canonical_device_name(wanted);
  const Device* const device = list.find(name);
  if (device != nullptr && device->runs) return {device->name, {}};
  std::vector<std::string> known;
  for (const Device& d : list.devices) {
    known.push_back(fmt::format("{} ({}{})", d.name, printable(d.model),
                                d.runs ? "" : fmt::format(", by {}: no kernels yet", d.api)));
  }
  const std::string reason =
      device == nullptr ? fmt::format("there is no device {}", name)
                        : fmt::format("Leadline has no kernels for {} ({}) yet", name, printable(device->model));
  const std::string message = fmt::format("{}; this machine has {}", reason, fmt::join(known, ", "));
  if (on_missing == MissingDevice::kFallback)
    return {list.devices.front().name, message + ". The model runs on /CPU:0."};
  fail(device == nullptr ? ErrorCode::kInvalidArgument : ErrorCode::kUnsupported,
       "{}. Ask for /CPU:0, or allow a fallback to it (on_missing=\"fallback\").", message);
}

}  // namespace guard

const Device* DeviceList::find(std::string_view name) const {
  const std::string canonical = guard::canonical_device_name(name);
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const Device& d) { return d.name == canonical; });
  return found == devices.end() ? nullptr : &*found;
}

std::string DeviceList::to_text() const {
  std::string text;
  for (const Device& device : devices) {
    text += fmt::format("{}  {}\n", device.name, printable(device.model));
    std::vector<std::string> facts{device.api};
    if (device.cores > 0)
      facts.push_back(fmt::format("{} {}", device.cores, device.api == "native" ? "CPUs usable" : "compute units"));
    if (device.memory_bytes >= 0) facts.push_back(format_bytes(device.memory_bytes) + " memory");
    if (device.memory_available >= 0) facts.push_back(format_bytes(device.memory_available) + " can be used");
    if (!device.driver.empty()) facts.push_back("driver " + printable(device.driver));
    text += fmt::format("  {}\n", fmt::join(facts, ", "));
    if (!device.features.empty())
      text += fmt::format("  {}\n", printable(fmt::format("{}", fmt::join(device.features, " "))));
    text += device.runs ? "  Leadline runs models here\n" : "  no kernels yet: models do not run here\n";
  }
  for (const std::string& note : notes) text += printable(note) + "\n";
  return text;
}

DeviceList devices(double timeout_seconds) {
  require(timeout_seconds > 0 && timeout_seconds <= 3600, ErrorCode::kInvalidArgument,
          "a timeout of {} seconds: expected more than 0 and at most 3600", timeout_seconds);
  guard::DeviceSources sources;
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  sources.visible_gpus = visible == nullptr ? "all" : visible;
  sources.timeout = std::chrono::milliseconds(static_cast<int64_t>(std::ceil(timeout_seconds * 1000)));
  return guard::list_devices(sources);
}

DeviceChoice choose_device(std::string_view wanted, MissingDevice on_missing) {
  if (wanted.empty()) return {};
  const std::string name = guard::canonical_device_name(wanted);
  require(!name.empty(), ErrorCode::kInvalidArgument, "'{}' is not a device: expected a name like /CPU:0 or /GPU:1",
          wanted);
  if (name == "/CPU:0") return {};  // the usual case asks no driver
  return guard::choose_device(name, on_missing, devices());
}

}  // namespace leadline
