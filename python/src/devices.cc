// SPDX-License-Identifier: Apache-2.0
// leadline/devices.h and leadline/guard/devices.h.
#include "leadline/guard/devices.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "module.h"

namespace leadline::python {

void init_devices(nb::module_& m) {
  set_device_finder(guard::find_devices);
  nb::class_<Device>(m, "Device", "A device of this machine, named as in TensorFlow.")
      .def_ro("name", &Device::name, "'/CPU:0', '/GPU:1'.")
      .def_ro("kind", &Device::kind, "'CPU', 'GPU' or 'ACCELERATOR'.")
      .def_ro("api", &Device::api, "How it is reached: 'native', 'CUDA' or 'OpenCL'.")
      .def_prop_ro("model", [](const Device& self) { return to_str(self.model); })
      .def_prop_ro("driver", [](const Device& self) { return to_str(self.driver); })
      .def_ro("cores", &Device::cores, "CPUs that may be used, or compute units; 0: unknown.")
      .def_ro("memory_bytes", &Device::memory_bytes, "Memory in all; -1: unknown.")
      .def_ro("memory_available", &Device::memory_available, "Memory that can be used now; -1: unknown.")
      .def_prop_ro("features", [](const Device& self) { return to_list(self.features); })
      .def_ro("runs", &Device::runs, "Whether Leadline has kernels for it.")
      .def("__repr__",
           [](const Device& self) { return to_str("<leadline.Device " + self.name + " " + self.model + ">"); });
  nb::class_<DeviceList>(m, "DeviceList", "Devices of this machine, and why others were not found.")
      .def_ro("devices", &DeviceList::devices)
      .def_prop_ro("notes", [](const DeviceList& self) { return to_list(self.notes); })
      .def("to_text", [](const DeviceList& self) { return to_str(self.to_text()); });
  m.def("devices", &guard::devices, nb::arg("timeout_seconds") = 5.0, WithoutGil(),
        "Looks for devices; drivers are asked in a child process.");

  nb::enum_<MissingDevice>(m, "MissingDevice", "What to do when a device does not exist or has no kernels yet.")
      .value("ERROR", MissingDevice::kError, "Refuse, with a message that lists what exists.")
      .value("FALLBACK", MissingDevice::kFallback, "Run on /CPU:0.");
  m.def(
      "choose_device",
      [](std::string_view wanted, MissingDevice on_missing) {
        DeviceChoice choice;
        {
          const nb::gil_scoped_release released;
          choice = choose_device(wanted, on_missing);
        }
        return nb::make_tuple(choice.name, to_str(choice.message));
      },
      nb::arg("wanted"), nb::arg("on_missing") = MissingDevice::kError,
      nb::sig("def choose_device(wanted: str, on_missing: MissingDevice = "
              "leadline._leadline.MissingDevice.ERROR) -> tuple[str, str]"),
      "The device to use for a name, and the reason when it is another.");
}

}  // namespace leadline::python
