// SPDX-License-Identifier: Apache-2.0
// Finds the devices of this machine. Nothing is assumed to exist.
#pragma once

#include "leadline/devices.h"  // IWYU pragma: export

namespace leadline::guard {

/// Looks for devices. Drivers are asked in a child process: one that crashes or does not answer within
/// `timeout_seconds` becomes a note.
DeviceList devices(double timeout_seconds = 5.0);

/// The same, for set_device_finder().
DeviceList find_devices();

}  // namespace leadline::guard
