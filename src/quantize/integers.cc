// SPDX-License-Identifier: Apache-2.0
#include "quantize/integers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/cancel.h"
#include "core/error.h"
#include "ops/arithmetic.h"
#include "ops/registry.h"
#include "quantize/propagation.h"

namespace leadline::quantize {
namespace {

/// The type of a value, and for integers their parameters.
struct Form {
  DType type = DType::kFloat32;
  Parameters parameters = {};
  friend bool operator==(const Form&, const Form&) = default;
};
constexpr Form kFloatForm;

DType type_of(QuantizationMode mode) { return mode == QuantizationMode::kInt16x8 ? DType::kInt16 : DType::kInt8; }

bool is_8bit(DType type) { return type == DType::kInt8 || type == DType::kUInt8; }

/// Whether LiteRT's QUANTIZE converts one integer type to the other directly.
bool rescales(DType from, DType to) {
  return (is_8bit(from) && is_8bit(to)) || (from == DType::kInt16 && (to == DType::kInt16 || to == DType::kInt8));
}

std::string lower_name(DType type) {
  return type == DType::kInt16 ? "int16" : type == DType::kUInt8 ? "uint8" : "int8";
}

/// Subgraph 0 on its way from floats to integers. Nodes are rewritten one after the other; a value is available in the
/// form it is made in, and in others from where a node first needed them.
class Rewrite {
 public:
  Rewrite(ir::Graph& graph, const std::vector<NodeTreatment>& treatments, const RangeOf& range_of,
          const IntegerOptions& options)
      : graph_(graph),
        subgraph_(graph.subgraphs[0]),
        treatments_(treatments),
        range_of_(range_of),
        options_(options),
        scales8_(propagate(graph, 0, treatments, QuantizationMode::kInt8, range_of)),
        scales16_(propagate(graph, 0, treatments, QuantizationMode::kInt16x8, range_of)),
        forms_(subgraph_.values.size()),
        constants_(subgraph_.values.size()) {
    for (const ir::Value& value : subgraph_.values) {
      names_.push_back(value.name);
      taken_.insert(value.name);
    }
  }

  std::vector<NodeTreatment> run() {
    const std::vector<ir::Node> nodes = std::move(subgraph_.nodes);
    subgraph_.nodes.clear();
    for (size_t v = 0; v < forms_.size(); ++v) forms_[v] = {{kFloatForm, static_cast<int>(v)}};
    for (int v : subgraph_.inputs) give_input_its_type(v);
    PacedCheck check;
    for (size_t n = 0; n < nodes.size(); ++n) {
      check.count(1 << 12);
      ir::Node node = nodes[n];
      if (is_integer(treatments_[n].mode)) {
        make_integer(node, static_cast<int>(n), treatments_[n].mode);
      } else {
        feed_floats(node);
      }
      emit(std::move(node), treatments_[n]);
    }
    give_outputs_their_type();
    return std::move(new_treatments_);
  }

 private:
  struct Available {
    Form form;
    int value = 0;
  };
  struct QuantizedConstant {
    DType type;
    Quantization quantization;
    int value;
  };

  ir::Value& value(int v) { return subgraph_.values[static_cast<size_t>(v)]; }
  std::vector<Available>& forms(int v) { return forms_[static_cast<size_t>(v)]; }
  const Scales& scales(DType type) const { return type == DType::kInt16 ? scales16_ : scales8_; }
  bool is_float32(int v) { return v != ir::kAbsent && value(v).dtype == DType::kFloat32; }

  void emit(ir::Node node, NodeTreatment mode) {
    subgraph_.nodes.push_back(std::move(node));
    new_treatments_.push_back(std::move(mode));
  }

  std::string new_name(const std::string& name, const std::string& suffix) {
    std::string result = name + suffix;
    if (taken_.insert(result).second) return result;
    int& last = numbered_[result];
    do {
      result = fmt::format("{}{}_{}", name, suffix, ++last);
    } while (!taken_.insert(result).second);
    return result;
  }

  int add_value(std::string name, const Form& form, int like) {
    ir::Value added;
    added.name = std::move(name);
    added.dtype = form.type;
    added.shape = value(like).shape;
    added.signature = value(like).signature;
    added.has_rank = value(like).has_rank;
    if (form.type != DType::kFloat32) added.quantization = per_tensor(form.parameters);
    subgraph_.values.push_back(std::move(added));
    return static_cast<int>(subgraph_.values.size()) - 1;
  }

  /// Value `v` of the float graph in a form: the one it has, one made before, or a new conversion.
  int obtain(int v, const Form& wanted) {
    for (const Available& available : forms(v)) {
      if (available.form == wanted) return available.value;
    }
    Available from = forms(v).front();
    const DType type = from.form.type;
    if (wanted.type != DType::kFloat32 && type != DType::kFloat32 && !rescales(type, wanted.type)) {
      from = {kFloatForm, obtain(v, kFloatForm)};
    }
    const bool same_width = is_8bit(from.form.type) == is_8bit(wanted.type) && from.form.type == wanted.type;
    const std::string suffix = wanted.type == DType::kFloat32 ? "_float"
                               : same_width                   ? "_requantized"
                                                              : "_" + lower_name(wanted.type);
    const int made = add_value(new_name(names_[static_cast<size_t>(v)], suffix), wanted, v);
    convert(from, {wanted, made});
    forms(v).push_back({wanted, made});
    return made;
  }

  void convert(const Available& from, const Available& to) {
    const bool widens = to.form.type == DType::kFloat32;
    ir::Node node = ops::make_node(widens ? op::kDequantize : op::kQuantize, {from.value}, {to.value});
    node.version = widens ? (from.form.type == DType::kInt16  ? 3
                             : from.form.type == DType::kInt8 ? 2
                                                              : 1)
                          : (to.form.type == DType::kInt16 ? 2 : 1);
    emit(std::move(node), {});
  }

  /// Parameters of an input or output of the graph as 8 or 16 bits; nothing when nothing is known of it.
  std::optional<Parameters> border_parameters(int v, DType type) {
    if (const auto& known = scales(type).values[static_cast<size_t>(v)]) return known;
    const auto range = range_of_(0, v, type == DType::kInt16 ? 16 : 8, type == DType::kInt16);
    if (!range) return {};
    const Parameters parameters = activation_parameters(*range, type);
    return std::isfinite(parameters.scale) ? std::optional(parameters) : std::nullopt;
  }

  static Form border_form(DType type, Parameters parameters) {
    if (type == DType::kUInt8) parameters.zero_point += 128;
    return {type, parameters};
  }

  void give_input_its_type(int v) {
    const DType type = options_.input_type;
    if (type == DType::kFloat32 || !is_float32(v)) return;
    const auto parameters = border_parameters(v, type == DType::kUInt8 ? DType::kInt8 : type);
    if (!parameters) return;
    set_form(v, border_form(type, *parameters));
  }

  /// The value is made in this form.
  void set_form(int v, const Form& form) {
    value(v).dtype = form.type;
    value(v).quantization = per_tensor(form.parameters);
    forms(v) = {{form, v}};
  }

  void feed_floats(ir::Node& node) {
    const ops::OpDef* op = ops::row_of(node);
    const bool any_form = op != nullptr && op->reads_shapes_only;
    for (int& v : node.inputs) {
      if (v == ir::kAbsent) continue;
      v = any_form ? forms(v).front().value : obtain(v, kFloatForm);
    }
  }

  void make_integer(ir::Node& node, int n, QuantizationMode mode) {
    const ops::OpDef& op = *ops::row_of(node);
    const ops::QuantizationRule::Versions& versions = op.quantize.versions;
    const DType type = type_of(mode);
    const ir::Node floats = node;
    std::vector<float> weight_scales;
    if (has_constant(floats, op.symmetric_input())) weight_scales = scales_of_weights(floats, n, op, type);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int v = floats.inputs[i];
      if (!was_float(v)) continue;
      const auto operand = static_cast<int>(i);
      if (operand == op.bias_input()) {
        node.inputs[i] = bias(floats, n, op, type, weight_scales);
      } else if (operand == op.symmetric_input() && value(v).constant) {
        node.inputs[i] = constant(v, DType::kInt8, symmetric(weight_scales, op.symmetric_axis()), true);
      } else if (value(v).constant) {
        node.inputs[i] = constant_activation(floats, n, operand, type);
      } else {
        node.inputs[i] = obtain(v, {type, *scales(type).input(floats, n, operand)});
      }
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const int v = node.outputs[i];
      if (is_float32(v)) set_form(v, {type, *scales(type).output(floats, n, static_cast<int>(i))});
    }
    node.version = std::max(node.version, type == DType::kInt8 ? versions.int8 : versions.int16);
    if (const auto* sum = ir::attributes_if<ops::AddAttributes>(*node.attributes); sum && type == DType::kInt16) {
      // Scales are any numbers, not the powers of two that the format has for its default here.
      auto attributes = std::make_shared<ops::AddAttributes>(*sum);
      attributes->pot_scale_int16 = false;
      node.attributes = std::move(attributes);
    }
  }

  /// Whether a value of the float graph was float there.
  bool was_float(int v) { return v != ir::kAbsent && (is_float32(v) || forms(v).front().form != kFloatForm); }

  bool has_constant(const ir::Node& node, int i) {
    return i >= 0 && i < static_cast<int>(node.inputs.size()) && is_float32(node.inputs[static_cast<size_t>(i)]) &&
           value(node.inputs[static_cast<size_t>(i)]).constant;
  }

  std::vector<float> scales_of_weights(const ir::Node& node, int n, const ops::OpDef& op, DType type) {
    const ir::Value& weights = value(node.inputs[static_cast<size_t>(op.symmetric_input())]);
    const int axis = channel_axis(options_, op, weights.shape);
    std::vector<float> scales;
    {
      const Floats floats(weights);
      scales = quantize::weight_scales(floats.values(), weights.shape, axis);
    }
    require_finite(scales, weights);
    if (type == DType::kInt8 && has_constant(node, op.bias_input())) {
      const Floats bias(value(node.inputs[static_cast<size_t>(op.bias_input())]));
      bias_scales(input_scale(node, n, op, type), scales, bias.values());  // may widen the scales of weights
    }
    return scales;
  }

  float input_scale(const ir::Node& node, int n, const ops::OpDef& op, DType type) {
    return scales(type).input(node, n, op.contraction.activations)->scale;
  }

  int bias(const ir::Node& node, int n, const ops::OpDef& op, DType type, const std::vector<float>& weight_scales) {
    const int v = node.inputs[static_cast<size_t>(op.bias_input())];
    std::vector<float> scales = weight_scales;
    if (scales.empty()) scales = {this->scales(type).input(node, n, op.symmetric_input())->scale};
    for (float& scale : scales) scale *= input_scale(node, n, op, type);
    const int axis = std::max(value(v).shape.rank() - 1, 0);
    require(scales.size() == 1 ||
                (value(v).shape.rank() > 0 && value(v).shape[axis] == static_cast<int64_t>(scales.size())),
            ErrorCode::kInvalidModel, "the bias '{}' has shape {}, but there are {} channels", value(v).name,
            value(v).shape.to_string(), scales.size());
    require_finite(scales, value(v));
    return constant(v, type == DType::kInt8 ? DType::kInt32 : DType::kInt64, symmetric(std::move(scales), axis), false);
  }

  int constant_activation(const ir::Node& node, int n, int operand, DType type) {
    const int v = node.inputs[static_cast<size_t>(operand)];
    std::optional<Parameters> parameters;
    if (const auto shared = scales(type).inputs.find({n, operand}); shared != scales(type).inputs.end()) {
      parameters = shared->second;
    } else {
      parameters = constant_parameters(Floats(value(v)).values(), type);
    }
    require_finite({&parameters->scale, 1}, value(v));
    return constant(v, type, per_tensor(*parameters), false);
  }

  static void require_finite(std::span<const float> scales, const ir::Value& value) {
    for (const float scale : scales) {
      require(std::isfinite(scale) && scale > 0.0F, ErrorCode::kUnsupported,
              "'{}' cannot be quantized: it holds numbers that are not finite, or too large or small for a scale",
              value.name);
    }
  }

  /// Constant `v` as integers; equal ones are made once. The float constant stays for others.
  int constant(int v, DType type, Quantization quantization, bool narrow) {
    for (const QuantizedConstant& made : constants_[static_cast<size_t>(v)]) {
      if (made.type == type && made.quantization == quantization) return made.value;
    }
    std::vector<QuantizedConstant>& all = constants_[static_cast<size_t>(v)];
    ir::Value made;
    // Names lead back to the float model: the first one keeps it, and the float one is dropped if it is not needed.
    made.name = all.empty() ? value(v).name : new_name(value(v).name, "_" + std::to_string(all.size()));
    made.dtype = type;
    made.shape = value(v).shape;
    made.has_rank = value(v).has_rank;
    made.constant = true;
    made.source = zeros(v, type);
    if (!made.source) {
      made.source = quantized_source(ir::source_of(graph_, value(v)), made.shape, type, quantization, narrow);
    }
    made.quantization = quantization;
    subgraph_.values.push_back(std::move(made));
    const auto added = static_cast<int>(subgraph_.values.size()) - 1;
    all.push_back({type, std::move(quantization), added});
    return added;
  }

  /// Biases of zeros are the same whatever their scales, so the file holds them once; null for other constants.
  ir::Source zeros(int v, DType type) {
    if (type != DType::kInt32 && type != DType::kInt64) return nullptr;
    const Floats floats(value(v));
    if (std::any_of(floats.values().begin(), floats.values().end(), [](float x) { return x != 0.0F; })) return nullptr;
    const size_t bytes = floats.values().size() * static_cast<size_t>(dtype_bits(type) / 8);
    ir::Source& source = zeros_[bytes];
    if (!source) source = ir::owned_source(std::vector<std::byte>(bytes));
    return source;
  }

  void give_outputs_their_type() {
    std::vector<std::pair<int, int>> replaced;
    const std::set<int> inputs(subgraph_.inputs.begin(), subgraph_.inputs.end());
    for (int& output : subgraph_.outputs) {
      const int v = output;
      if (!was_float(v) || value(v).constant) continue;
      const std::optional<Form> wanted = output_form(v);
      if (!wanted || *wanted == forms(v).front().form) continue;
      const DType inner = forms(v).front().form.type;
      output = obtain(v, *wanted);
      if (!inputs.contains(v) && value(output).name != names_[static_cast<size_t>(v)]) {
        // The outside keeps the name.
        if (value(v).name == names_[static_cast<size_t>(v)]) {
          value(v).name = new_name(names_[static_cast<size_t>(v)],
                                   inner == DType::kFloat32 ? std::string("_float") : "_" + lower_name(inner));
          value(output).name = names_[static_cast<size_t>(v)];
        }
      }
      replaced.emplace_back(v, output);
    }
    for (ir::Signature& signature : graph_.signatures) {
      if (signature.subgraph != 0) continue;
      for (auto& [name, v] : signature.outputs) {
        for (const auto& [from, to] : replaced) {
          if (v == from) {
            v = to;
            break;
          }
        }
      }
    }
  }

  /// Nothing: as it is.
  std::optional<Form> output_form(int v) {
    const DType type = options_.output_type;
    if (type == DType::kFloat32) return kFloatForm;
    const DType base = type == DType::kUInt8 ? DType::kInt8 : type;
    const Form& made = forms(v).front().form;
    if (made.type == base) return border_form(type, made.parameters);
    const auto parameters = border_parameters(v, base);
    if (!parameters) return {};
    return border_form(type, *parameters);
  }

  ir::Graph& graph_;
  ir::Subgraph& subgraph_;
  const std::vector<NodeTreatment>& treatments_;
  const RangeOf& range_of_;
  const IntegerOptions& options_;
  Scales scales8_;
  Scales scales16_;
  std::vector<std::vector<Available>> forms_;              // by value of the float graph, the one it is made in first
  std::vector<std::vector<QuantizedConstant>> constants_;  // by value of the float graph
  std::map<size_t, ir::Source> zeros_;                     // by size
  std::vector<std::string> names_;                         // of the float graph
  std::set<std::string> taken_;
  std::map<std::string, int> numbered_;  // the last number that a taken name was given
  std::vector<NodeTreatment> new_treatments_;
};

/// The first activation of a node for which there are no parameters; kAbsent: all have some.
int without_parameters(const ir::Subgraph& subgraph, int n, const Scales& scales) {
  const ir::Node& node = subgraph.nodes[static_cast<size_t>(n)];
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (is_activation(subgraph, node.inputs[i]) && !scales.input(node, n, static_cast<int>(i))) return node.inputs[i];
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (is_activation(subgraph, node.outputs[i]) && !scales.output(node, n, static_cast<int>(i))) {
      return node.outputs[i];
    }
  }
  return ir::kAbsent;
}

}  // namespace

int channel_axis(const IntegerOptions& options, const ops::OpDef& op, const Shape& weights) {
  const bool dense = op.contraction.kind == ops::ContractionKind::kDense;
  const bool per_channel = options.per_channel && (options.per_channel_dense || !dense);
  return per_channel && op.symmetric_axis() < weights.rank() ? op.symmetric_axis() : -1;
}

void resolve_treatments(const ir::Graph& graph, Treatments& treatments, const RangeOf& range_of) {
  const ir::Subgraph& subgraph = graph.subgraphs[0];
  for (const QuantizationMode mode : {QuantizationMode::kInt8, QuantizationMode::kInt16x8}) {
    for (bool changed = true; changed;) {
      changed = false;
      check_cancelled();
      const Scales scales = propagate(graph, 0, treatments[0], mode, range_of);
      for (size_t n = 0; n < subgraph.nodes.size(); ++n) {
        if (treatments[0][n].mode != mode) continue;
        const int v = without_parameters(subgraph, static_cast<int>(n), scales);
        if (v == ir::kAbsent) continue;
        treatments[0][n] = {QuantizationMode::kFloat, fmt::format("no sample gave '{}' a usable range of values",
                                                                  subgraph.values[static_cast<size_t>(v)].name)};
        changed = true;
      }
    }
  }
}

Treatments quantize_integers(ir::Graph& graph, const Treatments& treatments, const RangeOf& range_of,
                             const IntegerOptions& options) {
  Treatments result = treatments;
  result[0] = Rewrite(graph, treatments[0], range_of, options).run();
  return result;
}

}  // namespace leadline::quantize
