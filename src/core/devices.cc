// SPDX-License-Identifier: Apache-2.0
#include "core/devices.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "core/error.h"
#include "core/join.h"
#include "leadline/budget.h"
#include "leadline/types.h"

namespace leadline {
namespace {

std::atomic<DeviceFinder> device_finder = nullptr;

/// Falls back to the CPU, or throws.
DeviceChoice refuse(MissingDevice on_missing, ErrorCode code, const std::string& message) {
  if (on_missing == MissingDevice::kFallback) return {"/CPU:0", message + ". The model runs on /CPU:0."};
  fail(code, "{}. Ask for /CPU:0, or allow a fallback to it (on_missing=\"fallback\").", message);
}

}  // namespace

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
  return refuse(on_missing, device == nullptr ? ErrorCode::kInvalidArgument : ErrorCode::kUnsupported,
                fmt::format("{}; this machine has {}", reason, join(known, ", ")));
}

const Device* DeviceList::find(std::string_view name) const {
  const std::string canonical = canonical_device_name(name);
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
    text += fmt::format("  {}\n", join(facts, ", "));
    if (!device.features.empty()) text += fmt::format("  {}\n", printable(join(device.features, " ")));
    text += device.runs ? "  Leadline runs models here\n" : "  no kernels yet: models do not run here\n";
  }
  for (const std::string& note : notes) text += printable(note) + "\n";
  return text;
}

DeviceChoice choose_device(std::string_view wanted, MissingDevice on_missing) {
  if (wanted.empty()) return {};
  const std::string name = canonical_device_name(wanted);
  require(!name.empty(), ErrorCode::kInvalidArgument, "'{}' is not a device: expected a name like /CPU:0 or /GPU:1",
          wanted);
  if (name == "/CPU:0") return {};  // the usual case asks no driver
  if (const DeviceFinder finder = device_finder.load(); finder != nullptr) {
    return choose_device(name, on_missing, finder());
  }
  return refuse(on_missing, ErrorCode::kUnsupported,
                fmt::format("Leadline has kernels for /CPU:0 only, not for {}", name));
}

void set_device_finder(DeviceFinder finder) noexcept { device_finder = finder; }

}  // namespace leadline
