// SPDX-License-Identifier: Apache-2.0
#include "core/devices.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "leadline/error.h"

namespace leadline {
namespace {

TEST(DeviceNames, AreThoseOfTensorFlow) {
  for (const char* name :
       {"/GPU:1", "GPU:1", "gpu:1", "/gpu:1", "/device:GPU:1", "/job:localhost/replica:0/task:0/device:GPU:1"}) {
    EXPECT_EQ(canonical_device_name(name), "/GPU:1") << name;
  }
  EXPECT_EQ(canonical_device_name("cpu"), "/CPU:0");
  for (const char* name : {"", "/", ":", "GPU:", "GPU:x", "GPU:-1", "GPU:99999", "a b", "/x/GPU:0", "GPU:0:1"}) {
    EXPECT_EQ(canonical_device_name(name), "") << name;
  }
}

TEST(ChooseDevice, FollowsThePolicy) {
  DeviceList list;
  list.devices.resize(2);
  list.devices[0] = {
      .name = "/CPU:0", .kind = "CPU", .api = "native", .model = "A CPU", .driver = {}, .features = {}, .runs = true};
  list.devices[1] = {.name = "/GPU:0", .kind = "GPU", .api = "CUDA", .model = "A GPU", .driver = {}, .features = {}};
  EXPECT_EQ(choose_device("cpu:0", MissingDevice::kError, list).name, "/CPU:0");
  const auto error_of = [&](const char* name) {
    try {
      choose_device(name, MissingDevice::kError, list);
    } catch (const Error& error) {
      return std::pair(error.code(), std::string(error.what()));
    }
    return std::pair(ErrorCode::kInternal, std::string("no error"));
  };
  const auto [missing_code, missing] = error_of("/GPU:1");
  EXPECT_EQ(missing_code, ErrorCode::kInvalidArgument);
  EXPECT_NE(missing.find(
                "there is no device /GPU:1; this machine has /CPU:0 (A CPU), /GPU:0 (A GPU, by CUDA: no kernels yet)"),
            std::string::npos)
      << missing;
  const auto [unsupported_code, unsupported] = error_of("/GPU:0");
  EXPECT_EQ(unsupported_code, ErrorCode::kUnsupported);
  EXPECT_NE(unsupported.find("no kernels for /GPU:0 (A GPU)"), std::string::npos) << unsupported;
  const DeviceChoice choice = choose_device("/GPU:1", MissingDevice::kFallback, list);
  EXPECT_EQ(choice.name, "/CPU:0");
  EXPECT_NE(choice.message.find("there is no device /GPU:1"), std::string::npos);
}

TEST(ChooseDevice, RefusesWhatIsNoName) {
  EXPECT_THROW(choose_device("the fast one", MissingDevice::kFallback), Error);
  EXPECT_EQ(choose_device("").name, "/CPU:0");
  EXPECT_TRUE(choose_device("/CPU:0").message.empty());
}

TEST(ChooseDevice, AsksTheFinderThatWasSet) {
  set_device_finder(nullptr);
  const DeviceChoice alone = choose_device("/GPU:0", MissingDevice::kFallback);
  EXPECT_EQ(alone.name, "/CPU:0");
  EXPECT_EQ(alone.message, "Leadline has kernels for /CPU:0 only, not for /GPU:0. The model runs on /CPU:0.");
  try {
    choose_device("/GPU:0");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  }
  set_device_finder([] {
    DeviceList list;
    list.devices.resize(1);
    list.devices[0].name = "/CPU:0";
    list.devices[0].model = "A CPU";
    list.devices[0].runs = true;
    return list;
  });
  const DeviceChoice asked = choose_device("/GPU:0", MissingDevice::kFallback);
  set_device_finder(nullptr);
  EXPECT_EQ(asked.message, "there is no device /GPU:0; this machine has /CPU:0 (A CPU). The model runs on /CPU:0.");
}

}  // namespace
}  // namespace leadline
