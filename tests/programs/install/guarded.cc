// SPDX-License-Identifier: Apache-2.0
// Uses leadline::guard without the engine: runs a program under limits and prints how it ended.
#include <leadline/guard/guard.h>

#include <exception>
#include <iostream>

int main() {
  try {
    leadline::guard::GuardOptions options;
    options.command = {"sh", "-c", "exit 7"};
    leadline::guard::GuardedProcess process(options);
    while (!process.wait(10.0).ended) {
    }
    std::cout << "exit_code=" << process.report().exit_code << "\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
