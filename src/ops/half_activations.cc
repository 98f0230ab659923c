// SPDX-License-Identifier: Apache-2.0
#include "ops/half_activations.h"

#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "core/buffer.h"
#include "core/half.h"
#include "ops/common.h"

namespace leadline::ops {
namespace {

constexpr size_t kMaxInputs = 4;

bool widened(DType type, uint32_t activations, size_t input) {
  return type == DType::kFloat16 && input < kMaxInputs && (activations >> input & 1U) != 0;
}

/// The node as the op's own functions see it. It owns the values they may keep pointers to.
class WidenedNode : public OpContext {
 public:
  WidenedNode(const OpContext& c, uint32_t activations)
      : OpContext(c), inputs(inputs_.begin(), inputs_.end()), outputs(outputs_.begin(), outputs_.end()) {
    values_.reserve(inputs.size() + outputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].present() && widened(inputs[i].dtype(), activations, i)) widen(inputs[i]);
    }
    for (Operand& output : outputs) {
      if (output.dtype() == DType::kFloat16) widen(output);
    }
  }

  OpContext context() { return {subgraph_, node_index_, inputs, outputs, host_, &node_}; }
  InferContext infer_context() { return {subgraph_, node_index_, inputs, outputs, host_, &node_}; }
  const ir::Subgraph& subgraph() const { return subgraph_; }
  int node_index() const { return node_index_; }

  std::vector<Operand> inputs;
  std::vector<Operand> outputs;

 private:
  void widen(Operand& operand) {
    ir::Value value = *operand.value;
    value.dtype = DType::kFloat32;
    value.constant = false;
    value.data = {};
    values_.push_back(std::move(value));
    operand.value = &values_.back();
    operand.data = nullptr;
    operand.bytes = 0;
    operand.known = false;  // as float32 it exists only while running
  }

  std::vector<ir::Value> values_;
};

int64_t float_bytes(const Shape& shape) { return shape.elements() * 4; }

class HalfKernel final : public Kernel {
 public:
  HalfKernel(PrepareContext& c, uint32_t activations, PrepareFunction prepare)
      : node_(std::make_unique<WidenedNode>(c, activations)) {
    PrepareContext inner(node_->context(), c.threads(), c.winograd());
    kernel_ = prepare(inner);
    int64_t scratch = align_up(inner.scratch_bytes());
    for (size_t i = 0; i < node_->inputs.size(); ++i) {
      if (!c.has_input(static_cast<int>(i)) || !widened(c.input(static_cast<int>(i)).dtype(), activations, i)) continue;
      input_at_[i] = std::exchange(scratch, scratch + align_up(float_bytes(node_->inputs[i].shape)));
    }
    output_at_ = std::exchange(scratch, scratch + align_up(float_bytes(node_->outputs[0].shape)));
    c.request_scratch(scratch);
    c.request_packed(inner.packed_bytes(), inner.packed_layout());
    for (const int i : inner.replaced_inputs()) c.replaces_input(i);
  }

  void pack(std::byte* packed) override { kernel_->pack(packed); }

  void run(RunContext& c) override {
    std::array<TensorView, kMaxInputs> inputs;
    const size_t count = c.inputs().size();
    for (size_t i = 0; i < count; ++i) {
      inputs[i] = c.inputs()[i];
      if (input_at_[i] < 0) continue;
      set_floats(inputs[i], c.scratch() + input_at_[i]);
      const auto* half = c.inputs()[i].as<uint16_t>();
      auto* real = inputs[i].mutable_as<float>();
      c.pool().for_pieces(inputs[i].elements(), 2, [=](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) real[k] = half_to_float(half[k]);
      });
    }
    TensorView output = c.output(0);
    set_floats(output, c.scratch() + output_at_);
    RunContext inner(node_->subgraph(), node_->node_index(), {inputs.data(), count}, {&output, 1}, c.scratch(),
                     c.packed(), c.pool(), c.host(), &node_->node());
    kernel_->run(inner);
    const auto* real = output.as<float>();
    auto* half = c.output(0).mutable_as<uint16_t>();
    c.pool().for_pieces(output.elements(), 4, [=](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) half[k] = float_to_half(real[k]);
    });
  }

 private:
  static void set_floats(TensorView& view, std::byte* data) {
    view.dtype = DType::kFloat32;
    view.data = data;
    view.bytes = float_bytes(view.shape);
  }

  std::unique_ptr<WidenedNode> node_;  // the inner kernel may point into it
  std::unique_ptr<Kernel> kernel_;
  std::array<int64_t, kMaxInputs> input_at_{-1, -1, -1, -1};  // scratch; -1: used as it is
  int64_t output_at_ = 0;                                     // scratch
};

}  // namespace

bool has_half_activations(const OpContext& c, uint32_t activations) {
  const int first = std::countr_zero(activations);
  return c.has_input(first) && c.input(first).dtype() == DType::kFloat16 && c.output(0).dtype() == DType::kFloat16;
}

void infer_widened(InferContext& c, uint32_t activations, InferFunction infer) {
  c.require(c.input_count() <= static_cast<int>(kMaxInputs) && c.output_count() == 1,
            "{} inputs and {} outputs, expected at most {} and one for float16", c.input_count(), c.output_count(),
            kMaxInputs);
  WidenedNode node(c, activations);
  InferContext inner = node.infer_context();
  infer(inner);
  if (inner.deferred()) return c.defer();
  c.set_output_shape(0, node.outputs[0].shape);
}

std::unique_ptr<Kernel> prepare_widened(PrepareContext& c, uint32_t activations, PrepareFunction prepare) {
  return std::make_unique<HalfKernel>(c, activations, prepare);
}

}  // namespace leadline::ops
