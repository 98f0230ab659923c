// SPDX-License-Identifier: Apache-2.0
// For tests: a library with the functions of NVML that Leadline asks. FAKE_NVML says how it behaves: two GPUs by
// default, "hang", "crash" or "no-driver".
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>

namespace {

std::string_view mode() {
  const char* const value = std::getenv("FAKE_NVML");
  return value == nullptr ? "" : value;
}

}  // namespace

extern "C" {

struct NvmlMemory {
  unsigned long long total, free, used;
};

int nvmlInit_v2() {
  if (mode() == "hang") {
    while (true) pause();
  }
  if (mode() == "crash") std::abort();
  return mode() == "no-driver" ? 9 : 0;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  *handle = reinterpret_cast<void*>(static_cast<uintptr_t>(index) + 1);
  return 0;
}

int nvmlDeviceGetName(void* handle, char* name, unsigned size) {
  std::ostringstream text;  // so that the library needs symbols of libstdc++
  text << "Fake GPU " << reinterpret_cast<uintptr_t>(handle);
  std::snprintf(name, size, "%s", text.str().c_str());
  return 0;
}

int nvmlDeviceGetMemoryInfo(void*, NvmlMemory* memory) {
  *memory = {16ULL << 30, 12ULL << 30, 4ULL << 30};
  return 0;
}

int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 7;
  *minor = 5;
  return 0;
}

int nvmlSystemGetDriverVersion(char* version, unsigned size) {
  std::snprintf(version, size, "535.104.05");
  return 0;
}
}
