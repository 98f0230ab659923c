// SPDX-License-Identifier: Apache-2.0
// Parts of models that are formats of their own: options of custom ops and of Flex ops, and tensors of strings.
#include "core/string_tensor.h"
#include "io/flexbuffer_map.h"
#include "io/flexbuffer_map_builder.h"
#include "ir/graph.h"
#include "leadline/interpreter.h"
#include "ops/flex/node_def.h"
#include "ops/flex/node_def_writer.h"
#include "readers/models.h"
#include "readers/readers.h"

namespace leadline::fuzz {
namespace {

void run_flexbuffer(Bytes bytes) {
  const auto map = FlexMap::parse(bytes);
  if (!map) return;
  for (const char* name : {"a", "list", "text", "scale", "on"}) {
    use(std::to_string(map->get_int(name, 1) + static_cast<int>(map->get_bool(name, false))));
    use(std::to_string(map->get_float(name, 1.0F)));
    if (const auto list = map->get_ints(name)) use(std::to_string(list->size()));
    if (const auto text = map->get_text(name)) use(*text);
  }
}

std::vector<std::string> maps() {
  return {as_string(build_flex_map({{"a", 7}, {"list", std::vector<int32_t>{1, 2, 3}}, {"on", true}})),
          as_string(build_flex_map({{"scale", 0.5F}, {"text", std::string("word")}})),
          // As the library writes the smallest: one byte wide.
          std::string("a\0\1\3\1\1\1\4\4\1\4\x24\1", 13)};
}

void run_node_def(Bytes bytes) {
  const ops::NodeDefAttributes attributes = ops::read_node_def(bytes);
  use(attributes.problem);
  use(ir::attributes_text(attributes));
}

std::vector<std::string> node_defs() {
  const auto roll = ops::NodeDefWriter("Roll").type("T", 1).type("Tshift", 3);
  const auto patches = ops::NodeDefWriter("ExtractImagePatches")
                           .integers("ksizes", {1, 3, 3, 1})
                           .text("padding", "SAME")
                           .number("scale", 0.5F)
                           .shape("shape", {-1, 4})
                           .flag("on", true);
  return {as_string(roll.options()), as_string(patches.options())};
}

void run_strings(Bytes bytes) {
  for (const int64_t count : {0, 1, 2, 3}) {
    if (!string_tensor_problem(bytes, count).empty()) continue;
    const StringTensorReader reader(bytes);
    for (int64_t i = 0; i < reader.size(); ++i) use(reader[i]);
  }
  static const Model model = input_model();
  static Interpreter interpreter(model);
  interpreter.set_tensor(interpreter.inputs()[2], bytes);
  interpreter.invoke();
  use(as_text({interpreter.tensor(interpreter.outputs()[2]).data,
               static_cast<size_t>(interpreter.tensor(interpreter.outputs()[2]).bytes)}));
}

std::vector<std::string> tensors() {
  std::vector<std::string> result;
  for (const std::vector<std::string>& strings :
       {std::vector<std::string>{}, {"one"}, {"one", ""}, {"a", "b", "longer than the others"}}) {
    size_t characters = 0;
    for (const std::string& text : strings) characters += text.size();
    const auto count = static_cast<int64_t>(strings.size());
    std::vector<std::byte> bytes(
        static_cast<size_t>(string_tensor_bytes(count, static_cast<int64_t>(characters)).value()));
    StringTensorWriter writer(bytes, count);
    for (const std::string& text : strings) writer.add(text);
    result.push_back(as_string(bytes));
  }
  return result;
}

}  // namespace

Reader flexbuffer_reader() { return {.name = "flexbuffer", .run = run_flexbuffer, .seeds = maps, .most_bytes = 1024}; }
Reader node_def_reader() { return {.name = "node_def", .run = run_node_def, .seeds = node_defs, .most_bytes = 2048}; }
Reader string_tensor_reader() {
  return {.name = "string_tensor", .run = run_strings, .seeds = tensors, .most_bytes = 512};
}

}  // namespace leadline::fuzz
