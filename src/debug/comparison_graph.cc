// SPDX-License-Identifier: Apache-2.0
#include "debug/comparison_graph.h"

#include <algorithm>
#include <optional>

#include "core/cancel.h"
#include "core/error.h"
#include "debug/belonging.h"
#include "debug/index.h"
#include "debug/match.h"
#include "debug/twin.h"
#include "ir/verifier.h"
#include "ops/registry.h"

namespace leadline::debug {
namespace {

/// Both files; pages go back to the one they came from.
class JoinedBytes final : public ModelBytes {
 public:
  JoinedBytes(std::shared_ptr<const ir::Graph> a, std::shared_ptr<const ir::Graph> b)
      : parts_{std::move(a), std::move(b)} {}
  void drop_pages(const std::byte* begin, int64_t bytes) const noexcept override {
    for (const auto& part : parts_) {
      if (!part->bytes) continue;
      const auto span = part->bytes->span();
      if (begin >= span.data() && begin < span.data() + span.size()) part->bytes->drop_pages(begin, bytes);
    }
  }
  void require_intact(bool cheap) const override {
    for (const auto& part : parts_) {
      if (part->bytes) part->bytes->require_intact(cheap);
    }
  }

 private:
  std::vector<std::shared_ptr<const ir::Graph>> parts_;
};

/// Moves the float model's calls and named variables to a place of their own beside the quantized model's.
class Relocation final : public ir::FieldVisitor {
 public:
  explicit Relocation(int subgraphs) : subgraphs_(subgraphs) {}
  void field(const char* name, std::string& value) override {
    if (std::string_view(name) == "shared_name")
      value +=
          "\x1f"
          "float";
  }
  void subgraph(const char* /*name*/, int32_t& index) override { index += subgraphs_; }
  void subgraphs(const char* /*name*/, std::vector<int32_t>& indices) override {
    for (int32_t& index : indices) index += subgraphs_;
  }
  void field(const char*, bool&) override {}
  void field(const char*, int8_t&) override {}
  void field(const char*, int32_t&) override {}
  void field(const char*, uint32_t&) override {}
  void field(const char*, int64_t&) override {}
  void field(const char*, float&) override {}
  void field(const char*, std::vector<uint8_t>&) override {}
  void field(const char*, std::vector<int32_t>&) override {}
  void field(const char*, std::vector<uint32_t>&) override {}
  void field(const char*, std::vector<int64_t>&) override {}
  void field(const char*, std::vector<float>&) override {}
  void skip() override {}

 private:
  int subgraphs_;
};

ir::Node relocated(const ir::Node& node, int subgraphs) {
  ir::Node result = node;
  if (!ir::called_subgraphs(node).empty() || node.op == op::kVarHandle) {
    auto attributes = node.attributes->clone();
    Relocation relocation(subgraphs);
    attributes->visit(relocation);
    result.attributes = std::move(attributes);
  }
  return result;
}

/// One subgraph of the comparison: the quantized model's, with twins and probes and, for the entry, the float model's.
class Weaver {
 public:
  Weaver(const ir::Subgraph& quantized, const ir::Subgraph& reference, int subgraph, bool own_error, bool with_float,
         int subgraph_offset, std::vector<std::string>& unmatched)
      : q_(quantized),
        f_(reference),
        match_(match_subgraphs(quantized, reference)),
        twins_(q_, f_, match_, target_, false),
        subgraph_(subgraph),
        own_error_(own_error),
        with_float_(with_float),
        offset_(subgraph_offset),
        unmatched_(unmatched) {}

  ir::Subgraph run(std::vector<Probe>& probes) {
    probes_ = &probes;
    if (with_float_) require_likeness(q_, f_, match_);
    target_.name = q_.name;
    target_.values = q_.values;
    mapped_.resize(q_.values.size());
    for (size_t v = 0; v < mapped_.size(); ++v) mapped_[v] = static_cast<int>(v);
    if (with_float_) {
      float_at_ = static_cast<int>(target_.values.size());
      for (const ir::Value& value : f_.values) twins_.add_value(value);
      find_float_makers();
      join_inputs();
    } else {
      target_.inputs = q_.inputs;
    }
    PacedCheck check;
    for (size_t n = 0; n < q_.nodes.size(); ++n) {
      check.count(1 << 13);
      add_node(static_cast<int>(n));
    }
    if (with_float_) {
      emit_float(static_cast<int>(f_.nodes.size()) - 1);
      join_outputs();
    } else {
      target_.outputs = q_.outputs;
    }
    return std::move(target_);
  }

 private:
  void find_float_makers() {
    float_maker_.assign(f_.values.size(), -1);
    for (size_t n = 0; n < f_.nodes.size(); ++n) {
      for (int v : f_.nodes[n].outputs) float_maker_[at(v)] = static_cast<int>(n);
    }
  }

  void join_inputs() {
    for (size_t i = 0; i < f_.inputs.size(); ++i) {
      const int from = float_at_ + f_.inputs[i];
      const int to = q_.inputs[at(match_.input[i])];
      const ir::Value& given = f_.values[at(f_.inputs[i])];
      const ir::Value& wanted = q_.values[at(to)];
      target_.inputs.push_back(from);
      if (given.dtype == wanted.dtype) {
        mapped_[at(to)] = from;
        continue;
      }
      require(given.dtype == DType::kFloat32 && is_quantized(wanted), ErrorCode::kInvalidArgument,
              "input '{}' is {} in the float model and {} in the quantized one", given.name, dtype_name(given.dtype),
              dtype_name(wanted.dtype));
      target_.nodes.push_back(ops::make_node(op::kQuantize, {from}, {to}));
      Probe probe;
      probe.tensor = to;
      probe.float_tensor = f_.inputs[i];
      add_probe(probe, to, from, from);
    }
  }

  void join_outputs() {
    for (int v : f_.outputs) target_.outputs.push_back(float_at_ + v);
    for (int v : q_.outputs) target_.outputs.push_back(mapped_[at(v)]);
    require(q_.outputs.size() == f_.outputs.size(), ErrorCode::kInvalidArgument,
            "the float model has {} outputs, the quantized one {}: they do not belong together", f_.outputs.size(),
            q_.outputs.size());
    for (size_t i = 0; i < f_.outputs.size(); ++i) {
      Probe probe;
      probe.kind = Probe::Kind::kOutput;
      probe.tensor = q_.outputs[i];
      probe.float_tensor = f_.outputs[i];
      for (int v : q_.outputs) {  // by what they stand for; else by position
        if (match_.value[at(v)] == f_.outputs[i]) probe.tensor = v;
      }
      const ir::Value& a = q_.values[at(probe.tensor)];
      const ir::Value& b = f_.values[at(f_.outputs[i])];
      if (!is_real(a) || b.dtype != DType::kFloat32) continue;
      require_same_output(a, b);
      add_probe(probe, mapped_[at(probe.tensor)], ir::kAbsent, float_at_ + f_.outputs[i]);
    }
  }

  /// All nodes of the float model up to `last`.
  void emit_float(int last) {
    for (; next_float_ <= last; ++next_float_) {
      ir::Node node = relocated(f_.nodes[at(next_float_)], offset_);
      const auto shift = [&](std::vector<int>& values) {
        for (int& v : values) {
          if (v != ir::kAbsent) v += float_at_;
        }
      };
      shift(node.inputs);
      shift(node.outputs);
      shift(node.intermediates);
      target_.nodes.push_back(std::move(node));
    }
  }

  void add_probe(Probe probe, int value, int own, int accumulated) {
    std::vector<int> inputs = {value, own, accumulated};
    while (inputs.back() == ir::kAbsent) inputs.pop_back();
    ir::Value nothing;
    nothing.name = "probe";
    nothing.dtype = DType::kUInt8;
    nothing.shape = Shape{0};
    const int output = twins_.add_value(std::move(nothing));
    probe.subgraph = subgraph_;
    probe.probe_node = static_cast<int>(target_.nodes.size());
    probe.own = own != ir::kAbsent;
    probe.accumulated = accumulated != ir::kAbsent;
    target_.nodes.push_back(ops::make_node(op::kLeadlineProbe, std::move(inputs), {output}));
    probes_->push_back(std::move(probe));
  }

  void add_node(int n) {
    ir::Node node = q_.nodes[at(n)];
    for (int& v : node.inputs) {
      if (v != ir::kAbsent) v = mapped_[at(v)];
    }
    target_.nodes.push_back(std::move(node));
    const ir::Node& original = q_.nodes[at(n)];
    const bool conversion = changes_type_only(original);
    if (conversion && (original.op == op::kDequantize || match_.from_constant[at(original.inputs[0])])) return;
    std::vector<int> expected(original.outputs.size(), ir::kAbsent);
    std::string note;
    if (conversion) {
      if (own_error_) expected[0] = twins_.as_float(original.inputs[0], mapped_);
    } else if (std::none_of(original.outputs.begin(), original.outputs.end(),
                            [&](int v) { return is_real(q_.values[at(v)]); })) {
      return;
    } else {
      note = twins_.obstacle(n);
      if (match_.node[at(n)] < 0) {
        unmatched_.push_back(ir::describe_node(q_, n) + ": " + note);
      } else if (note.empty() && twins_.unchanged(n)) {
        note = "computes in float as before";
      } else if (note.empty() && own_error_) {
        expected = twins_.add(n, mapped_);
      }
    }
    probe_outputs(n, expected, note);
  }

  void probe_outputs(int n, const std::vector<int>& expected, const std::string& note) {
    const ir::Node& node = q_.nodes[at(n)];
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const int v = node.outputs[i];
      if (!is_real(q_.values[at(v)])) continue;
      const int counterpart = match_.value[at(v)];
      int accumulated = ir::kAbsent;
      if (with_float_ && counterpart >= 0 && f_.values[at(counterpart)].dtype == DType::kFloat32) {
        emit_float(float_maker_[at(counterpart)]);
        accumulated = float_at_ + counterpart;
      }
      // What a probe compares with is float32; a float model may also compute in float16.
      const bool comparable = expected[i] != ir::kAbsent && target_.values[at(expected[i])].dtype == DType::kFloat32;
      const int own = comparable ? expected[i] : ir::kAbsent;
      if (own == ir::kAbsent && accumulated == ir::kAbsent) continue;
      Probe probe;
      probe.node = n;
      probe.tensor = v;
      probe.float_node = match_.node[at(n)];
      probe.float_tensor = counterpart;
      probe.note = note;
      add_probe(std::move(probe), mapped_[at(v)], own, accumulated);
    }
  }

  const ir::Subgraph& q_;
  const ir::Subgraph& f_;
  ir::Subgraph target_;
  const Match match_;
  TwinBuilder twins_;
  const int subgraph_;
  const bool own_error_;
  const bool with_float_;
  const int offset_;
  std::vector<std::string>& unmatched_;
  std::vector<Probe>* probes_ = nullptr;
  std::vector<int> mapped_;       // by value of the quantized subgraph: its place in the target
  int float_at_ = 0;              // where the float subgraph's values begin
  std::vector<int> float_maker_;  // by value of the float subgraph
  int next_float_ = 0;
};

/// The subgraph of the float model that `index` of the quantized model stands for; nothing when there is none.
std::optional<int> counterpart(const ir::Graph& reference, const ir::Graph& quantized, int index) {
  const ir::Subgraph& wanted = quantized.subgraphs[at(index)];
  if (at(index) < reference.subgraphs.size()) {
    const ir::Subgraph& same = reference.subgraphs[at(index)];
    if (same.name == wanted.name || reference.subgraphs.size() == quantized.subgraphs.size()) return index;
  }
  for (size_t i = 0; i < reference.subgraphs.size(); ++i) {
    if (!wanted.name.empty() && reference.subgraphs[i].name == wanted.name) return static_cast<int>(i);
  }
  return index == 0 ? std::optional<int>(0) : std::nullopt;
}

}  // namespace

std::shared_ptr<ModelBytes> join_bytes(std::shared_ptr<const ir::Graph> a, std::shared_ptr<const ir::Graph> b) {
  return std::make_shared<JoinedBytes>(std::move(a), std::move(b));
}

ComparisonGraph make_comparison(std::shared_ptr<const ir::Graph> reference, std::shared_ptr<const ir::Graph> quantized,
                                int entry, bool own_error) {
  require(entry >= 0 && at(entry) < quantized->subgraphs.size(), ErrorCode::kInvalidArgument,
          "subgraph {} does not exist: the quantized model has {}", entry, quantized->subgraphs.size());
  require_order(*reference, *quantized);
  ComparisonGraph result;
  auto graph = std::make_shared<ir::Graph>();
  graph->description = quantized->description;
  graph->bytes = join_bytes(reference, quantized);
  const int count = static_cast<int>(quantized->subgraphs.size());
  for (int i = 0; i < count; ++i) {
    const ir::Subgraph& subgraph = quantized->subgraphs[at(i)];
    const auto other = counterpart(*reference, *quantized, i);
    require(i != entry || other.has_value(), ErrorCode::kInvalidArgument, "the float model has no subgraph '{}'",
            subgraph.name);
    if (!other) {
      graph->subgraphs.push_back(subgraph);
      result.unmatched.push_back(
          fmt::format("subgraph {} '{}': the float model has no such subgraph", i, subgraph.name));
      continue;
    }
    const ir::Subgraph& base = reference->subgraphs[at(*other)];
    if (i != entry && base.inputs.size() != subgraph.inputs.size()) {
      graph->subgraphs.push_back(subgraph);
      continue;
    }
    Weaver weaver(subgraph, base, i, own_error, i == entry, count, result.unmatched);
    graph->subgraphs.push_back(weaver.run(result.probes));
  }
  for (const ir::Subgraph& subgraph : reference->subgraphs) {
    ir::Subgraph copy = subgraph;
    for (ir::Node& node : copy.nodes) node = relocated(node, count);
    graph->subgraphs.push_back(std::move(copy));
  }
  ir::verify(*graph);
  result.graph = std::move(graph);
  return result;
}

}  // namespace leadline::debug
