// SPDX-License-Identifier: Apache-2.0
// Runs one op without a session, for the tests beside the op families.
//
//   OpTester t("ADD");
//   t.input<float>({2}, {1, 2}).input<float>({2}, {3, 4}).output(DType::kFloat32);
//   t.run();
//   EXPECT_EQ(t.result<float>(0), (std::vector<float>{4, 6}));
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/buffer.h"
#include "ops/registry.h"
#include "ops/resources.h"

namespace leadline::ops {

template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::kFloat32;
  if constexpr (std::is_same_v<T, double>) return DType::kFloat64;
  if constexpr (std::is_same_v<T, int8_t>) return DType::kInt8;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::kUInt8;
  if constexpr (std::is_same_v<T, int16_t>) return DType::kInt16;
  if constexpr (std::is_same_v<T, uint16_t>) return DType::kUInt16;
  if constexpr (std::is_same_v<T, int32_t>) return DType::kInt32;
  if constexpr (std::is_same_v<T, uint32_t>) return DType::kUInt32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::kInt64;
  if constexpr (std::is_same_v<T, uint64_t>) return DType::kUInt64;
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
}

/// Per-tensor quantization.
inline Quantization quantized(float scale, int64_t zero_point = 0) {
  Quantization q;
  q.scale = {scale};
  q.zero_point = {zero_point};
  return q;
}

class OpTester {
 public:
  explicit OpTester(const std::string& op) {
    row_ = registry().find_named(op);
    require(row_ != nullptr && row_->infer != nullptr, ErrorCode::kUnsupported, "no op {}", op);
    node_.op = row_->id;
    node_.attributes = new_attributes(*row_);
  }

  template <typename A>
  OpTester& attributes(A value) {
    node_.attributes = std::make_shared<A>(std::move(value));
    return *this;
  }
  OpTester& version(int version) {
    node_.version = version;
    return *this;
  }
  OpTester& custom_options(std::vector<std::byte> bytes) {
    options_ = std::move(bytes);
    node_.custom_options = options_;
    return *this;
  }
  /// An input whose contents are known before the run (a constant) unless `known` is false.
  template <typename T>
  OpTester& input(const Shape& shape, const std::vector<T>& data, Quantization q = {}, bool known = true) {
    std::vector<std::byte> bytes(data.size() * sizeof(T));
    for (size_t i = 0; i < data.size(); ++i) {
      const T value = data[i];
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
    return raw_input(dtype_of<T>(), shape, std::move(bytes), std::move(q), known);
  }
  OpTester& raw_input(DType type, const Shape& shape, std::vector<std::byte> bytes, Quantization q = {},
                      bool known = true) {
    node_.inputs.push_back(add_value(type, shape, std::move(q), "input"));
    data_.push_back(std::move(bytes));
    known_.push_back(known);
    return *this;
  }
  OpTester& absent_input() {
    node_.inputs.push_back(ir::kAbsent);
    data_.emplace_back();
    known_.push_back(false);
    return *this;
  }
  /// A variable: state that the op may change, see state().
  template <typename T>
  OpTester& variable(const Shape& shape, const std::vector<T>& data, Quantization q = {}) {
    input(shape, data, std::move(q), false);
    subgraph_.values.back().variable = true;
    return *this;
  }
  OpTester& intermediate(DType type, Quantization q) {
    node_.intermediates.push_back(add_value(type, {}, std::move(q), "intermediate"));
    return *this;
  }
  /// `shape` is what the file says, for ops that go by it.
  OpTester& output(DType type, Quantization q = {}, const Shape& shape = {}) {
    node_.outputs.push_back(add_value(type, shape, std::move(q), "output"));
    return *this;
  }
  /// State that outlives the run, to be shared with testers of other nodes.
  OpTester& resources(std::shared_ptr<Resources> state) {
    host_.state = std::move(state);
    return *this;
  }
  /// The subgraph that the op's attributes name, as a list of ops.
  OpTester& body(const std::vector<ir::OpId>& ops) {
    for (const ir::OpId& op : ops) host_.body.nodes.emplace_back().op = op;
    return *this;
  }
  OpTester& threads(int count) {
    threads_ = count;
    return *this;
  }

  /// infer (twice when it defers), prepare, pack, run. Throws what the op throws.
  void run() {
    subgraph_.nodes = {node_};
    if (!infer(false)) infer(true);
    auto budget = Budget::with_limit(int64_t{1} << 40);
    PrepareContext prepare(OpContext(subgraph_, 0, inputs_, outputs_, host_), threads_);
    auto kernel = row_->prepare(prepare);
    Buffer scratch(budget, prepare.scratch_bytes(), MemoryCategory::kScratch);
    Buffer packed(budget, prepare.packed_bytes(), MemoryCategory::kPackedWeights);
    kernel->pack(packed.data());
    std::vector<TensorView> in;
    std::vector<TensorView> out;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].present()) {
        in.push_back({inputs_[i].dtype(), inputs_[i].shape, data_[i].data(), static_cast<int64_t>(data_[i].size()),
                      &inputs_[i].value->quantization});
      } else {
        in.emplace_back();
      }
    }
    results_.clear();
    for (const Operand& o : outputs_) {
      results_.emplace_back(static_cast<size_t>(o.bytes));
      out.push_back({o.dtype(), o.shape, results_.back().data(), o.bytes, &o.value->quantization});
    }
    ThreadPool pool(threads_);
    RunContext context(subgraph_, 0, in, out, scratch.data(), packed.data(), pool, host_);
    kernel->run(context);
  }

  /// Only infer; returns the shape of output `i`, or throws. Deferred ops count as unknown: returns false.
  bool infer(bool all_known) {
    subgraph_.nodes = {node_};
    inputs_.clear();
    outputs_.clear();
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      Operand o;
      if (node_.inputs[i] != ir::kAbsent) {
        o.value = &subgraph_.value(node_.inputs[i]);
        o.shape = o.value->shape;
        o.known = known_[i] || all_known;
        if (o.known) {
          o.data = data_[i].data();
          o.bytes = static_cast<int64_t>(data_[i].size());
        }
      }
      inputs_.push_back(o);
    }
    for (int v : node_.outputs) {
      Operand o;
      o.value = &subgraph_.value(v);
      outputs_.push_back(o);
    }
    InferContext context(subgraph_, 0, inputs_, outputs_, host_);
    row_->infer(context);
    return !context.deferred();
  }

  Shape shape(int i) const { return outputs_[static_cast<size_t>(i)].shape; }
  template <typename T>
  std::vector<T> result(int i) const {
    return values_of<T>(results_[static_cast<size_t>(i)]);
  }
  /// The contents of input `i` after the runs so far.
  template <typename T>
  std::vector<T> state(int i) const {
    return values_of<T>(data_[static_cast<size_t>(i)]);
  }

 private:
  template <typename T>
  static std::vector<T> values_of(const std::vector<std::byte>& bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    for (size_t k = 0; k < values.size(); ++k) {
      T value;
      std::memcpy(&value, bytes.data() + k * sizeof(T), sizeof(T));
      values[k] = value;
    }
    return values;
  }

  struct NoHost final : Host {
    Callee& callee(int, int) override { leadline::fail(ErrorCode::kInternal, "no subgraphs here"); }
    const ir::Subgraph& subgraph(int) const override { return body; }
    Resources& resources() override { return *state; }
    void checkpoint() override {}
    ir::Subgraph body;
    std::shared_ptr<Resources> state = std::make_shared<Resources>(Budget::with_limit(int64_t{1} << 40));
  };

  int add_value(DType type, const Shape& shape, Quantization q, const char* name) {
    ir::Value value;
    value.name = name + std::to_string(subgraph_.values.size());
    value.dtype = type;
    value.shape = shape;
    value.quantization = std::move(q);
    subgraph_.values.push_back(std::move(value));
    return static_cast<int>(subgraph_.values.size()) - 1;
  }

  const OpDef* row_ = nullptr;
  ir::Node node_;
  ir::Subgraph subgraph_;
  NoHost host_;
  int threads_ = 1;
  std::vector<std::vector<std::byte>> data_;
  std::vector<bool> known_;
  std::vector<Operand> inputs_;
  std::vector<Operand> outputs_;
  std::vector<std::vector<std::byte>> results_;
  std::vector<std::byte> options_;
};

}  // namespace leadline::ops
