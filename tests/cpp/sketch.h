// SPDX-License-Identifier: Apache-2.0
// Models written down by hand for tests, several subgraphs included. Nothing is inferred or verified while a sketch
// grows, so that tests can build illegal ones too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ir/graph.h"
#include "leadline/interpreter.h"
#include "leadline/model.h"

namespace leadline::testing {

/// Attributes of a node by their names in the format.
using AttributeValues = std::map<std::string, std::variant<int64_t, std::string, std::vector<int64_t>>>;

class Sketch {
 public:
  /// Begins with an empty subgraph 0.
  Sketch();

  /// Later calls add to a new subgraph; returns its index.
  int next_subgraph(const std::string& name);
  int value(const std::string& name, DType dtype, const Shape& shape);
  int input(const std::string& name, DType dtype, const Shape& shape);
  int variable(const std::string& name, DType dtype, const Shape& shape);
  int constant_bytes(const std::string& name, DType dtype, const Shape& shape, std::vector<std::byte> bytes);
  template <typename T>
  int constant(const std::string& name, DType dtype, const Shape& shape, const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return constant_bytes(name, dtype, shape, {bytes.begin(), bytes.end()});
  }
  void node(const std::string& op, std::vector<int> inputs, std::vector<int> outputs,
            const AttributeValues& attributes = {});
  /// Adds a value of this type and shape and the node that computes it.
  int compute(const std::string& op, std::vector<int> inputs, const std::string& name, DType dtype, const Shape& shape,
              const AttributeValues& attributes = {});
  void outputs(std::vector<int> values) { subgraph().outputs = std::move(values); }

  ir::Graph& graph() { return *graph_; }
  const ir::Graph& graph() const { return *graph_; }
  ir::Subgraph& subgraph() { return graph_->subgraphs.back(); }

  /// The sketch as a .tflite file, and loaded from it.
  std::vector<std::byte> file() const;
  Model load(std::shared_ptr<Budget> budget = nullptr) const;

 private:
  std::shared_ptr<ir::Graph> graph_;
};

/// What `body` threw; nothing when it returned.
struct Thrown {
  std::optional<ErrorCode> code;
  std::string message;
  bool names(const std::string& part) const { return message.find(part) != std::string::npos; }
};
template <typename Body>
Thrown thrown_by(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {std::nullopt, "nothing was thrown"};
}

template <typename T>
void set(Interpreter& interpreter, int tensor, const std::vector<T>& values) {
  interpreter.set_tensor(tensor, std::as_bytes(std::span(values)));
}

template <typename T>
std::vector<T> get(const Interpreter& interpreter, int tensor) {
  const TensorMemory memory = interpreter.tensor(tensor);
  std::vector<T> values(static_cast<size_t>(memory.bytes) / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), memory.data, values.size() * sizeof(T));
  return values;
}

/// The first input and output of the interpreter's subgraph, run once.
template <typename T>
std::vector<T> run(Interpreter& interpreter, const std::vector<T>& input) {
  set(interpreter, interpreter.inputs()[0], input);
  interpreter.invoke();
  return get<T>(interpreter, interpreter.outputs()[0]);
}

}  // namespace leadline::testing
