// SPDX-License-Identifier: Apache-2.0
// Uses an installed Leadline: loads a model and prints how much memory a run takes.
#include <leadline/leadline.h>

#include <exception>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: external model.tflite\n";
    return 2;
  }
  try {
    const auto model = leadline::Model::load(argv[1]);
    leadline::Interpreter interpreter(model);
    std::cout << "peak_bytes=" << interpreter.plan().peak_bytes << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
