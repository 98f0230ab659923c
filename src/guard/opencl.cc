// SPDX-License-Identifier: Apache-2.0
// The few functions and numbers of OpenCL 1.2 that listing devices takes, declared by hand so that no headers are
// needed.
#include "guard/opencl.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>

namespace leadline::guard {
namespace {

constexpr unsigned kMostPlatforms = 32;
constexpr unsigned kMostOpenClDevices = 64;
// Numbers of the OpenCL specification (CL/cl.h).
constexpr int32_t kSuccess = 0;
constexpr uint32_t kPlatformName = 0x0902;
constexpr uint64_t kEveryType = 0xFFFFFFFF;
constexpr uint32_t kDeviceType = 0x1000;
constexpr uint32_t kDeviceUnits = 0x1002;
constexpr uint32_t kDeviceMemory = 0x101F;
constexpr uint32_t kDeviceName = 0x102B;
constexpr uint32_t kDriverVersion = 0x102D;
constexpr uint32_t kDeviceVersion = 0x102F;
constexpr uint64_t kTypeCpu = 2;
constexpr uint64_t kTypeGpu = 4;

using GetPlatforms = int32_t (*)(uint32_t, void**, uint32_t*);
using GetDevices = int32_t (*)(void*, uint64_t, uint32_t, void**, uint32_t*);
using GetInfo = int32_t (*)(void*, uint32_t, size_t, void*, size_t*);

std::string text(GetInfo get, void* object, uint32_t what) {
  char buffer[512] = "";
  size_t size = 0;
  if (get(object, what, sizeof buffer - 1, buffer, &size) != kSuccess) return {};
  return std::string(buffer);
}

template <typename T>
T number_of(GetInfo get, void* object, uint32_t what, T otherwise) {
  T value{};
  return get(object, what, sizeof value, &value, nullptr) == kSuccess ? value : otherwise;
}

Device describe_device(GetInfo get, void* handle, const std::string& platform) {
  Device device;
  device.api = "OpenCL";
  const auto type = number_of<uint64_t>(get, handle, kDeviceType, 0);
  device.kind = (type & kTypeGpu) != 0 ? "GPU" : (type & kTypeCpu) != 0 ? "CPU" : "ACCELERATOR";
  device.model = text(get, handle, kDeviceName);
  device.driver = platform + " " + text(get, handle, kDriverVersion);
  device.cores = static_cast<int>(std::min<uint32_t>(number_of<uint32_t>(get, handle, kDeviceUnits, 0), 1 << 20));
  const auto memory = number_of<uint64_t>(get, handle, kDeviceMemory, 0);
  if (memory > 0 && memory <= static_cast<uint64_t>(INT64_MAX)) device.memory_bytes = static_cast<int64_t>(memory);
  device.features.push_back(text(get, handle, kDeviceVersion));
  return device;
}

}  // namespace

ProbeResult probe_opencl(const std::string& library) {
  void* const loader = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loader == nullptr) return {{}, fmt::format("OpenCL: {} is not installed", library)};
  const auto get_platforms = reinterpret_cast<GetPlatforms>(dlsym(loader, "clGetPlatformIDs"));
  const auto get_devices = reinterpret_cast<GetDevices>(dlsym(loader, "clGetDeviceIDs"));
  const auto platform_info = reinterpret_cast<GetInfo>(dlsym(loader, "clGetPlatformInfo"));
  const auto device_info = reinterpret_cast<GetInfo>(dlsym(loader, "clGetDeviceInfo"));
  if (get_platforms == nullptr || get_devices == nullptr || platform_info == nullptr || device_info == nullptr) {
    return {{}, fmt::format("OpenCL: {} lacks functions that OpenCL has", library)};
  }
  void* platforms[kMostPlatforms] = {};
  uint32_t platform_count = 0;
  if (get_platforms(kMostPlatforms, platforms, &platform_count) != kSuccess) platform_count = 0;
  ProbeResult result;
  for (uint32_t p = 0; p < std::min(platform_count, kMostPlatforms); ++p) {
    void* handles[kMostOpenClDevices] = {};
    uint32_t count = 0;
    if (get_devices(platforms[p], kEveryType, kMostOpenClDevices, handles, &count) != kSuccess) continue;
    const std::string platform = text(platform_info, platforms[p], kPlatformName);
    for (uint32_t d = 0; d < std::min(count, kMostOpenClDevices); ++d)
      result.devices.push_back(describe_device(device_info, handles[d], platform));
  }
  if (result.devices.empty()) result.note = "OpenCL: the loader is installed, but no driver offers a device";
  return result;
}

}  // namespace leadline::guard
