// SPDX-License-Identifier: Apache-2.0
// What happens when a model does not fit: a clear error before anything large is allocated, and the program continues.
#include <leadline/leadline.h>

#include <exception>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: refuse_what_does_not_fit MODEL.tflite\n";
    return 2;
  }
  try {
    // Enough for the file, too little for the run.
    const auto model = leadline::Model::load(argv[1]);
    leadline::InterpreterOptions options;
    options.budget = leadline::Budget::with_limit(leadline::parse_bytes("64KiB"));
    try {
      leadline::Interpreter interpreter(model, options);
      interpreter.allocate();
      std::cout << "this model fits into 64 KiB\n";
    } catch (const leadline::BudgetError& refusal) {
      std::cout << "refused, as it should be:\n" << refusal.what() << "\n\n";
    }

    // The same model within what the machine has.
    leadline::Interpreter interpreter(model);
    interpreter.invoke();
    std::cout << "with " << leadline::format_bytes(model.budget()->limit()) << " it runs\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
