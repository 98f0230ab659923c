// SPDX-License-Identifier: Apache-2.0
// NVML is declared here by hand, as far as it is used: its headers come with the CUDA toolkit only.
#include "guard/nvidia.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>

#include "guard/untrusted_file.h"

namespace leadline::guard {
namespace {

constexpr unsigned kMostGpus = 64;
constexpr size_t kNvidiaProcBytes = 65536;

struct NvmlMemory {
  unsigned long long total, free, used;
};

template <typename Function>
Function function(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

int64_t to_bytes(unsigned long long bytes) {
  return bytes > static_cast<unsigned long long>(INT64_MAX) ? -1 : static_cast<int64_t>(bytes);
}

}  // namespace

std::optional<std::string> nvidia_driver_version(const SystemPaths& paths) {
  const std::optional<std::string> text = read_start(paths.proc + "/driver/nvidia/version", kNvidiaProcBytes);
  if (!text) return std::nullopt;
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 ...", "... Open Kernel Module for x86_64
  // 570.86"
  std::string found = "unknown";
  for_each_line(*text, [&](std::string_view line) {
    if (!line.starts_with("NVRM version:") || found != "unknown") return;
    while (!line.empty()) {
      const size_t size = std::min(line.find_first_of(" \t"), line.size());
      const std::string_view word = line.substr(0, size);
      const bool number =
          word.find('.') != std::string_view::npos && word.find_first_not_of("0123456789.") == std::string_view::npos;
      if (number) found = word.substr(0, 40);
      if (number) return;
      line.remove_prefix(std::min(size + 1, line.size()));
    }
  });
  return found;
}

std::vector<std::string> nvidia_models(const SystemPaths& paths) {
  std::vector<std::string> models;
  const std::string folder = paths.proc + "/driver/nvidia/gpus";
  for (const std::string& gpu : list_folder(folder, kMostGpus)) {
    std::string model = "NVIDIA GPU";
    for_each_line(read_start(folder + "/" + gpu + "/information", kNvidiaProcBytes).value_or(""),
                  [&](std::string_view line) {
                    if (!line.starts_with("Model:")) return;
                    line.remove_prefix(6);
                    model = line.substr(std::min(line.find_first_not_of(" \t"), line.size())).substr(0, 100);
                  });
    models.push_back(model);
  }
  return models;
}

ProbeResult probe_nvml(const std::string& library) {
  void* const nvml = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (nvml == nullptr) return {{}, fmt::format("NVIDIA: {} is not installed", library)};
  using Plain = int (*)();
  const auto init = function<Plain>(nvml, "nvmlInit_v2");
  const auto count_of = function<int (*)(unsigned*)>(nvml, "nvmlDeviceGetCount_v2");
  const auto handle_of = function<int (*)(unsigned, void**)>(nvml, "nvmlDeviceGetHandleByIndex_v2");
  if (init == nullptr || count_of == nullptr || handle_of == nullptr) {
    return {{}, fmt::format("NVIDIA: {} lacks functions that NVML has", library)};
  }
  if (const int error = init(); error != 0) {
    return {{},
            fmt::format("NVIDIA: NVML could not start (error {}); the driver is not loaded or does not fit the library",
                        error)};
  }
  const auto name_of = function<int (*)(void*, char*, unsigned)>(nvml, "nvmlDeviceGetName");
  const auto memory_of = function<int (*)(void*, NvmlMemory*)>(nvml, "nvmlDeviceGetMemoryInfo");
  const auto capability_of = function<int (*)(void*, int*, int*)>(nvml, "nvmlDeviceGetCudaComputeCapability");
  const auto driver_of = function<int (*)(char*, unsigned)>(nvml, "nvmlSystemGetDriverVersion");
  char driver[96] = "";
  if (driver_of == nullptr || driver_of(driver, sizeof driver - 1) != 0) driver[0] = '\0';
  unsigned count = 0;
  if (const int error = count_of(&count); error != 0)
    return {{}, fmt::format("NVIDIA: NVML cannot list GPUs (error {})", error)};
  ProbeResult result;
  for (unsigned i = 0; i < std::min(count, kMostGpus); ++i) {
    void* handle = nullptr;
    if (handle_of(i, &handle) != 0) continue;
    Device device;
    device.kind = "GPU";
    device.api = "CUDA";
    device.driver = driver;
    char name[128] = "";
    device.model = name_of != nullptr && name_of(handle, name, sizeof name - 1) == 0 ? name : "NVIDIA GPU";
    NvmlMemory memory{};
    if (memory_of != nullptr && memory_of(handle, &memory) == 0) {
      device.memory_bytes = to_bytes(memory.total);
      device.memory_available = to_bytes(memory.free);
    }
    int major = 0;
    int minor = 0;
    if (capability_of != nullptr && capability_of(handle, &major, &minor) == 0) {
      device.features.push_back(fmt::format("compute {}.{}", major, minor));
    }
    result.devices.push_back(std::move(device));
  }
  if (result.devices.empty()) result.note = "NVIDIA: the driver is loaded, but there is no GPU";
  return result;
}

}  // namespace leadline::guard
