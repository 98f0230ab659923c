// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/sketch.h"

#include "core/error.h"
#include "model/writer.h"
#include "ops/registry.h"

namespace leadline::testing {
namespace {

class Setter final : public ir::FieldVisitor {
 public:
  explicit Setter(const AttributeValues& values) : values_(values) {}
  void field(const char* name, bool& v) override { number(name, v); }
  void field(const char* name, int8_t& v) override { number(name, v); }
  void field(const char* name, int32_t& v) override { number(name, v); }
  void field(const char* name, uint32_t& v) override { number(name, v); }
  void field(const char* name, int64_t& v) override { number(name, v); }
  void field(const char* name, float& v) override { number(name, v); }
  void field(const char* name, std::string& v) override {
    if (const auto it = values_.find(name); it != values_.end()) v = std::get<std::string>(it->second);
  }
  void field(const char* name, std::vector<uint8_t>& v) override { numbers(name, v); }
  void field(const char* name, std::vector<int32_t>& v) override { numbers(name, v); }
  void field(const char* name, std::vector<uint32_t>& v) override { numbers(name, v); }
  void field(const char* name, std::vector<int64_t>& v) override { numbers(name, v); }
  void field(const char*, std::vector<float>&) override {}
  void skip() override {}

 private:
  template <typename T>
  void number(const char* name, T& v) {
    if (const auto it = values_.find(name); it != values_.end()) v = static_cast<T>(std::get<int64_t>(it->second));
  }
  template <typename T>
  void numbers(const char* name, std::vector<T>& v) {
    const auto it = values_.find(name);
    if (it == values_.end()) return;
    v.clear();
    for (int64_t item : std::get<std::vector<int64_t>>(it->second)) v.push_back(static_cast<T>(item));
  }
  const AttributeValues& values_;
};

}  // namespace

Sketch::Sketch() : graph_(std::make_shared<ir::Graph>()) {
  graph_->bytes = ModelBytes::copy({});
  next_subgraph("main");
}

int Sketch::next_subgraph(const std::string& name) {
  graph_->subgraphs.emplace_back();
  subgraph().name = name;
  return static_cast<int>(graph_->subgraphs.size()) - 1;
}

int Sketch::value(const std::string& name, DType dtype, const Shape& shape) {
  ir::Value value;
  value.name = name;
  value.dtype = dtype;
  value.shape = shape;
  subgraph().values.push_back(std::move(value));
  return static_cast<int>(subgraph().values.size()) - 1;
}

int Sketch::input(const std::string& name, DType dtype, const Shape& shape) {
  subgraph().inputs.push_back(value(name, dtype, shape));
  return subgraph().inputs.back();
}

int Sketch::variable(const std::string& name, DType dtype, const Shape& shape) {
  const int index = value(name, dtype, shape);
  subgraph().values.back().variable = true;
  return index;
}

int Sketch::constant_bytes(const std::string& name, DType dtype, const Shape& shape, std::vector<std::byte> bytes) {
  const int index = value(name, dtype, shape);
  graph_->storage.push_back(std::make_shared<const std::vector<std::byte>>(std::move(bytes)));
  subgraph().values.back().constant = true;
  subgraph().values.back().data = *graph_->storage.back();
  return index;
}

void Sketch::node(const std::string& op, std::vector<int> inputs, std::vector<int> outputs,
                  const AttributeValues& attributes) {
  const ops::OpDef* row = ops::registry().find_named(op);
  ir::Node node;
  node.op = row == nullptr ? ir::OpId::custom(op) : row->id;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  std::shared_ptr<ir::Attributes> filled =
      row == nullptr ? std::make_unique<ir::NoAttributes>() : ops::new_attributes(*row);
  Setter setter(attributes);
  filled->visit(setter);
  node.attributes = std::move(filled);
  subgraph().nodes.push_back(std::move(node));
}

int Sketch::compute(const std::string& op, std::vector<int> inputs, const std::string& name, DType dtype,
                    const Shape& shape, const AttributeValues& attributes) {
  const int output = value(name, dtype, shape);
  node(op, std::move(inputs), {output}, attributes);
  return output;
}

std::vector<std::byte> Sketch::file() const { return model::write(*graph_); }

Model Sketch::load(std::shared_ptr<Budget> budget) const {
  return Model::from_bytes(file(), nullptr, std::move(budget));
}

}  // namespace leadline::testing
