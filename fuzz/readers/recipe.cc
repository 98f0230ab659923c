// SPDX-License-Identifier: Apache-2.0
// Recipes, and the patterns in them, searched in the names of a model.
#include "leadline/recipe.h"

#include "leadline/quantizer.h"
#include "readers/models.h"
#include "readers/readers.h"

namespace leadline::fuzz {
namespace {

void run(Bytes bytes) {
  static const Model model = float_model();
  QuantizeOptions options;
  options.mode = QuantizationMode::kDynamicRange;
  options.min_weight_elements = 1;
  apply(parse_recipe(as_string(bytes)), options);
  const Quantizer quantizer(model, options);
  for (const QuantizedNode& node : quantizer.nodes()) use(node.reason);
  use(std::to_string(quantizer.plan().result_bytes));
}

std::vector<std::string> seeds() {
  return {
      R"([{"op": "CONV_2D", "name": "block1/.*", "mode": "float"}])",
      R"({"rules": [{"op": ["CONV_2D", "MUL"], "node": [0, 1], "mode": "dynamic"}, {"mode": "float16"}]})",
      R"([{"name": "^model/(block[0-9]+|head)/co?nv{1,2}$", "mode": "weight_only_int8"}])",
      R"([{"name": "([a-z]+/)*relu;|\\d\\w\\s[^;]+?", "mode": "weight_only_int4"}])",
      R"([{"regex": ".*", "operation": "*", "algorithm_key": "min_max_uniform_quantize", "op_config": {
          "weight_tensor_config": {"num_bits": 8, "symmetric": true, "granularity": "CHANNELWISE", "dtype": "INT"},
          "compute_precision": "INTEGER", "explicit_dequantize": false, "skip_checks": false, "min_weight_elements": 0}}])",
      R"([{"regex": "d", "operation": "CONV_2D", "algorithm_key": "no_quantize"}])",
  };
}

std::vector<std::string> words() {
  return {"\"op\": ", "\"name\": ", "\"node\": ", "\"mode\": ", "\"float\"", "\"int8\"", "\"regex\": ", "{1000}",
          "{0,}",     "(a*)*",      "[^a]",       "[a-z]",      "(?:",       "\\\\b",    "\\\\d",       ".*.*",
          "((((",     "))))",       "|||",        "[[[[",       "\\u0000",   "-1",       "1e400",       "[:alpha:]"};
}

}  // namespace

Reader recipe_reader() {
  return {.name = "recipe", .run = run, .seeds = seeds, .words = words, .mutate = mutate_json, .most_bytes = 4096};
}

}  // namespace leadline::fuzz
