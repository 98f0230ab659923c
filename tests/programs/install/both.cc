// SPDX-License-Identifier: Apache-2.0
// Uses the engine and leadline::guard together: what they share is there once, so one sees what the other counts.
#include <leadline/guard/guard.h>
#include <leadline/leadline.h>

#include <exception>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: both model.tflite\n";
    return 2;
  }
  try {
    leadline::set_device_finder(leadline::guard::find_devices);
    leadline::guard::WatchOptions options;
    options.recorder = false;
    leadline::guard::Watch watch(options);
    const auto model = leadline::Model::load(argv[1]);
    leadline::Interpreter interpreter(model);
    interpreter.allocate();
    std::cout << "accounted=" << watch.sample().accounted << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
