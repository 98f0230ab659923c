// SPDX-License-Identifier: Apache-2.0
#include "leadline/guard/devices.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "guard/cpu_info.h"
#include "guard/device_list.h"
#include "guard/device_probe.h"
#include "guard/nvidia.h"
#include "guard/opencl.h"
#include "guard/untrusted_file.h"
#include "tests/support/cpp/fake_system.h"

namespace leadline::guard {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kDriver =
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC version: 12\n";

/// No driver at all, unless a test adds one.
DeviceSources sources_of(const FakeSystem& system) {
  return {.paths = system.paths(),
          .nvml = "libabsent-nvml.so",
          .opencl = "libabsent-opencl.so",
          .visible_gpus = "all",
          .timeout = milliseconds(5000)};
}

class FakeNvml {
 public:
  explicit FakeNvml(const char* mode) { setenv("FAKE_NVML", mode, 1); }
  ~FakeNvml() { unsetenv("FAKE_NVML"); }
};

TEST(Cpu, IsDescribedByTheKernel) {
  FakeSystem system;
  system.write("proc/cpuinfo",
               "processor : 0\nmodel name\t: Fake CPU 9000\nflags\t\t: fpu avx2 fma avx sse4_2\n\nprocessor : 1\nmodel "
               "name : Other\n");
  const CpuInfo cpu = read_cpu_info(system.paths());
  EXPECT_EQ(cpu.model, "Fake CPU 9000");
  EXPECT_EQ(numeric_features(cpu), (std::vector<std::string>{"sse4_2", "avx", "fma", "avx2"}));
  FakeSystem arm;
  arm.write("proc/cpuinfo", "Features : fp asimd asimddp\nCPU implementer : 0x41\nCPU part : 0xd0c\n");
  EXPECT_EQ(read_cpu_info(arm.paths()).model, "ARM implementer 0x41 part 0xd0c");
  EXPECT_EQ(read_cpu_info(FakeSystem().paths()).model, "unknown");
  EXPECT_EQ(missing_numeric_features({"neon", "asimd", "asimdhp", "asimddp", "sve"}),
            (std::vector<std::string>{"i8mm", "bf16", "sve2", "sme"}));
  EXPECT_TRUE(missing_numeric_features({"fpu"}).empty());
}

TEST(Devices, CpuIsAlwaysThere) {
  FakeSystem system;
  const DeviceList list = list_devices(sources_of(system));
  ASSERT_EQ(list.devices.size(), 1U);
  EXPECT_EQ(list.devices[0].name, "/CPU:0");
  EXPECT_TRUE(list.devices[0].runs);
  EXPECT_GE(list.devices[0].cores, 1);
  ASSERT_EQ(list.notes.size(), 2U);
  EXPECT_NE(list.notes[0].find("no driver is loaded"), std::string::npos);
  EXPECT_NE(list.notes[1].find("libabsent-opencl.so is not installed"), std::string::npos);
}

TEST(Devices, NvidiaIsKnownFromProcWhereNvmlIsMissing) {
  FakeSystem system;
  system.write("proc/driver/nvidia/version", kDriver);
  system.write("proc/driver/nvidia/gpus/0000:00:04.0/information", "Model: \t\t Tesla T4\nIRQ: 33\n");
  const DeviceList list = list_devices(sources_of(system));
  ASSERT_EQ(list.devices.size(), 2U);
  EXPECT_EQ(list.devices[1].name, "/GPU:0");
  EXPECT_EQ(list.devices[1].model, "Tesla T4");
  EXPECT_EQ(list.devices[1].driver, "535.104.05");
  EXPECT_FALSE(list.devices[1].runs);
}

TEST(Devices, NvmlTellsMore) {
  FakeSystem system;
  system.write("proc/driver/nvidia/version", kDriver);
  DeviceSources sources = sources_of(system);
  sources.nvml = LEADLINE_FAKE_NVML;
  const DeviceList list = list_devices(sources);
  ASSERT_EQ(list.devices.size(), 3U);
  EXPECT_EQ(list.devices[2].name, "/GPU:1");
  EXPECT_EQ(list.devices[2].model, "Fake GPU 2");
  EXPECT_EQ(list.devices[2].memory_bytes, int64_t{16} << 30);
  EXPECT_EQ(list.devices[2].memory_available, int64_t{12} << 30);
  EXPECT_EQ(list.devices[2].features, std::vector<std::string>{"compute 7.5"});
}

TEST(Devices, GpusAreNumberedAsCudaSeesThem) {
  FakeSystem system;
  system.write("proc/driver/nvidia/version", kDriver);
  DeviceSources sources = sources_of(system);
  sources.nvml = LEADLINE_FAKE_NVML;
  sources.visible_gpus = "1";
  const DeviceList one = list_devices(sources);
  ASSERT_EQ(one.devices.size(), 2U);
  EXPECT_EQ(one.devices[1].name, "/GPU:0");
  EXPECT_EQ(one.devices[1].model, "Fake GPU 2");
  for (const char* none : {"", "-1", "7"}) {
    sources.visible_gpus = none;
    EXPECT_EQ(list_devices(sources).devices.size(), 1U) << none;
  }
}

TEST(Devices, DriverThatHangsIsLeftBehindInTime) {
  const FakeNvml mode("hang");
  FakeSystem system;
  system.write("proc/driver/nvidia/version", kDriver);
  DeviceSources sources = sources_of(system);
  sources.nvml = LEADLINE_FAKE_NVML;
  sources.timeout = milliseconds(300);
  const auto start = steady_clock::now();
  const DeviceList list = list_devices(sources);
  EXPECT_LT(steady_clock::now() - start, milliseconds(5000));
  EXPECT_EQ(list.devices.size(), 1U);
  EXPECT_NE(list.notes[0].find("did not answer in time"), std::string::npos);
}

TEST(Devices, DriverThatCrashesIsANote) {
  const FakeNvml mode("crash");
  FakeSystem system;
  system.write("proc/driver/nvidia/version", kDriver);
  DeviceSources sources = sources_of(system);
  sources.nvml = LEADLINE_FAKE_NVML;
  const DeviceList list = list_devices(sources);
  EXPECT_EQ(list.devices.size(), 1U);
  EXPECT_NE(list.notes[0].find("crashed when it was asked"), std::string::npos) << list.notes[0];
}

TEST(Devices, OpenClShowsPocl) {
  if (!is_folder("/etc/OpenCL/vendors") || !std::filesystem::exists("/etc/OpenCL/vendors/pocl.icd")) {
    GTEST_SKIP() << "PoCL (pocl-opencl-icd) is not installed; make test installs it";
  }
  FakeSystem system;
  DeviceSources sources = sources_of(system);
  sources.opencl = "libOpenCL.so.1";
  sources.timeout = milliseconds(60000);
  const DeviceList list = list_devices(sources);
  ASSERT_EQ(list.devices.size(), 2U) << list.to_text();
  EXPECT_EQ(list.devices[1].name, "/CPU:1");
  EXPECT_EQ(list.devices[1].api, "OpenCL");
  EXPECT_GT(list.devices[1].cores, 0);
  EXPECT_GT(list.devices[1].memory_bytes, 0);
  EXPECT_FALSE(list.devices[1].runs);
}

TEST(ChildProbe, LeavesNeitherProcessesNorDescriptors) {
  const auto open_files = [] { return list_folder("/proc/self/fd").size(); };
  const size_t before = open_files();
  for (int i = 0; i < 20; ++i) {
    ChildProbe probe("x", [] { return ProbeResult{{}, "asked"}; });
    EXPECT_EQ(probe.result(steady_clock::now() + milliseconds(5000)).note, "asked");
  }
  {
    const ChildProbe dropped("x", [] {
      pause();
      return ProbeResult{};
    });
  }
  EXPECT_EQ(open_files(), before);
  EXPECT_TRUE(read_start("/proc/self/task/" + std::to_string(getpid()) + "/children", 100).value_or("").empty());
}

TEST(ChildProbe, AnswersThatAreNoneBecomeNotes) {
  for (const char* text :
       {"", "{", "[]", "{\"devices\": 3, \"note\": \"\"}", "{\"devices\": [{\"kind\": 1}], \"note\": \"\"}"}) {
    EXPECT_FALSE(decode(text, "X").note.empty()) << text;
  }
  Device device;
  device.kind = "GPU";
  device.model = "bad \xff text";
  EXPECT_EQ(decode(encode({{device}, ""}), "X").devices.size(), 1U);
}

}  // namespace
}  // namespace leadline::guard
