// SPDX-License-Identifier: Apache-2.0
#include "quantize/recipe.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/join.h"
#include "io/json.h"
#include "ops/registry.h"
#include "quantize/near_miss.h"

namespace leadline::quantize {
namespace {

constexpr size_t kLargestRecipe = size_t{16} << 20;
constexpr size_t kMostRules = 100'000;
constexpr size_t kMostSteps = 200'000;  // of all patterns together: what a search takes, and their memory
constexpr size_t kDeepestJson = 20;     // rules of ai-edge-quantizer have 4 levels
constexpr int kBlockStep = 32;          // LiteRT's kernels for blocks take multiples of it

/// One rule of a document, with words for messages.
class Entry {
 public:
  Entry(const Json& json, size_t number) : json_(json), number_(number) {
    if (!json.is_object()) bad("is not an object");
  }

  [[noreturn]] void bad(std::string_view what) const {
    fail(ErrorCode::kInvalidArgument, "recipe: rule {} {}", number_, what);
  }
  [[noreturn]] void bad_key(std::string_view key, const Json& got, std::string_view expected) const {
    const std::string shown = got.dump();
    fail(ErrorCode::kInvalidArgument, "recipe: rule {}: '{}' is {}, expected {}", number_, key, shown.substr(0, 80),
         expected);
  }
  /// The value of a key, or null where it is missing or null.
  static const Json* find(const Json& object, const char* key) {
    const Json* found = object.find(key);
    return found == nullptr || found->is_null() ? nullptr : found;
  }
  const Json* find(const char* key) const { return find(json_, key); }
  void allow_only(const Json& object, const std::string& where, std::initializer_list<std::string_view> keys) const {
    for (const auto& [key, value] : object.members()) {
      if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
      bad(fmt::format("has the unknown key '{}{}'; expected one of: {}", where, key.substr(0, 80),
                      join(std::span(keys.begin(), keys.size()), ", ")));
    }
  }
  const Json& json() const { return json_; }
  size_t number() const { return number_; }
  QuantizationMode mode() const {
    return parse_quantization_mode(text(json_, "", "mode", ""), fmt::format("recipe: rule {}: 'mode'", number_));
  }

  std::string text(const Json& object, const std::string& where, const char* key, const std::string& absent) const {
    const Json* value = find(object, key);
    if (value == nullptr) return absent;
    if (!value->is_text()) bad_key(where + key, *value, "a string");
    return value->text();
  }
  int integer(const Json& object, const std::string& where, const char* key, int absent) const {
    const Json* value = find(object, key);
    if (value == nullptr) return absent;
    if (!value->is_integer() || value->number() < 0 || value->number() > 1e9) {
      bad_key(where + key, *value, "a number from 0 on");
    }
    return static_cast<int>(value->integer());
  }
  bool flag(const Json& object, const std::string& where, const char* key, bool absent) const {
    const Json* value = find(object, key);
    if (value == nullptr) return absent;
    if (!value->is_boolean()) bad_key(where + key, *value, "true or false");
    return value->boolean();
  }

 private:
  const Json& json_;
  size_t number_;
};

/// The value of a key that may be a list, as a list; one of `absent` when there is none.
std::vector<Json> one_or_many(const Entry& entry, const char* key, const Json& absent) {
  const Json* value = entry.find(key);
  if (value == nullptr) return {absent};
  if (!value->is_array()) return {*value};
  if (value->empty()) entry.bad_key(key, *value, "at least one");
  return value->items();
}

/// Weights of 4 bits or less, for kernels that multiply integers.
bool has_few_bits(QuantizationMode mode) {
  return mode == QuantizationMode::kDynamicInt4 || mode == QuantizationMode::kDynamicInt2;
}

/// That what a rule says of weights goes with its mode.
void check_weights(const RecipeRule& rule, size_t number) {
  const char* mode = quantization_mode_name(rule.mode);
  const bool multiplied = has_few_bits(rule.mode) || rule.mode == QuantizationMode::kDynamicRange;
  const bool widened = rule.mode == QuantizationMode::kWeightOnlyInt8 || rule.mode == QuantizationMode::kWeightOnlyInt4;
  require(rule.block_size == 0 || (multiplied && rule.block_size > 0 && rule.block_size % kBlockStep == 0),
          ErrorCode::kInvalidArgument,
          "recipe: rule {}: 'block_size' is {} with mode {}, expected a multiple of {} with mode dynamic_int4", number,
          rule.block_size, mode, kBlockStep);
  require(
      rule.symmetric || widened, ErrorCode::kInvalidArgument,
      "recipe: rule {}: weights with zero points ('symmetric' is false) with mode {}, expected mode weight_only_int8 "
      "or weight_only_int4: kernels that multiply integers take symmetric weights only",
      number, mode);
  require(rule.rotation == WeightRotation::kNone || (multiplied && rule.block_size == 0), ErrorCode::kInvalidArgument,
          "recipe: rule {}: 'rotation' is {} with mode {} and 'block_size' {}, expected mode dynamic or dynamic_int4 "
          "without blocks",
          number, weight_rotation_name(rule.rotation), mode, rule.block_size);
  require(rule.min_weight_elements.value_or(0) >= 0, ErrorCode::kInvalidArgument,
          "recipe: rule {}: 'min_weight_elements' is {}, expected 0 or more", number,
          rule.min_weight_elements.value_or(0));
}

void add_plain(const Entry& entry, std::vector<RecipeRule>& rules) {
  const Json& json = entry.json();
  entry.allow_only(json, "",
                   {"op", "name", "node", "mode", "optional", "block_size", "symmetric", "min_weight_elements",
                    "rounding", "rotation", "comment"});
  RecipeRule rule;
  rule.optional = entry.flag(json, "", "optional", false);
  rule.mode = entry.mode();
  rule.block_size = entry.integer(json, "", "block_size", 0);
  rule.symmetric = entry.flag(json, "", "symmetric", true);
  if (entry.find("min_weight_elements") != nullptr) {
    rule.min_weight_elements = entry.integer(json, "", "min_weight_elements", 0);
  }
  const std::string where = fmt::format("recipe: rule {}: ", entry.number());
  if (const std::string name = entry.text(json, "", "rounding", ""); !name.empty()) {
    rule.rounding = parse_weight_rounding(name, where + "'rounding'");
  }
  if (const std::string name = entry.text(json, "", "rotation", ""); !name.empty()) {
    rule.rotation = parse_weight_rotation(name, where + "'rotation'");
  }
  check_weights(rule, entry.number());
  for (const Json& op : one_or_many(entry, "op", "")) {
    if (!op.is_text()) entry.bad_key("op", op, "the name of an op");
    for (const Json& name : one_or_many(entry, "name", "")) {
      if (!name.is_text()) entry.bad_key("name", name, "a regular expression");
      for (const Json& node : one_or_many(entry, "node", -1)) {
        if (!node.is_integer() || node.number() < -1 || node.number() > 1e9) {
          entry.bad_key("node", node, "the number of a node");
        }
        require(rules.size() < kMostRules, ErrorCode::kInvalidArgument, "recipe: more than {} rules", kMostRules);
        rule.op = op.text();
        rule.name = name.text();
        rule.node = static_cast<int>(node.integer());
        rules.push_back(rule);
      }
    }
  }
}

/// What "op_config" of ai-edge-quantizer asks for.
class OpConfig {
 public:
  OpConfig(const Entry& entry, const Json& config) : entry_(entry), config_(config) {
    if (!config.is_object()) entry.bad_key("op_config", config, "an object");
    entry.allow_only(config, "op_config.",
                     {"activation_tensor_config", "weight_tensor_config", "compute_precision", "explicit_dequantize",
                      "skip_checks", "min_weight_elements", "execution_mode"});
  }

  /// Sets the mode of a rule, and how its weights are quantized.
  void apply(RecipeRule& rule) const {
    const Json& weights = tensor("weight_tensor_config");
    rule.min_weight_elements = entry_.integer(config_, "op_config.", "min_weight_elements", 0);
    rule.symmetric = entry_.flag(weights, "op_config.weight_tensor_config.", "symmetric", true);
    rule.block_size = block_size(weights);
    rule.mode = mode(weights);
  }

 private:
  QuantizationMode mode(const Json& weights) const {
    const int weight_bits = bits(weights, "op_config.weight_tensor_config.", 8);
    const Json& activations = tensor("activation_tensor_config");
    if (entry_.text(weights, "op_config.weight_tensor_config.", "dtype", "INT") == "FLOAT") {
      if (weight_bits != 16) unsupported("float weights of other than 16 bits");
      return QuantizationMode::kFloat16;
    }
    if (!activations.empty()) return with_activations(activations, weight_bits);
    const std::string mode = entry_.text(config_, "op_config.", "execution_mode", "");
    const std::string precision =
        entry_.text(config_, "op_config.", "compute_precision", mode == "DRQ" ? "INTEGER" : "");
    const bool widened = entry_.flag(config_, "op_config.", "explicit_dequantize", precision != "INTEGER");
    const bool multiplied = precision == "INTEGER" && !widened;
    if (weight_bits == 2 && multiplied) return QuantizationMode::kDynamicInt2;
    if (weight_bits != 8 && weight_bits != 4) unsupported(fmt::format("weights of {} bits", weight_bits));
    if (multiplied) {
      return weight_bits == 8 ? QuantizationMode::kDynamicRange : QuantizationMode::kDynamicInt4;
    }
    return weight_bits == 8 ? QuantizationMode::kWeightOnlyInt8 : QuantizationMode::kWeightOnlyInt4;
  }

  [[noreturn]] void unsupported(std::string_view what) const {
    entry_.bad(fmt::format("asks for {}, which Leadline does not make", what));
  }

  const Json& tensor(const char* key) const {
    static const Json kNone = Json::object();
    const Json* found = Entry::find(config_, key);
    if (found == nullptr) return kNone;
    const std::string where = fmt::format("op_config.{}", key);
    if (!found->is_object()) entry_.bad_key(where, *found, "an object");
    entry_.allow_only(*found, where + ".",
                      {"num_bits", "symmetric", "granularity", "dtype", "channel_wise", "block_size", "algorithm_key",
                       "algorithm_params"});
    return *found;
  }

  int bits(const Json& tensor, const std::string& where, int absent) const {
    return entry_.integer(tensor, where, "num_bits", absent);
  }

  int block_size(const Json& weights) const {
    const std::string where = "op_config.weight_tensor_config.";
    const std::string granularity = entry_.text(weights, where, "granularity", "CHANNELWISE");
    if (granularity == "CHANNELWISE") return 0;
    for (const int size : {32, 64, 128, 256}) {
      if (granularity == fmt::format("BLOCKWISE_{}", size)) return size;
    }
    if (granularity == "TENSORWISE") {
      unsupported("one scale for all channels of some nodes only (quantize the whole model with per_channel off)");
    }
    entry_.bad_key(where + "granularity", granularity, "CHANNELWISE or BLOCKWISE_32, _64, _128 or _256");
  }

  QuantizationMode with_activations(const Json& activations, int weight_bits) const {
    const std::string where = "op_config.activation_tensor_config.";
    if (weight_bits != 8) unsupported(fmt::format("integer activations with weights of {} bits", weight_bits));
    if (entry_.text(activations, where, "dtype", "INT") != "INT") unsupported("float activations of other types");
    switch (bits(activations, where, 8)) {
      case 8:
        return QuantizationMode::kInt8;
      case 16:
        if (!entry_.flag(activations, where, "symmetric", true)) unsupported("int16 activations with a zero point");
        return QuantizationMode::kInt16x8;
      default:
        entry_.bad_key(where + "num_bits", activations.at("num_bits"), "8 or 16");
    }
  }

  const Entry& entry_;
  const Json& config_;
};

/// What "algorithm_key" of ai-edge-quantizer says of weights, beside its op_config.
void apply_algorithm(const Entry& entry, const std::string& algorithm, RecipeRule& rule) {
  if (algorithm == "min_max_uniform_quantize") {
    rule.rounding = WeightRounding::kNearest;
  } else if (algorithm == "MSE" || algorithm == "OCTAV") {
    rule.rounding = WeightRounding::kMse;
  } else if (algorithm == "GPTQ") {
    rule.rounding = WeightRounding::kComq;
  } else if (algorithm == "HADAMARD_ROTATION" || algorithm == "DECOMPOSED_HADAMARD_ROTATION") {
    rule.rounding = WeightRounding::kMse;
    rule.rotation = algorithm == "HADAMARD_ROTATION" ? WeightRotation::kHadamard : WeightRotation::kDecomposedHadamard;
  } else {
    entry.bad(
        fmt::format("has the algorithm_key '{}', expected min_max_uniform_quantize, MSE, OCTAV, GPTQ, "
                    "HADAMARD_ROTATION, DECOMPOSED_HADAMARD_ROTATION, float_casting or no_quantize",
                    algorithm.substr(0, 80)));
  }
}

void add_foreign(const Entry& entry, std::vector<RecipeRule>& rules) {
  entry.allow_only(entry.json(), "", {"regex", "operation", "algorithm_key", "op_config"});
  RecipeRule rule;
  rule.optional = true;  // such recipes list ops that a model may not have
  rule.name = entry.text(entry.json(), "", "regex", "");
  rule.op = entry.text(entry.json(), "", "operation", "*");
  // Nodes that ai-edge-quantizer makes up for the model's own inputs and outputs: options say their types here.
  if (rule.op == "INPUT" || rule.op == "OUTPUT" || rule.op == "CUSTOM_OP") return;
  const std::string algorithm = entry.text(entry.json(), "", "algorithm_key", "min_max_uniform_quantize");
  const Json* config = entry.find("op_config");
  const Json none = Json::object();
  if (algorithm == "no_quantize") {
    rule.mode = QuantizationMode::kFloat;
  } else if (algorithm == "float_casting") {
    rule.mode = QuantizationMode::kFloat16;
  } else {
    OpConfig(entry, config == nullptr ? none : *config).apply(rule);
    apply_algorithm(entry, algorithm, rule);
    check_weights(rule, entry.number());
  }
  // There a rule for all ops replaces those before it that have its pattern, whatever their ops.
  if (rule.op == "*") {
    std::erase_if(rules, [&](const RecipeRule& before) { return !before.op.empty() && before.name == rule.name; });
  }
  const bool dense_alone = algorithm == "GPTQ" || rule.rotation != WeightRotation::kNone;  // of what is supported here
  if (rule.op == "*" && dense_alone) rule.op = op::kFullyConnected.name();
  // And it is one for those that are supported: with 4 bits not for these, whose channels have few weights.
  const bool few_bits = rule.mode == QuantizationMode::kWeightOnlyInt4 || has_few_bits(rule.mode);
  const bool spares_depthwise = few_bits && rule.op == "*";
  rules.push_back(rule);
  if (!spares_depthwise) return;
  rule.op = op::kDepthwiseConv2D.name();
  rule.mode = QuantizationMode::kFloat;
  rule.block_size = 0;
  rule.symmetric = true;
  rule.rotation = WeightRotation::kNone;
  rules.push_back(std::move(rule));
}

/// What stands beside the rules.
RecipeSettings read_settings(const Json& document) {
  RecipeSettings settings;
  for (const auto& [key, value] : document.members()) {
    if (key == "rules" || key == "comment") continue;
    const auto bad = [&, &name = key, &got = value](std::string_view expected) {
      fail(ErrorCode::kInvalidArgument, "recipe: '{}' is {}, expected {}", name, got.dump().substr(0, 80), expected);
    };
    if (key == "mode" || key == "method" || key == "rounding") {
      if (!value.is_text()) bad("a name");
      if (key == "rounding") settings.rounding = parse_weight_rounding(value.text(), "recipe: 'rounding'");
      if (key == "mode") settings.mode = parse_quantization_mode(value.text(), "recipe: 'mode'");
      if (key == "method") settings.method = parse_calibration_method(value.text(), "recipe: 'method'");
    } else if (key == "percentile") {
      if (!value.is_number()) bad("a number");
      settings.percentile = value.number();
    } else if (key == "per_channel" || key == "equalize" || key == "bias_correction") {
      if (!value.is_boolean()) bad("true or false");
      (key == "per_channel" ? settings.per_channel
       : key == "equalize"  ? settings.equalize
                            : settings.bias_correction) = value.boolean();
    } else {
      fail(ErrorCode::kInvalidArgument,
           "recipe: unknown key '{}' beside 'rules'; expected one of: mode, method, percentile, per_channel, equalize, "
           "bias_correction, rounding, comment",
           key.substr(0, 80));
    }
  }
  return settings;
}

Json parse(std::string_view text) {
  require(text.size() <= kLargestRecipe, ErrorCode::kInvalidArgument, "recipe: {} bytes, more than {}", text.size(),
          kLargestRecipe);
  try {
    return parse_json(text, kDeepestJson);
  } catch (const JsonError& error) {
    fail(ErrorCode::kInvalidArgument, "recipe: not JSON: {}", error.what());
  }
}

}  // namespace

RecipeDocument read_recipe(std::string_view json) {
  const Json document = parse(json);
  const Json* found = document.find("rules");
  const Json& list = found == nullptr ? document : *found;
  require(list.is_array(), ErrorCode::kInvalidArgument,
          "recipe: expected a list of rules, or an object with the key 'rules'");
  RecipeDocument result;
  if (found != nullptr) result.settings = read_settings(document);
  std::vector<RecipeRule>& rules = result.rules;
  bool foreign = false;
  for (size_t i = 0; i < list.size(); ++i) {
    const Entry entry(list.at(i), i);
    if (entry.find("regex") == nullptr && entry.find("operation") == nullptr) {
      add_plain(entry, rules);
      continue;
    }
    if (!std::exchange(foreign, true)) rules.insert(rules.begin(), RecipeRule{});  // what no rule names stays float
    add_foreign(entry, rules);
  }
  return result;
}

Recipe::Recipe(const std::vector<RecipeRule>& rules) {
  std::map<std::string_view, std::shared_ptr<const Pattern>> known;
  size_t steps = 0;
  for (size_t i = 0; i < rules.size(); ++i) {
    Compiled compiled{rules[i], std::nullopt, nullptr};
    const std::string& op = rules[i].op;
    if (!op.empty() && op != "*") {
      const ops::OpDef* row = ops::registry().find_named(op);
      require(row != nullptr, ErrorCode::kInvalidArgument, "recipe: rule {}: unknown op '{}'", i, op.substr(0, 80));
      compiled.op = row->id;
    }
    require(rules[i].node >= -1, ErrorCode::kInvalidArgument, "recipe: rule {}: there is no node {}", i, rules[i].node);
    check_weights(rules[i], i);
    try {
      if (!rules[i].name.empty()) {
        std::shared_ptr<const Pattern>& pattern = known[rules[i].name];
        if (pattern == nullptr) {
          pattern = std::make_shared<const Pattern>(rules[i].name);
          steps += pattern->steps();
          require(steps <= kMostSteps, ErrorCode::kInvalidArgument,
                  "the patterns up to this one take more than {} steps when repetitions are written out", kMostSteps);
        }
        compiled.name = pattern;
      }
    } catch (const Error& error) {
      fail(error.code(), "recipe: rule {}: {}", i, error.what());
    }
    rules_.push_back(std::move(compiled));
  }
}

bool Recipe::Compiled::matches(const ir::Graph& graph, int subgraph, int node) const {
  const ir::Subgraph& inside = graph.subgraphs[static_cast<size_t>(subgraph)];
  const ir::Node& asked = inside.nodes[static_cast<size_t>(node)];
  if (op && asked.op != *op) return false;
  if (rule.node >= 0 && (subgraph != 0 || rule.node != node)) return false;
  return name == nullptr || std::any_of(asked.outputs.begin(), asked.outputs.end(),
                                        [&](int v) { return v != ir::kAbsent && name->search(inside.value(v).name); });
}

const RecipeRule* Recipe::rule(const ir::Graph& graph, int subgraph, int node) const {
  const auto found = std::find_if(rules_.rbegin(), rules_.rend(),
                                  [&](const Compiled& rule) { return rule.matches(graph, subgraph, node); });
  return found == rules_.rend() ? nullptr : &found->rule;
}

std::vector<RecipeRule> Recipe::unmatched(const ir::Graph& graph) const {
  const auto matches_any = [&](const Compiled& rule) {
    for (size_t s = 0; s < graph.subgraphs.size(); ++s) {
      for (size_t n = 0; n < graph.subgraphs[s].nodes.size(); ++n) {
        if (rule.matches(graph, static_cast<int>(s), static_cast<int>(n))) return true;
      }
    }
    return false;
  };
  std::vector<RecipeRule> result;
  for (const Compiled& rule : rules_) {
    if (!matches_any(rule)) result.push_back(rule.rule);
  }
  return result;
}

namespace {

/// What a rule that matches nothing may have meant: names that are alike, or what the model has.
std::string hint_for(const RecipeRule& rule, const ir::Graph& graph) {
  std::vector<std::string_view> names;
  std::vector<std::string_view> ops;
  for (const ir::Subgraph& subgraph : graph.subgraphs) {
    for (const ir::Node& node : subgraph.nodes) {
      if (std::find(ops.begin(), ops.end(), node.op.name()) == ops.end()) ops.push_back(node.op.name());
      for (const int v : node.outputs) {
        if (v != ir::kAbsent) names.push_back(subgraph.value(v).name);
      }
    }
  }
  constexpr size_t kShown = 3;
  if (!rule.name.empty()) {
    const std::vector<std::string> near = near_misses(literal_text(rule.name), names, kShown);
    if (!near.empty()) return fmt::format("names that are alike: '{}'", join(near, "', '"));
  }
  if (rule.node >= 0) return fmt::format("the model has nodes 0 to {}", graph.subgraphs[0].nodes.size() - 1);
  if (!rule.op.empty() && rule.op != "*" && rule.name.empty()) {
    return fmt::format("the model has {}", join(ops, ", "));
  }
  return fmt::format("patterns are searched in the names of nodes' outputs, such as '{}'",
                     names.empty() ? std::string_view() : names.front());
}

}  // namespace

void Recipe::require_matches(const ir::Graph& graph) const {
  for (const RecipeRule& rule : unmatched(graph)) {
    if (rule.optional) continue;
    fail(ErrorCode::kInvalidArgument, "recipe: no node matches the rule {}; {}", describe(rule), hint_for(rule, graph));
  }
}

}  // namespace leadline::quantize
