// SPDX-License-Identifier: Apache-2.0
// How much memory does an interpreter take? Planned before anything is allocated, counted afterwards, and as the
// operating system sees it.
#include <leadline/leadline.h>
#include <unistd.h>

#include <exception>
#include <fstream>
#include <iostream>

namespace {

/// Resident bytes of this process now.
long long resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  long long total = 0;
  long long resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: memory_before_and_after MODEL.tflite\n";
    return 2;
  }
  try {
    const long long before = resident_bytes();

    const auto model = leadline::Model::load(argv[1]);
    leadline::Interpreter interpreter(model);
    std::cout << interpreter.plan().to_text() << "\n";  // known before memory is taken

    interpreter.allocate();
    interpreter.invoke();

    std::cout << "planned peak:    " << interpreter.plan().peak_bytes << " bytes\n"
              << "counted peak:    " << interpreter.counted_peak_bytes() << " bytes\n"
              << "resident growth: " << resident_bytes() - before << " bytes\n";
    return interpreter.plan().peak_bytes == interpreter.counted_peak_bytes() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
