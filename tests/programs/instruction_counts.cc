// SPDX-License-Identifier: Apache-2.0
// Runs each counted case of bench/op_cases.h once, and models given as arguments, in a way that callgrind can follow:
// tools/count_instructions.py has it collect inside leadline_counted_run and write its counts before
// leadline_next_case. The names of the cases go to standard output in the same order.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/fill_inputs.h"
#include "bench/op_cases.h"
#include "leadline/interpreter.h"

namespace {

using leadline::Interpreter;
using leadline::Model;

}  // namespace

// Not static and never inlined: callgrind knows functions by their names.
extern "C" {
[[gnu::noinline]] void leadline_next_case(const char* name) { asm volatile("" : : "r"(name) : "memory"); }
[[gnu::noinline]] void leadline_counted_run(Interpreter* interpreter) {
  interpreter->invoke();
  asm volatile("" : : : "memory");  // no tail call: the function would end before the run begins
}
}

namespace {

void run(const std::string& name, const Model& model) {
  Interpreter interpreter(model);
  interpreter.allocate();
  leadline::bench::fill_inputs(interpreter);
  interpreter.invoke();
  leadline_next_case(name.c_str());
  std::puts(name.c_str());
  leadline_counted_run(&interpreter);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    for (const leadline::bench::OpCase& op : leadline::bench::make_op_cases()) {
      if (op.counted) run(op.name, Model::from_bytes(op.model));
    }
    for (int i = 1; i < argc; ++i) {
      run("model/" + std::filesystem::path(argv[i]).stem().string(), Model::load(argv[i]));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  leadline_next_case("");
}
