// SPDX-License-Identifier: Apache-2.0
// Devices behind the OpenCL loader, whatever drivers are installed with it.
#pragma once

#include <string>

#include "guard/device_probe.h"

namespace leadline::guard {

/// Loads the OpenCL loader and asks every platform for its devices. To be run in a child: drivers hang and crash.
ProbeResult probe_opencl(const std::string& library);

}  // namespace leadline::guard
