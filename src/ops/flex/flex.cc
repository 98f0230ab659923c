// SPDX-License-Identifier: Apache-2.0
#include "ops/flex/flex.h"

#include <limits>
#include <numeric>

#include "ops/families.h"
#include "ops/flex/families.h"
namespace leadline::ops {
namespace {

/// The node that stands for a Flex node in the row of the builtin op; it refers to the translation.
ir::Node stand_in(const OpContext& c, const OpDef& row, const Translation& translation) {
  ir::Node node;
  node.op = row.id;
  node.version = row.max_version;
  for (int i : translation.inputs) node.inputs.push_back(c.node().inputs[static_cast<size_t>(i)]);
  node.outputs = c.node().outputs;
  node.attributes = translation.attributes != nullptr ? translation.attributes
                                                      : std::shared_ptr<const ir::Attributes>(new_attributes(row));
  node.custom_options = translation.custom_options;
  return node;
}

const OpDef& row_for(const OpContext& c, const Translation& translation) {
  const OpDef* row = registry().find(translation.op);
  c.require(row != nullptr && row->infer != nullptr, "there is no row of {}", translation.op.name());
  const auto count = static_cast<int>(translation.inputs.size());
  c.require(count >= row->min_inputs && (row->max_inputs < 0 || count <= row->max_inputs),
            "it has {} inputs for {}, expected {} to {}", count, row->name(), row->min_inputs, row->max_inputs);
  for (int i : translation.inputs) c.require(i < c.input_count(), "input {} is missing", i);
  c.require(c.output_count() >= row->min_outputs && (row->max_outputs < 0 || c.output_count() <= row->max_outputs),
            "it has {} outputs for {}, expected {} to {}", c.output_count(), row->name(), row->min_outputs,
            row->max_outputs);
  return *row;
}

std::vector<Operand> chosen_inputs(const OpContext& c, const Translation& translation) {
  std::vector<Operand> operands;
  for (int i : translation.inputs) operands.push_back(c.input(i));
  return operands;
}

std::vector<Operand> output_operands(const OpContext& c) {
  std::vector<Operand> operands;
  for (int i = 0; i < c.output_count(); ++i) operands.push_back(c.output(i));
  return operands;
}

/// The kernel of a builtin op, which sees the inputs it would have.
class TranslatedKernel final : public Kernel {
 public:
  TranslatedKernel(const ir::Subgraph& subgraph, int node_index, std::shared_ptr<const Translation> translation,
                   std::shared_ptr<const ir::Node> node, std::unique_ptr<Kernel> kernel)
      : subgraph_(subgraph),
        node_index_(node_index),
        translation_(std::move(translation)),
        node_(std::move(node)),
        kernel_(std::move(kernel)) {}

  void pack(std::byte* packed) override { kernel_->pack(packed); }
  void run(RunContext& run) override {
    std::vector<TensorView> views;
    for (int i : translation_->inputs) views.push_back(run.input(i));
    RunContext inner(subgraph_, node_index_, views, run.outputs(), run.scratch(), run.packed(), run.pool(), run.host(),
                     node_.get());
    inner.set_persistent(run.persistent());
    kernel_->run(inner);
  }

 private:
  const ir::Subgraph& subgraph_;
  int node_index_;
  std::shared_ptr<const Translation> translation_;
  std::shared_ptr<const ir::Node> node_;  // kernels may refer to it
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace

const NodeDefAttributes& node_def(const OpContext& c) {
  const auto& attributes = c.attributes<NodeDefAttributes>();
  c.require(attributes.problem.empty(), "{}", attributes.problem);
  return attributes;
}

OpDef flex_row(std::string_view name, int inputs, int outputs, Infer infer, Prepare prepare, std::string_view types) {
  OpDef row{.id = ir::OpId::custom(name)};
  row.min_inputs = std::max(inputs, 0);
  row.required_inputs = inputs < 0 ? std::numeric_limits<int>::max() : inputs;  // none may be absent
  row.max_inputs = inputs;
  row.min_outputs = std::max(outputs, 0);
  row.max_outputs = outputs;
  row.make_attributes = make_attributes<NodeDefAttributes>;
  row.infer = infer;
  row.prepare = prepare;
  row.types = types;
  return row;
}

void infer_translated(InferContext& c, Translate translate) {
  const std::optional<Translation> translation = translate(c);
  if (!translation) return c.defer();
  const OpDef& row = row_for(c, *translation);
  const ir::Node node = stand_in(c, row, *translation);
  const std::vector<Operand> inputs = chosen_inputs(c, *translation);
  std::vector<Operand> outputs = output_operands(c);
  InferContext inner(c.subgraph(), c.node_index(), inputs, outputs, c.host(), &node);
  row.infer(inner);
  if (inner.deferred()) {
    return inner.missing().empty() ? c.defer() : c.defer_for_state(inner.missing());
  }
  for (int i = 0; i < c.output_count(); ++i) {
    c.set_output_shape(i, outputs[static_cast<size_t>(i)].shape);
    c.set_output_bytes(i, outputs[static_cast<size_t>(i)].bytes);
  }
}

std::unique_ptr<Kernel> prepare_translated(PrepareContext& c, Translate translate) {
  std::optional<Translation> found = translate(c);
  c.require(found.has_value(), "an input that says how it is computed is not known");
  const auto translation = std::make_shared<const Translation>(std::move(*found));
  const OpDef& row = row_for(c, *translation);
  const auto node = std::make_shared<const ir::Node>(stand_in(c, row, *translation));
  const std::vector<Operand> inputs = chosen_inputs(c, *translation);
  std::vector<Operand> outputs = output_operands(c);
  const OpContext context(c.subgraph(), c.node_index(), inputs, outputs, c.host(), node.get());
  PrepareContext inner(context, c.threads(), c.winograd());
  std::unique_ptr<Kernel> kernel = row.prepare(inner);
  c.request_scratch(inner.scratch_bytes());
  c.request_persistent(inner.persistent_bytes());
  c.request_packed(inner.packed_bytes(), inner.packed_layout());
  return std::make_unique<TranslatedKernel>(c.subgraph(), c.node_index(), translation, node, std::move(kernel));
}

std::vector<int> input_range(int begin, int end) {
  std::vector<int> inputs(static_cast<size_t>(std::max(end - begin, 0)));
  std::iota(inputs.begin(), inputs.end(), begin);
  return inputs;
}

std::vector<int> all_inputs(const OpContext& c) { return input_range(0, c.input_count()); }

Shape shape_of_input(const OpContext& c, int i) {
  c.require(c.input(i).shape.rank() == 1, "input {} '{}' gives a shape as a tensor of shape {}, expected a vector", i,
            c.input(i).value->name, c.input(i).shape.to_string());
  return checked_shape(c, known_ints(c, i));
}

int64_t integer_of_input(const OpContext& c, int i) {
  require_elements(c, i, 1);
  return known_ints(c, i)[0];
}

void require_scalar(const OpContext& c, int i, const char* what) {
  c.require(c.input(i).shape.elements() == 1, "{} '{}' has shape {}, expected one value", what, c.input(i).value->name,
            c.input(i).shape.to_string());
}

void require_indices(const OpContext& c, int i) { c.require_input_type(i, {DType::kInt32, DType::kInt64}); }

void register_flex(Registry& registry) {
#define LEADLINE_FLEX_FAMILY(family) register_##family(registry);
#include "ops/flex/families.inc"
#undef LEADLINE_FLEX_FAMILY
}

}  // namespace leadline::ops
