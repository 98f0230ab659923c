// SPDX-License-Identifier: Apache-2.0
// An op of your own: register it, see it in the plan, run it. Takes no model; it has a small one inside.
#include <leadline/leadline.h>

#include <cstring>
#include <iostream>
#include <span>

/// y = factor * x, and the sum of all x so far.
class Scale final : public leadline::CustomOp {
 public:
  explicit Scale(const leadline::OpNode& node) : factor_(static_cast<float>(node.options.number("factor", 1.0))) {}

  void infer(leadline::InferCall& call) override {
    call.require(call.input(0).dtype == leadline::DType::kFloat32, "Scale takes float32");
    call.set_output_shape(0, call.input(0).shape);
    call.request_scratch(1024);  // planned, and held to the budget
  }

  void run(leadline::RunCall& call) override {
    const auto x = call.input(0).values<float>();
    const auto y = call.output(0).memory<float>();
    for (size_t i = 0; i < x.size(); ++i) {
      y[i] = factor_ * x[i];
      sum_ += x[i];
    }
  }

  void reset() override { sum_ = 0; }

 private:
  float factor_;
  double sum_ = 0;  // kept from run to run, for this node of this interpreter
};

namespace {

/// y = Scale(x) with the option factor = 3; x has four float32 values.
// clang-format off
alignas(16) constexpr unsigned char kModel[] = {
    24, 0, 0, 0, 84, 70, 76, 51, 14, 0, 24, 0, 4, 0, 8, 0, 12, 0, 16, 0, 20, 0, 0, 0,
    16, 0, 0, 0, 3, 0, 0, 0, 16, 0, 0, 0, 68, 0, 0, 0, 120, 1, 0, 0, 136, 1, 0, 0,
    1, 0, 0, 0, 20, 0, 0, 0, 12, 0, 17, 0, 16, 0, 4, 0, 8, 0, 12, 0, 0, 0, 0, 0,
    16, 0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 32, 0, 0, 0, 32, 0, 0, 0, 5, 0, 0, 0,
    83, 99, 97, 108, 101, 0, 0, 0, 1, 0, 0, 0, 20, 0, 0, 0, 14, 0, 24, 0, 4, 0, 8, 0,
    12, 0, 16, 0, 20, 0, 0, 0, 16, 0, 0, 0, 20, 0, 0, 0, 140, 0, 0, 0, 144, 0, 0, 0,
    148, 0, 0, 0, 252, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 80, 0, 0, 0, 16, 0, 18, 0,
    4, 0, 16, 0, 8, 0, 12, 0, 0, 0, 17, 0, 0, 0, 0, 0, 20, 0, 0, 0, 16, 0, 0, 0,
    0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0,
    120, 0, 16, 0, 18, 0, 4, 0, 16, 0, 8, 0, 12, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0,
    22, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
    4, 0, 0, 0, 1, 0, 0, 0, 121, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
    1, 0, 0, 0, 1, 0, 0, 0, 24, 0, 0, 0, 16, 0, 20, 0, 4, 0, 8, 0, 12, 0, 0, 0,
    0, 0, 16, 0, 0, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 16, 0, 0, 0,
    28, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 32, 0, 0, 0, 102, 97, 99, 116, 111, 114, 0, 1, 8, 0, 0, 0, 4, 0, 0, 0,
    1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 64, 64, 14, 5, 38, 1, 10, 0, 0, 0, 115, 117, 98, 103,
    114, 97, 112, 104, 95, 48, 0, 0, 15, 0, 0, 0, 109, 97, 100, 101, 32, 102, 111, 114, 32, 97, 32, 116,
    101, 115, 116, 0, 1, 0, 0, 0, 8, 0, 0, 0, 4, 0, 4, 0, 4, 0, 0, 0,
};
// clang-format on

}  // namespace

int main() {
  try {
    leadline::register_op<Scale>("Scale");
    leadline::Interpreter interpreter(leadline::Model::from_bytes(std::as_bytes(std::span(kModel))));
    for (const leadline::PlannedStep& step : interpreter.plan().steps) {
      std::cout << step.op << ": " << step.scratch_bytes << " bytes of scratch\n";
    }
    const float x[] = {1, 2, 3, 4};
    interpreter.set_tensor(interpreter.inputs()[0], std::as_bytes(std::span(x)));
    interpreter.invoke();
    float y[4];
    std::memcpy(y, interpreter.tensor(interpreter.outputs()[0]).data, sizeof(y));
    std::cout << "y = " << y[0] << " " << y[1] << " " << y[2] << " " << y[3] << "\n"
              << "planned " << interpreter.plan().peak_bytes << " bytes, counted " << interpreter.counted_peak_bytes()
              << "\n";
    return y[3] == 12.0F && interpreter.plan().peak_bytes == interpreter.counted_peak_bytes() ? 0 : 1;
  } catch (const leadline::Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
