// SPDX-License-Identifier: Apache-2.0
// `leadline devices`: what this machine has and what models can run on.
#include "leadline/guard/devices.h"

#include <fmt/core.h>

#include "cli/command.h"

namespace leadline::cli {
namespace {

constexpr const char* kDevicesExamples =
    "  leadline devices\n"
    "  leadline devices --json\n"
    "  leadline run model.tflite --device /GPU:0 --on-missing fallback";

Json to_json(const Device& device) {
  Json json = {{"name", device.name},     {"kind", device.kind},         {"api", device.api},
               {"model", device.model},   {"runs", device.runs},         {"cores", nullptr},
               {"memory_bytes", nullptr}, {"memory_available", nullptr}, {"driver", nullptr}};
  if (device.cores > 0) json["cores"] = device.cores;
  if (device.memory_bytes >= 0) json["memory_bytes"] = device.memory_bytes;
  if (device.memory_available >= 0) json["memory_available"] = device.memory_available;
  if (!device.driver.empty()) json["driver"] = device.driver;
  json["features"] = device.features;
  return json;
}

class Devices final : public Command {
 public:
  explicit Devices(CLI::App& program)
      : Command(program, "devices", "List the devices of this machine, named as in TensorFlow", kDevicesExamples) {
    add_option("--timeout", timeout_, "Seconds that a driver may take to answer").show_default().placeholder("SECONDS");
  }

  void run() override {
    const DeviceList list = guard::devices(timeout_);
    if (!json()) {
      fmt::print("{}", list.to_text());
      return;
    }
    Json document = {{"devices", Json::array()}, {"notes", list.notes}};
    for (const Device& device : list.devices) document["devices"].push_back(to_json(device));
    print_json(document);
  }

 private:
  double timeout_ = 5;
};

}  // namespace

std::unique_ptr<Command> devices_command(CLI::App& program) { return std::make_unique<Devices>(program); }

}  // namespace leadline::cli
