// SPDX-License-Identifier: Apache-2.0
// A program that links Highway's library for itself, after Leadline's.
#include <leadline/leadline.h>

#include <exception>
#include <iostream>

const char* other_highway();

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: with_highway model.tflite\n";
    return 2;
  }
  try {
    const auto model = leadline::Model::load(argv[1]);
    leadline::Interpreter interpreter(model);
    interpreter.allocate();
    interpreter.invoke();
    std::cout << "highway=" << other_highway() << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
