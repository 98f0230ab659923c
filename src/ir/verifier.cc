// SPDX-License-Identifier: Apache-2.0
#include "ir/verifier.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/integer_range.h"
#include "ir/field_finder.h"
#include "ir/sparsity.h"

namespace leadline::ir {
namespace {

class CallCollector final : public FieldFinder {
 public:
  std::vector<int> calls;
  void subgraph(const char*, int32_t& index) override { calls.push_back(index); }
  void subgraphs(const char*, std::vector<int32_t>& indices) override {
    calls.insert(calls.end(), indices.begin(), indices.end());
  }
};

void verify_quantization(const Subgraph& subgraph, const Value& value, size_t index) {
  const Quantization& q = value.quantization;
  if (q.block_size > 0) {
    const auto count = static_cast<int>(subgraph.values.size());
    require(q.block_scales >= 0 && q.block_scales < count, kBadModel,
            "tensor {} '{}': its blockwise scales are tensor {}, but there are {} tensors", index, value.name,
            q.block_scales, count);
    require(q.block_zero_points >= -1 && q.block_zero_points < count, kBadModel,
            "tensor {} '{}': its blockwise zero points are tensor {}, but there are {} tensors", index, value.name,
            q.block_zero_points, count);
  }
  // Some converters leave parameters on strings and floats, where they mean nothing.
  const auto range = integer_range(value.dtype);
  if (!range) return;
  require(q.scale.size() == q.zero_point.size(), kBadModel, "tensor {} '{}': {} scales but {} zero points", index,
          value.name, q.scale.size(), q.zero_point.size());
  if (q.scale.size() > 1) {
    require(q.axis >= 0 && q.axis < value.shape.rank(), kBadModel,
            "tensor {} '{}': quantized along axis {}, but its shape is {}", index, value.name, q.axis,
            value.shape.to_string());
    require(static_cast<int64_t>(q.scale.size()) == value.shape[q.axis], kBadModel,
            "tensor {} '{}': {} scales, but axis {} of shape {} has {}", index, value.name, q.scale.size(), q.axis,
            value.shape.to_string(), value.shape[q.axis]);
  }
  const auto [lo, hi] = *range;
  for (size_t i = 0; i < q.scale.size(); ++i) {
    require(std::isfinite(q.scale[i]) && q.scale[i] > 0.0F, kBadModel,
            "tensor {} '{}': scale {} is {}, expected a positive number", index, value.name, i, q.scale[i]);
    require(q.zero_point[i] >= lo && q.zero_point[i] <= hi, kBadModel,
            "tensor {} '{}': zero point {} is outside {} ({} to {})", index, value.name, q.zero_point[i],
            dtype_name(value.dtype), lo, hi);
  }
}

void verify_value(const Subgraph& subgraph, size_t index) {
  const Value& value = subgraph.values[index];
  const auto bytes = storage_bytes(value.dtype, value.shape);
  require(bytes.has_value(), kBadModel, "tensor {} '{}': shape {} has more bytes than fit into 64 bits", index,
          value.name, value.shape.to_string());
  verify_quantization(subgraph, value, index);
  require(!value.source || (value.constant && value.data.empty() && !value.sparsity && dtype_bits(value.dtype) > 0),
          kBadModel,
          "tensor {} '{}': only a dense constant of fixed element size without data of its own can have a source",
          index, value.name);
  require(value.constant || !value.sparsity, kBadModel, "tensor {} '{}' is sparse, but has no constant data", index,
          value.name);
  if (!value.constant) return;
  require(!value.variable, kBadModel, "tensor {} '{}' is a variable, so it cannot have constant data", index,
          value.name);
  if (value.sparsity) {
    verify_sparsity(value, fmt::format("tensor {} '{}'", index, value.name));
  } else if (dtype_bits(value.dtype) > 0) {
    require(constant_bytes(value) == *bytes, kBadModel,
            "tensor {} '{}' of type {} and shape {} needs {} bytes, its {} has {}", index, value.name,
            dtype_name(value.dtype), value.shape.to_string(), *bytes, value.source ? "source" : "buffer",
            constant_bytes(value));
  }
}

void verify_order(const Subgraph& subgraph) {
  const auto count = static_cast<int>(subgraph.values.size());
  std::vector<bool> available(subgraph.values.size());
  std::vector<int> producer(subgraph.values.size(), -1);
  std::vector<int> reader(subgraph.values.size(), -1);  // the last node so far
  for (size_t v = 0; v < subgraph.values.size(); ++v) {
    const Value& value = subgraph.values[v];
    available[v] = value.constant || value.variable;
  }
  std::vector<bool> is_input(subgraph.values.size());
  for (int v : subgraph.inputs) {
    require(v >= 0 && v < count, kBadModel, "graph input {} is out of range: there are {} tensors", v, count);
    require(!is_input[static_cast<size_t>(v)], kBadModel, "graph input {} '{}' is listed twice", v,
            subgraph.value(v).name);
    is_input[static_cast<size_t>(v)] = true;
    available[static_cast<size_t>(v)] = true;
  }
  for (size_t n = 0; n < subgraph.nodes.size(); ++n) {
    const Node& node = subgraph.nodes[n];
    auto where = [&] { return fmt::format("{} #{}", node.op.name(), n); };
    for (int v : node.inputs) {
      require(v >= kAbsent && v < count, kBadModel, "{}: input tensor {} is out of range: there are {} tensors",
              where(), v, count);
      if (v == kAbsent) continue;
      reader[static_cast<size_t>(v)] = static_cast<int>(n);
      require(available[static_cast<size_t>(v)], kBadModel,
              "{}: input tensor {} '{}' is not computed before it is used", where(), v, subgraph.value(v).name);
    }
    for (int v : node.intermediates) {
      require(v >= 0 && v < count, kBadModel, "{}: intermediate tensor {} is out of range", where(), v);
    }
    for (int v : node.outputs) {
      require(v >= 0 && v < count, kBadModel, "{}: output tensor {} is out of range: there are {} tensors", where(), v,
              count);
      const Value& value = subgraph.value(v);
      require(reader[static_cast<size_t>(v)] != static_cast<int>(n), kBadModel,
              "{}: tensor {} '{}' is both its input and its output", where(), v, value.name);
      // A node may give a variable its first state.
      const bool writable = value.variable && producer[static_cast<size_t>(v)] == -1;
      require(writable || !available[static_cast<size_t>(v)], kBadModel,
              "{}: output tensor {} '{}' is written already: it is a constant, a graph input or the output of node {}",
              where(), v, value.name, producer[static_cast<size_t>(v)]);
      available[static_cast<size_t>(v)] = true;
      producer[static_cast<size_t>(v)] = static_cast<int>(n);
    }
  }
  for (int v : subgraph.outputs) {
    require(v >= 0 && v < count, kBadModel, "graph output {} is out of range: there are {} tensors", v, count);
    require(available[static_cast<size_t>(v)], kBadModel, "graph output {} '{}' is never computed", v,
            subgraph.value(v).name);
  }
}

void verify_calls(const Graph& graph) {
  enum class Mark { kNew, kOpen, kDone };
  std::vector<Mark> marks(graph.subgraphs.size(), Mark::kNew);
  std::vector<size_t> instances(graph.subgraphs.size(),
                                1);  // runs of a subgraph that calling it sets up, itself included
  // Depth-first with an explicit stack: a chain of calls may be as long as the file allows.
  struct Frame {
    size_t subgraph;
    std::vector<int> calls;
    size_t next = 0;
  };
  // One entry per instance: a node that names a subgraph twice calls the same one.
  auto calls_of = [&](size_t s) {
    std::vector<int> calls;
    for (const Node& node : graph.subgraphs[s].nodes) {
      const std::vector<int> named = called_subgraphs(node);
      for (int call : std::set<int>(named.begin(), named.end())) {
        require(call >= 0 && call < static_cast<int>(graph.subgraphs.size()), kBadModel,
                "{} calls subgraph {}, but there are {}", node.op.name(), call, graph.subgraphs.size());
        calls.push_back(call);
      }
    }
    return calls;
  };
  for (size_t root = 0; root < graph.subgraphs.size(); ++root) {
    if (marks[root] != Mark::kNew) continue;
    std::vector<Frame> stack;
    stack.push_back({root, calls_of(root)});
    marks[root] = Mark::kOpen;
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == frame.calls.size()) {
        marks[frame.subgraph] = Mark::kDone;
        for (int call : frame.calls) {
          instances[frame.subgraph] += instances[static_cast<size_t>(call)];
          require(instances[frame.subgraph] <= kMaxCallInstances, kBadModel,
                  "subgraph {} calls others in more than {} ways", frame.subgraph, kMaxCallInstances);
        }
        stack.pop_back();
        continue;
      }
      const auto callee = static_cast<size_t>(frame.calls[frame.next++]);
      require(marks[callee] != Mark::kOpen, kBadModel, "subgraph {} calls itself through subgraph {}", callee,
              frame.subgraph);
      if (marks[callee] == Mark::kNew) {
        marks[callee] = Mark::kOpen;
        require(stack.size() < kMaxCallDepth, kBadModel, "subgraph calls are nested more than {} deep", kMaxCallDepth);
        stack.push_back({callee, calls_of(callee)});
      }
    }
  }
}

void verify_signatures(const Graph& graph) {
  std::set<std::string> keys;
  for (const Signature& signature : graph.signatures) {
    require(keys.insert(signature.key).second, kBadModel, "two signatures are called '{}'", signature.key);
    require(signature.subgraph >= 0 && signature.subgraph < static_cast<int>(graph.subgraphs.size()), kBadModel,
            "signature '{}' calls subgraph {}, but there are {}", signature.key, signature.subgraph,
            graph.subgraphs.size());
    const Subgraph& subgraph = graph.subgraphs[static_cast<size_t>(signature.subgraph)];
    auto check = [&](const auto& entries, const std::vector<int>& allowed, const char* what) {
      for (const auto& [name, value] : entries) {
        require(std::find(allowed.begin(), allowed.end(), value) != allowed.end(), kBadModel,
                "signature '{}': {} '{}' is tensor {}, which is not an {} of subgraph {}", signature.key, what, name,
                value, what, signature.subgraph);
      }
    };
    check(signature.inputs, subgraph.inputs, "input");
    check(signature.outputs, subgraph.outputs, "output");
  }
}

}  // namespace

std::vector<int> called_subgraphs(const Node& node) {
  CallCollector collector;
  node.attributes->clone()->visit(collector);
  return collector.calls;
}

void verify(const Graph& graph) {
  require(!graph.subgraphs.empty(), kBadModel, "the model has no subgraph");
  for (size_t s = 0; s < graph.subgraphs.size(); ++s) {
    try {
      for (size_t v = 0; v < graph.subgraphs[s].values.size(); ++v) verify_value(graph.subgraphs[s], v);
      verify_order(graph.subgraphs[s]);
    } catch (const Error& error) {
      if (s == 0) throw;
      throw Error(error.code(), fmt::format("subgraph {}: {}", s, error.what()));
    }
  }
  verify_calls(graph);
  verify_signatures(graph);
}

}  // namespace leadline::ir
