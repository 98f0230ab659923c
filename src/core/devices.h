// SPDX-License-Identifier: Apache-2.0
// The parts of choose_device() that tests can feed.
#pragma once

#include <string>
#include <string_view>

#include "leadline/devices.h"

namespace leadline {

/// "/GPU:0" for every spelling that TensorFlow takes; empty for what is not the name of a device.
std::string canonical_device_name(std::string_view name);

/// choose_device() for a given machine.
DeviceChoice choose_device(std::string_view wanted, MissingDevice on_missing, const DeviceList& list);

}  // namespace leadline
