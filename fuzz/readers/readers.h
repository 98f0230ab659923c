// SPDX-License-Identifier: Apache-2.0
// All readers. A new one is a file that defines its function, a line here and a line in readers.cc.
#pragma once

#include "readers/reader.h"

namespace leadline::fuzz {

Reader tflite_reader();         // tflite.cc
Reader quantize_reader();       // tflite.cc
Reader keras_file_reader();     // keras.cc
Reader keras_config_reader();   // keras.cc
Reader hdf5_reader();           // hdf5.cc
Reader saved_model_reader();    // saved_model.cc
Reader bundle_reader();         // bundle.cc
Reader snappy_reader();         // bundle.cc
Reader npy_reader();            // npy.cc
Reader picture_reader();        // picture.cc
Reader recipe_reader();         // recipe.cc
Reader calibration_reader();    // calibration.cc
Reader flight_reader();         // flight.cc
Reader elf_reader();            // system.cc
Reader requirement_reader();    // system.cc
Reader flexbuffer_reader();     // small.cc
Reader node_def_reader();       // small.cc
Reader string_tensor_reader();  // small.cc

}  // namespace leadline::fuzz
