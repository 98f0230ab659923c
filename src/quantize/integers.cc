// SPDX-License-Identifier: Apache-2.0
#include "quantize/integers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/cancel.h"
#include "core/error.h"
#include "ops/arithmetic.h"
#include "ops/cast.h"
#include "ops/registry.h"
#include "ops/result_types.h"
#include "passes/renumber.h"
#include "quantize/constants.h"
#include "quantize/crossings.h"
#include "quantize/propagation.h"
#include "quantize/recurrent.h"

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

/// Integers of float constants that several subgraphs share, so that the file holds them once.
struct SharedSources {
  struct Made {
    Quantization quantization;
    ir::Source source;
  };
  std::map<std::tuple<const void*, DType, bool>, std::vector<Made>> constants;  // by float contents, type, narrow
  std::map<size_t, ir::Source> zeros;                                           // by size
};

/// Of the float graph: what crosses over to subgraphs that nodes call, and for one of them the mode of its caller.
struct Borders {
  const Crossings& crossings;
  std::optional<QuantizationMode> caller;  // nothing: the subgraph is run by itself
};

/// A subgraph on its way from floats to integers. Nodes are rewritten one after the other; a value is available
/// in the form it is made in, and in others from where a node first needed them.
class Rewrite {
 public:
  Rewrite(ir::Graph& graph, int index, const std::vector<NodeTreatment>& treatments, const RangeOf& range_of,
          const IntegerOptions& options, SharedSources& shared, const Borders& borders)
      : graph_(graph),
        index_(index),
        subgraph_(graph.subgraphs[static_cast<size_t>(index)]),
        treatments_(treatments),
        range_of_(range_of),
        options_(options),
        shared_(shared),
        borders_(borders),
        scales8_(propagate(graph, index, treatments, QuantizationMode::kInt8, range_of)),
        scales16_(propagate(graph, index, treatments, QuantizationMode::kInt16x8, range_of)),
        forms_(subgraph_.values.size()),
        constants_(subgraph_.values.size()) {
    for (const ir::Value& value : subgraph_.values) {
      names_.push_back(value.name);
      taken_.insert(value.name);
    }
    for (const StateSetter& setter : state_setters(subgraph_)) {
      if (is_integer(treatments[static_cast<size_t>(setter.node)].mode)) setters_[setter.node] = setter;
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
      if (is_integer(treatments_[n].mode) && ir::is_one_of(node.op, {op::kFakeQuant})) {
        pass_integers(node, static_cast<int>(n), treatments_[n].mode);
        continue;
      }
      if (const auto setter = setters_.find(static_cast<int>(n)); setter != setters_.end()) {
        set_state(node, setter->second, nodes[static_cast<size_t>(setter->second.reader)], treatments_[n]);
        continue;
      }
      if (is_integer(treatments_[n].mode) && !state_inputs(node).empty()) {
        make_recurrent(node, static_cast<int>(n));
      } else if (is_integer(treatments_[n].mode) && is_call(node)) {
        make_call(node, treatments_[n].mode);
      } else if (is_integer(treatments_[n].mode)) {
        make_integer(node, static_cast<int>(n), treatments_[n].mode);
      } else {
        feed_floats(node);
      }
      emit(std::move(node), treatments_[n]);
    }
    give_outputs_their_type();
    order_values();
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

  ir::Value& value(int v) { return subgraph_.value(v); }
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
    const bool from_float = from.form.type == DType::kFloat32 && !options_.quantized_name.empty();
    const int made =
        add_value(from_float ? new_name(options_.quantized_name, "") : new_name(names_[static_cast<size_t>(v)], suffix),
                  wanted, v);
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
    const auto range = range_of_(index_, v, type == DType::kInt16 ? 16 : 8, type == DType::kInt16);
    if (!range) return {};
    const Parameters parameters = activation_parameters(*range, type);
    return std::isfinite(parameters.scale) ? std::optional(parameters) : std::nullopt;
  }

  static Form border_form(DType type, Parameters parameters) {
    if (type == DType::kUInt8) parameters.zero_point += 128;
    return {type, parameters};
  }

  /// What a value has that crosses over to or from a subgraph that a node of this mode calls.
  std::optional<Form> crossing_form(std::optional<Place> place, QuantizationMode mode) {
    const DType type = type_of(mode);
    if (!place || !is_integer(mode)) return {};
    const auto range = range_of_(place->subgraph, place->value, type == DType::kInt16 ? 16 : 8, type == DType::kInt16);
    if (!range) return {};
    const Parameters parameters = activation_parameters(*range, type);
    return std::isfinite(parameters.scale) ? std::optional(Form{type, parameters}) : std::nullopt;
  }

  /// A WHILE or an IF.
  void make_call(ir::Node& node, QuantizationMode mode) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int v = node.inputs[i];
      if (!was_float(v)) continue;
      const Form form = crossing_form(borders_.crossings.inside_input(node, i), mode).value_or(kFloatForm);
      const bool integers = value(v).constant && form.type != DType::kFloat32;
      node.inputs[i] = integers ? constant(v, form.type, per_tensor(form.parameters), false) : obtain(v, form);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!is_float32(node.outputs[i])) continue;
      if (const auto form = crossing_form(borders_.crossings.inside_output(node, i), mode)) {
        set_form(node.outputs[i], *form);
      }
    }
  }

  void give_input_its_type(int v) {
    if (borders_.caller) {
      const auto form = is_float32(v) ? crossing_form(Place{index_, v}, *borders_.caller) : std::nullopt;
      if (form) set_form(v, *form);
      return;
    }
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

  /// A node that rounds to the levels of integers: whoever reads its result reads the operand as those integers.
  void pass_integers(const ir::Node& node, int n, QuantizationMode mode) {
    const Form form{type_of(mode), *scales(type_of(mode)).output(node, n, 0)};
    forms(node.outputs[0]) = {{form, obtain(node.inputs[0], form)}};
  }

  void feed_floats(ir::Node& node) {
    const ops::OpDef* op = ops::row_of(node);
    // Only shapes are read, and the result is of another type than what they belong to.
    const bool any_form = op != nullptr && op->reads_shapes_only && ops::result_type_source(node.op) < 0;
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
    Rounding rounding;
    if (has_constant(floats, op.symmetric_input())) {
      rounding = rounding_of(options_, op, index_, treatments_[static_cast<size_t>(n)],
                             value(floats.inputs[static_cast<size_t>(op.symmetric_input())]).shape);
    }
    if (has_constant(floats, op.symmetric_input())) weight_scales = scales_of_weights(floats, n, op, type, rounding);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int v = floats.inputs[i];
      if (!was_float(v)) continue;
      const auto operand = static_cast<int>(i);
      if (operand == op.bias_input()) {
        node.inputs[i] = bias(floats, n, op, type, weight_scales);
      } else if (operand == op.symmetric_input() && value(v).constant) {
        node.inputs[i] = constant(v, DType::kInt8, symmetric(weight_scales, op.symmetric_axis()), true, rounding);
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

  RecurrentForm form_of(const ir::Node& floats, int n) {
    const auto range_of = [&](int input) {
      return range_of_(index_, floats.inputs[static_cast<size_t>(input)], 16, true).value_or(RealRange{});
    };
    return recurrent_form(graph_, subgraph_, floats, *scales8_.input(floats, n, 0), *scales8_.output(floats, n, 0),
                          range_of);
  }

  void make_recurrent(ir::Node& node, int n) {
    const ir::Node floats = node;
    const RecurrentForm form = form_of(floats, n);
    const auto input = [&node](int i) -> int& { return node.inputs[static_cast<size_t>(i)]; };
    node.inputs[0] = obtain(floats.inputs[0], {DType::kInt8, *scales8_.input(floats, n, 0)});
    for (const auto& [i, made] : form.constants) {
      require_finite(made.quantization.scale, value(input(i)));
      input(i) = constant(input(i), made.type, made.quantization, made.narrow);
    }
    for (const auto& [i, state] : form.states) set_form(input(i), {state.type, state.parameters});
    set_form(node.outputs[0], {DType::kInt8, *scales8_.output(floats, n, 0)});
    if (form.hidden) {
      const int hidden = add_value(new_name(names_[static_cast<size_t>(node.outputs[0])], "_hidden"),
                                   {DType::kInt8, *form.hidden}, node.outputs[0]);
      value(hidden).shape = Shape{0};  // it stands for its parameters only
      value(hidden).signature.reset();
      // Of the other four, the gates before layer normalization, nothing is read without one.
      node.intermediates.assign(5, hidden);
    }
    node.version = std::max(node.version, ops::row_of(node)->quantize.versions.int8);
  }

  /// Zeros as integers. No kernel makes int16 of int8 but CAST, which takes numbers as they are.
  void set_state(const ir::Node& floats, const StateSetter& setter, const ir::Node& reader, NodeTreatment mode) {
    const int state = floats.outputs[0];
    const IntegerState made = form_of(reader, setter.reader).states.at(setter.input);
    const size_t zeros = value(floats.inputs[0]).constant ? 0 : 1;
    const Parameters rows = *scales8_.input(floats, setter.node, zeros == 0 ? 1 : 0);
    ir::Node node = floats;
    node.version = std::max(node.version, ops::row_of(node)->quantize.versions.int8);
    node.inputs[1 - zeros] = obtain(floats.inputs[1 - zeros], {DType::kInt8, rows});
    node.inputs[zeros] = constant(floats.inputs[zeros], DType::kInt8, symmetric({1.0F}, 0), false);
    set_form(state, {made.type, made.parameters});
    if (made.type == DType::kInt8) return emit(std::move(node), mode);
    node.outputs[0] =
        add_value(new_name(names_[static_cast<size_t>(state)], "_int8"), {DType::kInt8, {rows.scale, 0}}, state);
    ir::Node cast = ops::make_node(op::kCast, {node.outputs[0]}, {state});
    auto attributes = std::make_shared<ops::CastAttributes>();
    attributes->in_data_type = DType::kInt8;
    attributes->out_data_type = DType::kInt16;
    cast.attributes = std::move(attributes);
    emit(std::move(node), mode);
    emit(std::move(cast), mode);
  }

  /// Whether a value of the float graph was float there.
  bool was_float(int v) { return v != ir::kAbsent && (is_float32(v) || forms(v).front().form != kFloatForm); }

  bool has_constant(const ir::Node& node, int i) {
    return i >= 0 && i < static_cast<int>(node.inputs.size()) && is_float32(node.inputs[static_cast<size_t>(i)]) &&
           value(node.inputs[static_cast<size_t>(i)]).constant;
  }

  std::vector<float> scales_of_weights(const ir::Node& node, int n, const ops::OpDef& op, DType type,
                                       const Rounding& rounding) {
    const ir::Value& weights = value(node.inputs[static_cast<size_t>(op.symmetric_input())]);
    const int axis = channel_axis(options_, op, weights.shape);
    std::vector<float> scales =
        quantize::weight_scales(float_constant(graph_, weights), axis, 8, Arithmetic::kDouble, rounding);
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
  int constant(int v, DType type, Quantization quantization, bool narrow, const Rounding& rounding = {}) {
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
    if (!made.source) made.source = shared_integers(v, type, quantization, narrow, rounding);
    made.quantization = quantization;
    subgraph_.values.push_back(std::move(made));
    const auto added = static_cast<int>(subgraph_.values.size()) - 1;
    all.push_back({type, std::move(quantization), added});
    return added;
  }

  ir::Source shared_integers(int v, DType type, const Quantization& quantization, bool narrow,
                             const Rounding& rounding) {
    const ir::Value& floats = value(v);
    const void* contents = floats.source ? static_cast<const void*>(floats.source.get()) : floats.data.data();
    std::vector<SharedSources::Made>& all = shared_.constants[{contents, type, narrow}];
    for (const SharedSources::Made& made : all) {
      if (made.quantization == quantization && made.source->bytes() * 8 == floats.shape.elements() * dtype_bits(type)) {
        return made.source;
      }
    }
    all.push_back({quantization, quantized_source(float_constant(graph_, floats),
                                                  {type, quantization, narrow, Arithmetic::kDouble, rounding})});
    return all.back().source;
  }

  /// Biases of zeros are the same whatever their scales, so the file holds them once; null for other constants.
  ir::Source zeros(int v, DType type) {
    if (type != DType::kInt32 && type != DType::kInt64) return nullptr;
    const Floats floats(value(v));
    if (std::any_of(floats.values().begin(), floats.values().end(), [](float x) { return x != 0.0F; })) return nullptr;
    const size_t bytes = floats.values().size() * static_cast<size_t>(dtype_bits(type) / 8);
    ir::Source& source = shared_.zeros[bytes];
    if (!source) source = ir::owned_source(std::vector<std::byte>(bytes));
    return source;
  }

  /// Integers are numbered like what they were made of, as in TensorFlow: constants, and, where it computes with int16,
  /// inputs, whose float form comes last.
  void order_values() {
    const size_t count = subgraph_.values.size();
    std::vector<std::pair<size_t, size_t>> order;  // where a value belongs, and its number now
    for (size_t v = 0; v < count; ++v) order.emplace_back(v, v);
    for (size_t v = 0; v < constants_.size(); ++v) {
      for (const QuantizedConstant& made : constants_[v]) order[static_cast<size_t>(made.value)].first = v;
    }
    for (const int input : subgraph_.inputs) {
      for (const Available& made : forms(input)) {
        if (made.value == input || made.form.type != DType::kInt16) continue;
        order[static_cast<size_t>(made.value)].first = static_cast<size_t>(input);
        order[static_cast<size_t>(input)].first = count;
      }
    }
    std::sort(order.begin(), order.end());
    std::vector<int> number(count);
    for (size_t i = 0; i < count; ++i) number[order[i].second] = static_cast<int>(i);
    passes::renumber_values(graph_, index_, number);
  }

  void give_outputs_their_type() {
    std::vector<std::pair<int, int>> replaced;
    const std::set<int> inputs(subgraph_.inputs.begin(), subgraph_.inputs.end());
    std::set<int> named = inputs;  // from outside
    named.insert(subgraph_.outputs.begin(), subgraph_.outputs.end());
    for (int& output : subgraph_.outputs) {
      const int v = output;
      if (!was_float(v) || (value(v).constant && !borders_.caller)) continue;
      const std::optional<Form> wanted = output_form(v);
      if (forms(v).front().value == v && (!wanted || *wanted == forms(v).front().form)) continue;
      const DType inner = forms(v).front().form.type;
      output = obtain(v, wanted.value_or(forms(v).front().form));
      if (!inputs.contains(v) && !named.contains(output) && value(output).name != names_[static_cast<size_t>(v)]) {
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
      if (signature.subgraph != index_) continue;
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
    if (borders_.caller) return crossing_form(Place{index_, v}, *borders_.caller).value_or(kFloatForm);
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
  int index_;
  ir::Subgraph& subgraph_;
  const std::vector<NodeTreatment>& treatments_;
  const RangeOf& range_of_;
  const IntegerOptions& options_;
  SharedSources& shared_;
  Borders borders_;
  Scales scales8_;
  Scales scales16_;
  std::vector<std::vector<Available>> forms_;              // by value of the float graph, the one it is made in first
  std::vector<std::vector<QuantizedConstant>> constants_;  // by value of the float graph
  std::vector<std::string> names_;                         // of the float graph
  std::set<std::string> taken_;
  std::map<int, StateSetter> setters_;   // by node
  std::map<std::string, int> numbered_;  // the last number that a taken name was given
  std::vector<NodeTreatment> new_treatments_;
};

}  // namespace

int channel_axis(const IntegerOptions& options, const ops::OpDef& op, const Shape& weights) {
  const bool dense = op.contraction.kind == ops::ContractionKind::kDense;
  const bool per_channel = options.per_channel && (options.per_channel_dense || !dense);
  return per_channel && op.symmetric_axis() < weights.rank() ? op.symmetric_axis() : -1;
}

Treatments quantize_integers(ir::Graph& graph, const Treatments& treatments, const RangeOf& range_of,
                             const IntegerOptions& options) {
  Treatments result = treatments;
  SharedSources shared;
  const std::vector<bool> entries = entry_subgraphs(graph);
  const Crossings crossings(graph);
  const RangeOf joined = crossings.joined(range_of);
  for (size_t s = 0; s < entries.size(); ++s) {
    const auto number = static_cast<int>(s);
    Borders borders{crossings, {}};
    if (const auto& caller = crossings.caller(number)) {
      borders.caller = treatments[static_cast<size_t>(caller->subgraph)][static_cast<size_t>(caller->node)].mode;
    } else if (!entries[s]) {
      continue;
    }
    result[s] = Rewrite(graph, number, treatments[s], joined, options, shared, borders).run();
  }
  return result;
}

}  // namespace leadline::quantize
