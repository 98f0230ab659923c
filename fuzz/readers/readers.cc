// SPDX-License-Identifier: Apache-2.0
#include "readers/readers.h"

#include <algorithm>
#include <array>

namespace leadline::fuzz {

std::span<const Reader> readers() {
  static const std::array all = {
      tflite_reader(),        quantize_reader(), keras_file_reader(), keras_config_reader(), hdf5_reader(),
      saved_model_reader(),   bundle_reader(),   snappy_reader(),     npy_reader(),          recipe_reader(),
      calibration_reader(),   flight_reader(),   elf_reader(),        requirement_reader(),  flexbuffer_reader(),
      string_tensor_reader(), picture_reader(),  node_def_reader(),
  };
  return all;
}

const Reader* find_reader(std::string_view name) {
  const auto all = readers();
  const auto it = std::find_if(all.begin(), all.end(), [&](const Reader& reader) { return reader.name == name; });
  return it == all.end() ? nullptr : &*it;
}

}  // namespace leadline::fuzz
