// SPDX-License-Identifier: Apache-2.0
// Inputs are "node" or "node:1" in the main graph and "argument" or "node:output_name:1" in functions; the latter need
// the op's definition to become numbers.
#include "import/saved_model/program.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>

#include "core/error.h"
#include "import/saved_model/op_outputs.h"

namespace leadline::saved_model {
namespace {

constexpr int64_t kMaxOutputs = 1 << 20;

/// The outputs of an op that the file does not define. One without a name answers to any.
std::vector<ArgDef> known_outputs(std::string_view op) {
  std::vector<ArgDef> outputs;
  const auto at = std::lower_bound(std::begin(kOpOutputs), std::end(kOpOutputs), op,
                                   [](const OpOutputs& entry, std::string_view name) { return entry.op < name; });
  if (at == std::end(kOpOutputs) || at->op != op) return {ArgDef{}};
  for (std::string_view rest = at->outputs; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    const auto star = word.find('*');
    ArgDef& arg = outputs.emplace_back();
    arg.name = word.substr(0, star);
    if (star != std::string_view::npos) arg.number_attr = word.substr(star + 1);
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  }
  return outputs;
}

bool parse_number(std::string_view text, int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 && value < kMaxOutputs;
}

}  // namespace

Program::Program(const MetaGraph& meta, WireFile& file) : meta_(meta), file_(file) {
  main_.nodes = &meta.nodes;
  index_nodes(main_, file);
  for (const OpSignature& op : meta.ops) ops_.emplace(op.name, &op);
  for (const FunctionDef& function : meta.functions) {
    require(functions_.emplace(function.signature.name, &function).second, ErrorCode::kInvalidModel,
            "{}: function '{}' is defined twice", file.name(), printable(function.signature.name));
    ops_.emplace(function.signature.name, &function.signature);
  }
}

void Program::index_nodes(Body& body, const WireFile& file) {
  const auto& nodes = *body.nodes;
  require(nodes.size() < std::numeric_limits<int>::max(), ErrorCode::kInvalidModel, "{}: too many nodes", file.name());
  for (size_t i = 0; i < nodes.size(); ++i) {
    require(body.node_index.emplace(nodes[i].name, static_cast<int>(i)).second, ErrorCode::kInvalidModel,
            "{}: node '{}' is defined twice", file.name(), printable(nodes[i].name));
  }
}

const Body& Program::function(std::string_view name) {
  const auto known = bodies_.find(name);
  if (known != bodies_.end()) return *known->second;
  const auto at = functions_.find(name);
  require(at != functions_.end(), ErrorCode::kInvalidModel, "{}: there is no function '{}'", file_.name(),
          printable(name));
  auto body = std::make_unique<Body>();
  body->function = at->second;
  body->nodes = &at->second->nodes;
  file_.charge(sizeof(Body) + body->nodes->size() * 48);
  index_nodes(*body, file_);
  const OpSignature& signature = at->second->signature;
  for (const ArgDef& arg : signature.inputs) {
    require(arg.number_attr.empty() && arg.type_list_attr.empty(), ErrorCode::kUnsupported,
            "{}: function '{}' takes lists of tensors", file_.name(), printable(name));
    body->argument_index.emplace(arg.name, static_cast<int>(body->argument_index.size()));
  }
  require(body->argument_index.size() == signature.inputs.size(), ErrorCode::kInvalidModel,
          "{}: function '{}' has two arguments of one name", file_.name(), printable(name));
  std::unordered_map<std::string_view, std::string_view> returns;
  for (const auto& [output, source] : at->second->returns) returns[output] = source;
  for (const ArgDef& arg : signature.outputs) {
    const auto source = returns.find(arg.name);
    require(source != returns.end(), ErrorCode::kInvalidModel, "{}: function '{}' does not say what its output '{}' is",
            file_.name(), printable(name), printable(arg.name));
    body->returns.push_back(source->second);
  }
  return *bodies_.emplace(at->second->signature.name, std::move(body)).first->second;
}

Operand Program::operand(const Body& body, std::string_view input, std::string_view user) const {
  const auto bad = [&](const char* problem) {
    fail(ErrorCode::kInvalidModel, "{}: '{}' uses '{}', {}", file_.name(), printable(user), printable(input), problem);
  };
  const bool control = input.starts_with('^');
  std::string_view name = control ? input.substr(1) : input;
  const auto colon = name.find(':');
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : name.substr(colon + 1);
  if (colon != std::string_view::npos) name = name.substr(0, colon);
  if (const auto argument = body.argument_index.find(name); argument != body.argument_index.end()) {
    if (!rest.empty() && rest != "0") bad("but an argument has one output");
    return {Operand::kArgument, argument->second, control};
  }
  const auto at = body.node_index.find(name);
  if (at == body.node_index.end()) bad("which does not exist");
  Operand operand{at->second, 0, control};
  if (rest.empty() || control) return operand;
  const NodeDef& node = (*body.nodes)[static_cast<size_t>(operand.node)];
  const auto second = rest.find(':');
  int64_t index = 0;
  if (second == std::string_view::npos) {
    if (!parse_number(rest, index)) {
      if (body.function == nullptr) bad("but outputs have numbers");
      index = output_number(node, rest, 0, user);
    }
  } else {
    if (!parse_number(rest.substr(second + 1), index)) bad("but outputs have numbers");
    index = output_number(node, rest.substr(0, second), index, user);
  }
  const int count = output_count(node);
  if (index >= count) bad("an output that the op does not have");
  operand.output = static_cast<int>(index);
  return operand;
}

std::vector<Operand> Program::data_operands(const Body& body, const NodeDef& node) const {
  std::vector<Operand> operands;
  operands.reserve(node.inputs.size());
  for (const std::string_view input : node.inputs)
    if (!input.starts_with('^')) operands.push_back(operand(body, input, node.name));
  return operands;
}

const OpSignature* Program::op_def(std::string_view op) const {
  const auto at = ops_.find(op);
  return at == ops_.end() ? nullptr : at->second;
}

const std::vector<ArgDef>& Program::output_args(std::string_view op) const {
  if (const OpSignature* const defined = op_def(op)) return defined->outputs;
  const auto [at, is_new] = undefined_.try_emplace(op);
  if (is_new) at->second = known_outputs(op);
  return at->second;
}

const AttrValue* Program::attr(const NodeDef& node, std::string_view name) const {
  if (const AttrValue* own = find_attr(node.attrs, name)) return own;
  const OpSignature* const op = op_def(node.op);
  return op == nullptr ? nullptr : find_attr(op->defaults, name);
}

int64_t Program::arg_size(const NodeDef& node, const ArgDef& arg) const {
  const std::string_view name = arg.type_list_attr.empty() ? arg.number_attr : arg.type_list_attr;
  if (name.empty()) return 1;
  const AttrValue* const value = attr(node, name);
  if (value == nullptr) fail_node(node, ErrorCode::kInvalidModel, fmt::format("it lacks '{}'", printable(name)));
  if (value->kind == AttrValue::Kind::kList) return static_cast<int64_t>(value->parts->ints.size());
  if (value->kind != AttrValue::Kind::kInt || value->i < 0 || value->i > kMaxOutputs)
    fail_node(node, ErrorCode::kInvalidModel, fmt::format("'{}' is not a number of outputs", printable(name)));
  return value->i;
}

int Program::output_count(const NodeDef& node) const {
  int64_t count = 0;
  for (const ArgDef& arg : output_args(node.op)) count += arg_size(node, arg);
  if (count > kMaxOutputs) fail_node(node, ErrorCode::kInvalidModel, "it has too many outputs");
  return static_cast<int>(count);
}

int Program::output_number(const NodeDef& node, std::string_view arg, int64_t index, std::string_view user) const {
  int64_t first = 0;
  for (const ArgDef& output : output_args(node.op)) {
    const int64_t size = arg_size(node, output);
    if ((output.name == arg || output.name.empty()) && index < size) return static_cast<int>(first + index);
    first += size;
    if (first > kMaxOutputs) break;
  }
  fail_node(
      node, ErrorCode::kInvalidModel,
      fmt::format("'{}' uses its output '{}:{}', which it does not have", printable(user), printable(arg), index));
}

void Program::fail_node(const NodeDef& node, ErrorCode code, std::string_view problem) const {
  fail(code, "{}, node '{}' ({}): {}", file_.name(), printable(node.name), printable(node.op), problem);
}

}  // namespace leadline::saved_model
