// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.h"

#include <fmt/core.h>

#include "core/join.h"

namespace leadline::ir {
namespace {

template <typename T>
int64_t heap_bytes(const std::vector<T>& v) {
  return static_cast<int64_t>(v.capacity() * sizeof(T));
}

int64_t heap_bytes(const std::string& s) {
  constexpr size_t kInsideObject = 15;  // libstdc++ keeps short strings inside the object
  return s.capacity() > kInsideObject ? static_cast<int64_t>(s.capacity()) + 1 : 0;
}

/// Prints attributes as "name=value" words.
class Printer final : public FieldVisitor {
 public:
  explicit Printer(std::string& text) : text_(text) {}
  void field(const char* name, bool& v) override { add(name, v); }
  void field(const char* name, int8_t& v) override { add(name, static_cast<int>(v)); }
  void field(const char* name, int32_t& v) override { add(name, v); }
  void field(const char* name, uint32_t& v) override { add(name, v); }
  void field(const char* name, int64_t& v) override { add(name, v); }
  void field(const char* name, float& v) override { add(name, v); }
  void field(const char* name, std::string& v) override { add(name, fmt::format("'{}'", v)); }
  void field(const char* name, std::vector<uint8_t>& v) override { add(name, fmt::format("<{} bytes>", v.size())); }
  void field(const char* name, std::vector<int32_t>& v) override { add_list(name, v); }
  void field(const char* name, std::vector<uint32_t>& v) override { add_list(name, v); }
  void field(const char* name, std::vector<int64_t>& v) override { add_list(name, v); }
  void field(const char* name, std::vector<float>& v) override { add_list(name, v); }
  void skip() override {}
  void run_only(const char* name, int32_t& v) override {
    if (v != 0) add(name, v);
  }

 private:
  template <typename T>
  void add(const char* name, const T& value) {
    text_ += fmt::format("{}{}={}", text_.empty() ? "" : " ", name, value);
  }
  template <typename T>
  void add_list(const char* name, const std::vector<T>& values) {
    std::vector<std::string> items;
    for (const T& value : values) items.push_back(fmt::format("{}", value));
    text_ += fmt::format("{}{}=[{}]", text_.empty() ? "" : " ", name, join(items, ","));
  }
  std::string& text_;
};

std::string describe_values(const std::vector<int>& indices) {
  std::string text;
  for (int index : indices) {
    if (!text.empty()) text += ", ";
    text += index == kAbsent ? "-" : fmt::format("%{}", index);
  }
  return text;
}

}  // namespace

std::string describe_node(const Subgraph& subgraph, int node_index) {
  const Node& node = subgraph.nodes[static_cast<size_t>(node_index)];
  std::string name;
  if (!node.outputs.empty()) name = subgraph.value(node.outputs[0]).name;
  return fmt::format("{} #{} '{}'", node.op.name(), node_index, name);
}

std::string attributes_text(const Attributes& attributes) {
  std::string text;
  Printer printer(text);
  attributes.clone()->visit(printer);
  return text;
}

int64_t value_bytes(const Value& value) {
  int64_t bytes = static_cast<int64_t>(sizeof(Value)) + heap_bytes(value.name);
  if (value.signature) bytes += heap_bytes(*value.signature);
  const Quantization& q = value.quantization;
  bytes += heap_bytes(q.scale) + heap_bytes(q.zero_point) + heap_bytes(q.min) + heap_bytes(q.max);
  if (value.sparsity) {
    bytes += static_cast<int64_t>(sizeof(Sparsity)) + heap_bytes(value.sparsity->traversal_order) +
             heap_bytes(value.sparsity->block_map) + heap_bytes(value.sparsity->dimensions);
    for (const SparseDimension& d : value.sparsity->dimensions) bytes += heap_bytes(d.segments) + heap_bytes(d.indices);
  }
  return bytes;
}

int64_t graph_bytes(const Graph& graph) {
  int64_t bytes = static_cast<int64_t>(sizeof(Graph)) + heap_bytes(graph.subgraphs) + heap_bytes(graph.signatures) +
                  heap_bytes(graph.metadata) + heap_bytes(graph.description) + heap_bytes(graph.storage);
  for (const Subgraph& s : graph.subgraphs) {
    bytes += heap_bytes(s.name) + heap_bytes(s.nodes) + heap_bytes(s.inputs) + heap_bytes(s.outputs);
    for (const Value& v : s.values) bytes += value_bytes(v);
    for (const Node& n : s.nodes) {
      constexpr int64_t kAttributes = 64;  // an attribute struct with its control block, on average
      bytes += heap_bytes(n.op.name()) + heap_bytes(n.inputs) + heap_bytes(n.outputs) + heap_bytes(n.intermediates) +
               kAttributes;
    }
  }
  for (const auto& block : graph.storage) bytes += heap_bytes(*block);
  return bytes;
}

std::string to_text(const Graph& graph) {
  std::string text;
  for (size_t s = 0; s < graph.subgraphs.size(); ++s) {
    const Subgraph& subgraph = graph.subgraphs[s];
    text += fmt::format("subgraph {} '{}' ({}) -> ({})\n", s, subgraph.name, describe_values(subgraph.inputs),
                        describe_values(subgraph.outputs));
    for (const Node& node : subgraph.nodes) {
      text += fmt::format("  {} = {}({}) {}\n", describe_values(node.outputs), node.op.name(),
                          describe_values(node.inputs), attributes_text(*node.attributes));
    }
    for (size_t v = 0; v < subgraph.values.size(); ++v) {
      const Value& value = subgraph.values[v];
      text += fmt::format("  %{} {}{}{} '{}'\n", v, dtype_name(value.dtype), value.shape.to_string(),
                          value.constant ? " const" : "", value.name);
    }
  }
  return text;
}

}  // namespace leadline::ir
