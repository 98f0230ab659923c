// SPDX-License-Identifier: Apache-2.0
// An op of your own: register it, see it in the plan, run it. Takes no model; it builds a small one.
#include <leadline/leadline.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <span>

/// y = factor * x, and the sum of all x so far.
class Scale final : public leadline::CustomOp {
 public:
  explicit Scale(const leadline::OpNode& node) : factor_(static_cast<float>(node.options.number("factor", 1.0))) {}

  void infer(leadline::InferCall& call) override {
    call.require(call.input(0).dtype == leadline::DType::kFloat32, "Scale takes float32");
    call.set_output_shape(0, call.input(0).shape);
    call.request_scratch(1024);  // planned, and part of the budget
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

/// y = Scale(x) with the factor 3; x has four float32 values.
leadline::Model make_model() {
  leadline::ModelBuilder builder;
  leadline::TensorInfo tensor;
  tensor.dtype = leadline::DType::kFloat32;
  tensor.shape = {4};
  tensor.name = "x";
  const int x = builder.add_tensor(0, tensor);
  tensor.name = "y";
  const int y = builder.add_tensor(0, tensor);
  builder.add_node(0, {.op = "Scale", .inputs = {x}, .outputs = {y}, .attributes = {{"factor", 3.0}}});
  builder.set_inputs(0, {x});
  builder.set_outputs(0, {y});
  return leadline::Model::from_bytes(builder.to_tflite());
}

}  // namespace

int main() {
  try {
    leadline::register_op<Scale>("Scale");
    leadline::Interpreter interpreter(make_model());
    for (const leadline::PlannedStep& step : interpreter.plan().steps) {
      std::cout << step.op << ": " << step.scratch_bytes << " bytes of scratch\n";
    }
    std::ranges::copy(std::array{1.0F, 2.0F, 3.0F, 4.0F}, interpreter.input<float>("x").begin());
    interpreter.invoke();
    const std::span<const float> y = interpreter.output<float>("y");
    std::cout << "y = " << y[0] << " " << y[1] << " " << y[2] << " " << y[3] << "\n"
              << "planned " << interpreter.plan().peak_bytes << " bytes, counted " << interpreter.counted_peak_bytes()
              << "\n";
    return y[3] == 12.0F && interpreter.plan().peak_bytes == interpreter.counted_peak_bytes() ? 0 : 1;
  } catch (const leadline::Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
