// SPDX-License-Identifier: Apache-2.0
#include "quantize/weights.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/cancel.h"
#include "core/error.h"
#include "ir/field_finder.h"
#include "ops/registry.h"
#include "quantize/constants.h"
#include "quantize/parameters.h"
#include "quantize/rotation.h"

namespace leadline::quantize {
namespace {

/// What a constant becomes.
struct WeightForm {
  DType dtype = DType::kFloat16;
  int axis = -1;         // with a scale for each slice
  bool widened = false;  // the node reads it through DEQUANTIZE
  bool symmetric = true;
  int block_size = 0;  // with a scale for each block of a row, instead of `axis`
  Rounding rounding = {};
  WeightRotation rotation = WeightRotation::kNone;  // of rounding.rotation

  /// Of what the constant is; a weight that several nodes read is rounded for the first of them.
  auto constant() const { return std::tuple(dtype, axis, symmetric, block_size, rounding.method, rounding.rotation); }
};

/// The version of a node that reads int8 weights with float activations, and has asymmetric inputs where it can.
int hybrid_version(const ir::Node& node, const ops::QuantizationRule::Versions& versions, bool per_channel) {
  const bool own = per_channel && versions.hybrid_per_channel != 0;
  return std::max(node.version, own ? versions.hybrid_per_channel : versions.hybrid);
}

int dequantize_version(DType from, bool per_channel) {
  if (from == DType::kInt4) return 6;
  if (from == DType::kFloat16) return 3;
  return per_channel ? 5 : 2;
}

/// Sets a bool attribute by name, where there is one.
class FlagSetter final : public ir::FieldFinder {
 public:
  explicit FlagSetter(std::string_view name) : name_(name) {}
  using FieldFinder::field;
  void field(const char* name, bool& value) override { value = value || name == name_; }

 private:
  std::string_view name_;
};

bool is_hybrid(QuantizationMode mode) {
  return mode == QuantizationMode::kDynamicRange || mode == QuantizationMode::kDynamicInt4 ||
         mode == QuantizationMode::kDynamicInt2;
}

DType weight_type(QuantizationMode mode) {
  if (mode == QuantizationMode::kDynamicInt2) return DType::kInt2;
  const bool four = mode == QuantizationMode::kWeightOnlyInt4 || mode == QuantizationMode::kDynamicInt4;
  return four ? DType::kInt4 : DType::kInt8;
}

bool rewrites_weights(QuantizationMode mode) { return mode != QuantizationMode::kFloat && !is_integer(mode); }

bool is_float_constant(const ir::Value& value) {
  return value.constant && value.dtype == DType::kFloat32 && value.sparsity == nullptr;
}

/// Bit i: input i holds weights. A table is weights only here: as an activation it need not be symmetric.
uint64_t weight_operands(const ops::OpDef& op) {
  if (op.quantize.table >= 0) return ops::input_set({op.quantize.table});
  if (op.quantize.hybrid_weights != 0) return op.quantize.hybrid_weights;
  return op.symmetric_input() < 0 ? 0 : ops::input_set({op.symmetric_input()});
}

/// The table stays integers when rows are taken from it: only the rows that were asked for are widened.
bool gathers_integers(const ops::OpDef& op, QuantizationMode mode) {
  return op.quantize.table >= 0 &&
         (mode == QuantizationMode::kDynamicRange || mode == QuantizationMode::kWeightOnlyInt8);
}

struct Operand {
  int input = 0;
  WeightForm form;
};

/// What is to become of the operands of one node.
struct Decision {
  std::vector<Operand> operands;
  std::string obstacle;  // when there are none
};

class Decider {
 public:
  /// `index`: of the subgraph.
  Decider(const ir::Subgraph& subgraph, int index, const WeightOptions& options)
      : subgraph_(subgraph), index_(index), options_(options) {}

  Decision decide(const ir::Node& node, const NodeTreatment& treatment) const {
    const QuantizationMode mode = treatment.mode;
    if (mode == QuantizationMode::kFloat16) return halves(node);
    const ops::OpDef* op = ops::row_of(node);
    if (op == nullptr) return {{}, "an op without a rule for its weights"};
    const bool hybrid = is_hybrid(mode);
    const auto needed = hybrid ? ops::QuantizationRule::kHybrid : ops::QuantizationRule::kWeightOnly;
    const uint64_t mask = weight_operands(*op);
    if (mask == 0) return {{}, "has no weights"};
    if ((op->quantize.forms & needed) == 0 && op->quantize.table < 0) {
      return {{},
              hybrid ? "its kernel does not take int8 weights with float activations"
                     : "its weights cannot come from DEQUANTIZE"};
    }
    const ops::ContractionKind kind = op->contraction.kind;
    // Leadline's kernels take them too, but LiteRT's of depthwise convolutions do not, and with 2 bits LiteRT's
    // results for other convolutions are not those of the weights.
    const bool convolves = kind == ops::ContractionKind::kConvolution && mode != QuantizationMode::kDynamicInt2;
    if (hybrid && weight_type(mode) != DType::kInt8 && !convolves && kind != ops::ContractionKind::kDense) {
      return {{},
              fmt::format("its kernel does not take weights of {} bits with float activations",
                          dtype_bits(weight_type(mode)))};
    }
    if (treatment.weights.block_size > 0) {
      if (kind != ops::ContractionKind::kDense) return {{}, "only weights of dense layers have scales for blocks"};
      if (weight_type(mode) != DType::kInt4) return {{}, "only weights of 4 bits have scales for blocks"};
    }
    if (treatment.weights.rotation != WeightRotation::kNone && kind != ops::ContractionKind::kDense) {
      return {{}, "only weights of dense layers are rotated"};
    }
    return integers(node, treatment, *op, mask);
  }

 private:
  const ir::Value& value(int v) const { return subgraph_.value(v); }

  Decision halves(const ir::Node& node) const {
    Decision decision;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == ir::kAbsent || !is_float_constant(value(node.inputs[i]))) continue;
      decision.operands.push_back({static_cast<int>(i), {DType::kFloat16, -1, true}});
    }
    if (decision.operands.empty()) decision.obstacle = "has no float constants";
    return decision;
  }

  Decision integers(const ir::Node& node, const NodeTreatment& treatment, const ops::OpDef& op, uint64_t mask) const {
    Decision decision;
    const int64_t fewest = treatment.weights.min_weight_elements.value_or(options_.min_weight_elements);
    // Of several weights, hybrid kernels take all as int8, or none.
    const bool all_or_none = is_hybrid(treatment.mode) && std::popcount(mask) > 1;
    for (size_t i = 0; i < std::min<size_t>(node.inputs.size(), 64); ++i) {
      if ((mask >> i & 1) == 0 || node.inputs[i] == ir::kAbsent) continue;
      const ir::Value& weights = value(node.inputs[i]);
      std::string obstacle;
      if (!is_float_constant(weights)) {
        obstacle = "its weights are not a dense float constant";
      } else if (weights.shape.elements() < std::max<int64_t>(fewest, 1)) {
        obstacle =
            fmt::format("weights '{}' have {} elements, fewer than {}", weights.name, weights.shape.elements(), fewest);
      } else if (const int64_t block = treatment.weights.block_size;
                 block > 0 && weights.shape[weights.shape.rank() - 1] % block != 0) {
        obstacle = fmt::format("weights '{}' of shape {} do not divide into blocks of {}", weights.name,
                               weights.shape.to_string(), block);
      } else if (treatment.weights.rotation != WeightRotation::kNone && rotation(node, treatment, op, weights) < 2) {
        const ir::Value& read = value(node.inputs[static_cast<size_t>(op.contraction.activations)]);
        obstacle = fmt::format("weights '{}' of shape {} cannot be rotated together with '{}' of shape {}",
                               weights.name, weights.shape.to_string(), read.name, read.shape.to_string());
      }
      if (obstacle.empty()) {
        decision.operands.push_back({static_cast<int>(i), form(node, treatment, op, weights)});
        continue;
      }
      if (decision.obstacle.empty()) decision.obstacle = std::move(obstacle);
      if (all_or_none) {
        decision.operands.clear();
        return decision;
      }
    }
    if (!decision.operands.empty()) {
      decision.obstacle.clear();
    } else if (decision.obstacle.empty()) {
      decision.obstacle = "has no weights";
    }
    return decision;
  }

  int64_t rotation(const ir::Node& node, const NodeTreatment& treatment, const ops::OpDef& op,
                   const ir::Value& weights) const {
    return rotation_size(treatment.weights.rotation, weights.shape,
                         value(node.inputs[static_cast<size_t>(op.contraction.activations)]));
  }

  WeightForm form(const ir::Node& node, const NodeTreatment& treatment, const ops::OpDef& op,
                  const ir::Value& weights) const {
    const QuantizationMode mode = treatment.mode;
    WeightForm form;
    form.dtype = weight_type(mode);
    form.widened = !is_hybrid(mode) && !gathers_integers(op, mode);
    form.symmetric = treatment.weights.symmetric || !form.widened;
    form.rounding = rounding(node, treatment, op, weights);
    if (treatment.weights.rotation != WeightRotation::kNone) {
      form.rotation = treatment.weights.rotation;
      form.rounding.rotation = rotation(node, treatment, op, weights);
    }
    form.block_size = treatment.weights.block_size;
    if (form.block_size > 0) return form;
    form.axis = op.symmetric_axis();
    const int rank = weights.shape.rank();
    if (form.widened && form.axis < 0) {
      // DEQUANTIZE takes scales along any axis, also where the op's own integer kernels do not.
      form.axis = 0;
      if (op.quantize.table >= 0) form.axis = rank - 1;  // a scale for each row would take more than 4-bit rows do
      if (const auto find = op.contraction.find_output_axis) form.axis = find(*node.attributes, rank);
    }
    const bool dense = op.contraction.kind == ops::ContractionKind::kDense;
    if (gathers_integers(op, mode) || !options_.per_channel || (dense && !options_.per_channel_dense) ||
        form.axis >= rank || form.axis < 0) {
      form.axis = -1;
    }
    // One slice is the whole tensor, and slices of one element each do not compress.
    if (form.axis >= 0 && (rank < 2 || weights.shape[form.axis] == 1)) form.axis = -1;
    return form;
  }

  Rounding rounding(const ir::Node& node, const NodeTreatment& treatment, const ops::OpDef& op,
                    const ir::Value& weights) const {
    Rounding rounding;
    rounding.method = treatment.weights.rounding.value_or(options_.rounding);
    rounding.planned = options_.planned;
    if (!op.contraction.has_weights()) return rounding;
    const auto find = op.contraction.find_output_axis;
    const int axis = find != nullptr ? find(*node.attributes, weights.shape.rank()) : op.contraction.output_axis;
    if (axis >= 0 && axis < weights.shape.rank()) rounding.output_axis = axis;
    if (options_.gram_of && treatment.node >= 0) rounding.gram = options_.gram_of(index_, treatment.node);
    return rounding;
  }

  const ir::Subgraph& subgraph_;
  int index_;
  const WeightOptions& options_;
};

/// Sources of constants that several values share, so that the file holds them once.
using FormKey = decltype(WeightForm().constant());
using SourceKey = std::tuple<const void*, FormKey, std::vector<int64_t>>;
struct QuantizedConstant {
  ir::Source source;
  Quantization quantization;
  ir::Source block_scales;  // of blocks
};
using SourceCache = std::map<SourceKey, QuantizedConstant>;

class SubgraphRewriter {
 public:
  SubgraphRewriter(ir::Graph& graph, size_t index, std::vector<NodeTreatment>& treatments, const WeightOptions& options,
                   SourceCache& cache)
      : graph_(graph),
        subgraph_(graph.subgraphs[index]),
        index_(static_cast<int>(index)),
        rotator_(graph, subgraph_),
        treatments_(treatments),
        options_(options),
        cache_(cache),
        before_(subgraph_.nodes.size()),
        after_(subgraph_.nodes.size()) {}

  void run() {
    std::vector<Decision> decisions = decide();
    PacedCheck check;
    for (size_t n = 0; n < decisions.size(); ++n) {
      check.count(1 << 12);
      for (const Operand& operand : decisions[n].operands) rewrite(n, operand);
      if (!decisions[n].operands.empty()) adapt(n, decisions[n]);
    }
    insert_nodes();
  }

 private:
  ir::Value& value(int v) { return subgraph_.value(v); }

  /// Decides all nodes, and finds the constants that keep a float reader.
  std::vector<Decision> decide() {
    const Decider decider(subgraph_, index_, options_);
    std::vector<Decision> decisions(subgraph_.nodes.size());
    keeps_float_.insert(subgraph_.outputs.begin(), subgraph_.outputs.end());
    for (size_t n = 0; n < decisions.size(); ++n) {
      const ir::Node& node = subgraph_.nodes[n];
      if (rewrites_weights(treatments_[n].mode)) decisions[n] = decider.decide(node, treatments_[n]);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        const auto& operands = decisions[n].operands;
        if (std::none_of(operands.begin(), operands.end(), [&](const Operand& o) { return o.input == int(i); })) {
          keeps_float_.insert(node.inputs[i]);
        }
      }
    }
    return decisions;
  }

  void rewrite(size_t n, const Operand& operand) {
    ir::Node& node = subgraph_.nodes[n];
    int& input = node.inputs[static_cast<size_t>(operand.input)];
    const int constant = constant_in(input, operand.form);
    input = operand.form.widened ? widened(n, constant, original_.at(constant)) : constant;
    if (operand.form.rotation == WeightRotation::kNone) return;
    int& read = node.inputs[static_cast<size_t>(ops::row_of(node)->contraction.activations)];
    read = rotator_.rotated(read, operand.form.rotation, operand.form.rounding.rotation, before_[n]);
  }

  /// The value that holds the contents of float constant `v` in another form.
  int constant_in(int v, const WeightForm& form) {
    const auto key = std::pair(v, form.constant());
    if (const auto found = constants_.find(key); found != constants_.end()) return found->second;
    const auto floats = floats_.try_emplace(v, value(v)).first;  // as it was, should the value be replaced below
    ir::Value made = floats->second;
    const QuantizedConstant& contents = quantized(floats->second, form);
    made.dtype = form.dtype;
    made.data = {};
    made.source = contents.source;
    made.quantization = contents.quantization;
    if (contents.block_scales) add_block_scales(made, contents.block_scales);
    int result = v;
    if (keeps_float_.insert(v).second) {
      value(v) = std::move(made);
    } else {
      made.name += form.dtype == DType::kFloat16 ? "_float16" : fmt::format("_int{}", dtype_bits(form.dtype));
      result = static_cast<int>(subgraph_.values.size());
      subgraph_.values.push_back(std::move(made));
    }
    original_[result] = v;
    constants_[key] = result;
    return result;
  }

  /// A tensor of scales beside one of weights in blocks.
  void add_block_scales(ir::Value& weights, ir::Source scales) {
    const int64_t columns = weights.shape[weights.shape.rank() - 1] / weights.quantization.block_size;
    ir::Value made = weights;
    made.name += "_scales";
    made.dtype = DType::kFloat16;
    made.shape = Shape{weights.shape.elements() / (columns * weights.quantization.block_size), columns};
    made.source = std::move(scales);
    made.quantization = {};
    weights.quantization.block_scales = static_cast<int>(subgraph_.values.size());
    subgraph_.values.push_back(std::move(made));
  }

  const QuantizedConstant& quantized(const ir::Value& floats, const WeightForm& form) {
    const void* contents = floats.source ? static_cast<const void*>(floats.source.get()) : floats.data.data();
    const SourceKey key{contents, form.constant(), {floats.shape.begin(), floats.shape.end()}};
    if (const auto found = cache_.find(key); found != cache_.end()) return found->second;
    FloatConstant constant = float_constant(graph_, floats);
    if (form.rounding.rotation > 1) constant = rotated(std::move(constant), form.rounding.rotation);
    QuantizedConstant made;
    if (form.dtype == DType::kFloat16) {
      made.source = half_source(constant);
    } else {
      try {
        quantize_constant(constant, form, made);
      } catch (const Error& error) {
        fail(error.code(), "weights '{}' cannot be quantized: {}", floats.name, error.what());
      }
    }
    return cache_.emplace(key, std::move(made)).first->second;
  }

  static void quantize_constant(const FloatConstant& constant, const WeightForm& form, QuantizedConstant& made) {
    const int bits = dtype_bits(form.dtype);
    if (!form.symmetric) {
      made.quantization = asymmetric_weights(constant, form.axis, bits, form.rounding);
      made.source =
          quantized_source(constant, {form.dtype, made.quantization, false, Arithmetic::kSingle, form.rounding});
      return;
    }
    if (form.block_size > 0) {
      weight_scales(constant, -1, bits, Arithmetic::kSingle);  // throws unless all is finite
      made.quantization.block_size = form.block_size;
      made.source = block_source(constant, form.block_size, form.rounding);
      made.block_scales = block_scales_source(constant, form.block_size, form.rounding);
      return;
    }
    std::vector<float> scales = weight_scales(constant, form.axis, bits, Arithmetic::kSingle, form.rounding);
    made.quantization = symmetric(std::move(scales), std::max(form.axis, 0));
    made.source = quantized_source(constant, {form.dtype, made.quantization, true, Arithmetic::kSingle, form.rounding});
  }

  /// The float value behind DEQUANTIZE of `constant`; the node is put in front of the first that reads it.
  int widened(size_t n, int constant, int original) {
    if (const auto found = widened_.find(constant); found != widened_.end()) return found->second;
    ir::Value made = floats_.at(original);
    made.name += "_dequantized";
    made.constant = false;
    made.data = {};
    made.source = nullptr;
    const int result = static_cast<int>(subgraph_.values.size());
    subgraph_.values.push_back(std::move(made));
    before_[n].push_back(dequantize(constant, result));
    widened_[constant] = result;
    return result;
  }

  ir::Node dequantize(int from, int to) {
    ir::Node node = ops::make_node(op::kDequantize, {from}, {to});
    node.version = dequantize_version(value(from).dtype, value(from).quantization.per_channel());
    return node;
  }

  /// Makes the node itself fit integers that it reads directly.
  void adapt(size_t n, const Decision& decision) {
    ir::Node& node = subgraph_.nodes[n];
    const auto direct = std::find_if(decision.operands.begin(), decision.operands.end(),
                                     [](const Operand& operand) { return !operand.form.widened; });
    if (direct == decision.operands.end()) return;
    const ops::QuantizationRule& rule = ops::row_of(node)->quantize;
    node.version = hybrid_version(node, rule.versions, direct->form.axis >= 0);
    auto attributes = node.attributes->clone();
    FlagSetter setter("asymmetric_quantize_inputs");
    attributes->visit(setter);
    node.attributes = std::move(attributes);
    if (rule.table < 0) return;
    // Rows are gathered as integers, and widened afterwards.
    ir::Value rows = value(node.outputs[0]);
    const ir::Value& table = value(node.inputs[static_cast<size_t>(rule.table)]);
    rows.name += "_int8";
    rows.dtype = table.dtype;
    rows.quantization = table.quantization;
    const int result = static_cast<int>(subgraph_.values.size());
    subgraph_.values.push_back(std::move(rows));
    after_[n].push_back(dequantize(result, node.outputs[0]));
    node.outputs[0] = result;
  }

  void insert_nodes() {
    std::vector<ir::Node> nodes;
    std::vector<NodeTreatment> treatments;
    const auto add = [&](ir::Node node, NodeTreatment mode) {
      nodes.push_back(std::move(node));
      treatments.push_back(std::move(mode));
    };
    for (size_t n = 0; n < subgraph_.nodes.size(); ++n) {
      for (ir::Node& node : before_[n]) add(std::move(node), {});
      add(std::move(subgraph_.nodes[n]), std::move(treatments_[n]));
      for (ir::Node& node : after_[n]) add(std::move(node), {});
    }
    subgraph_.nodes = std::move(nodes);
    treatments_ = std::move(treatments);
  }

  ir::Graph& graph_;
  ir::Subgraph& subgraph_;
  int index_;
  Rotator rotator_;
  std::vector<NodeTreatment>& treatments_;
  const WeightOptions& options_;
  SourceCache& cache_;
  std::set<int> keeps_float_;                         // values whose place is taken
  std::map<int, ir::Value> floats_;                   // constants as they were
  std::map<std::pair<int, FormKey>, int> constants_;  // by float constant and form
  std::map<int, int> original_;                       // the float constant of each new one
  std::map<int, int> widened_;                        // by new constant
  std::vector<std::vector<ir::Node>> before_;
  std::vector<std::vector<ir::Node>> after_;
};

}  // namespace

std::string weights_obstacle(const ir::Subgraph& subgraph, const ir::Node& node, const NodeTreatment& treatment,
                             const WeightOptions& options) {
  if (!rewrites_weights(treatment.mode)) return {};
  return Decider(subgraph, 0, options).decide(node, treatment).obstacle;  // for which matrices do not matter
}

Treatments quantize_weights(ir::Graph& graph, const Treatments& treatments, const WeightOptions& options) {
  Treatments result = treatments;
  result.resize(graph.subgraphs.size());
  SourceCache cache;
  for (size_t s = 0; s < graph.subgraphs.size(); ++s) {
    require(result[s].size() == graph.subgraphs[s].nodes.size(), ErrorCode::kInvalidArgument,
            "subgraph {} has {} nodes, but {} treatments", s, graph.subgraphs[s].nodes.size(), result[s].size());
    SubgraphRewriter(graph, s, result[s], options, cache).run();
  }
  return result;
}

}  // namespace leadline::quantize
