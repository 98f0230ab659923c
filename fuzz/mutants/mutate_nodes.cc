// SPDX-License-Identifier: Apache-2.0
// Mutations of nodes: what they are, what they read and write, and their options.
#include <algorithm>
#include <bit>

#include "mutation.h"
#include "ops/registry.h"

namespace leadline::fuzz {
namespace {

using Kind = FieldType::Kind;

int64_t odd_tensor(const TablePtr& subgraph, Random& random) {
  const auto count = static_cast<int64_t>(subgraph->count("tensors"));
  if (random.once_in(10)) return random.pick<int64_t>({-1, -2, count, INT32_MAX, INT32_MIN});
  return static_cast<int64_t>(random.below(static_cast<size_t>(count)));
}

bool change_operand(Subject& subject, Random& random) {
  const TablePtr subgraph = subject.subgraph(random);
  const TablePtr node = pick_operator(subgraph, random);
  if (node == nullptr) return false;
  const char* list = random.once_in(5) ? "outputs" : "inputs";
  auto operands = node->integers(list);
  switch (random.below(6)) {
    case 0:
      if (operands.empty()) return false;
      operands[random.below(operands.size())] = -1;
      break;
    case 1:
      if (operands.empty()) return false;
      operands.pop_back();
      break;
    case 2:
      operands.push_back(odd_tensor(subgraph, random));
      break;
    case 3:
      if (operands.size() < 2) return false;
      std::swap(operands[random.below(operands.size())], operands[random.below(operands.size())]);
      break;
    default:
      if (operands.empty()) return false;
      operands[random.below(operands.size())] = odd_tensor(subgraph, random);
  }
  node->set_integers(list, operands);
  return true;
}

const ops::OpDef& any_op(Random& random) {
  static const std::vector<const ops::OpDef*> rows = [] {
    std::vector<const ops::OpDef*> list;
    for (const auto& [code, row] : ops::registry().builtins()) {
      if (row.infer != nullptr) list.push_back(&row);
    }
    return list;
  }();
  return *random.pick(rows);
}

void set_options(Table& node, const ops::OpDef& row, Random& random) {
  node.clear("builtin_options");
  node.clear("builtin_options_type");
  node.clear("builtin_options_2");
  node.clear("builtin_options_2_type");
  if (!row.options.any() || random.once_in(4)) return;
  const std::string type =
      "options" + std::to_string(static_cast<int>(row.options.table)) + "." + std::to_string(row.options.member);
  const TablePtr options = new_table(type);
  for (size_t slot = 0; slot < options->fields.size(); ++slot) {
    const FieldType& field = options->type->fields[slot];
    if (random.once_in(3)) continue;
    if (field.kind == Kind::kScalar) {
      options->fields[slot] = field.scalar == 'f' ? uint64_t{std::bit_cast<uint32_t>(odd_float(random))}
                                                  : random.pick<uint64_t>({0, 1, 1, 1, 2, 3});
    } else if (field.kind == Kind::kVector) {
      options->set_integers(field.name, std::vector<int64_t>(random.below(5), random.pick<int64_t>({0, 1, 2})));
    }
  }
  const char* name =
      row.options.table == ops::OptionsTable::Union::kBuiltinOptions ? "builtin_options" : "builtin_options_2";
  node.set(std::string(name) + "_type", row.options.member);
  node[name] = options;
}

/// Another op with options of its own; the operands stay.
bool change_op(Subject& subject, Random& random) {
  const TablePtr node = pick_operator(subject.subgraph(random), random);
  if (node == nullptr) return false;
  const ops::OpDef& row = any_op(random);
  node->set("opcode_index",
            operator_code(subject, row.id.code(),
                          1 + static_cast<int64_t>(random.below(static_cast<size_t>(row.max_version)))));
  set_options(*node, row, random);
  return true;
}

bool change_code(Subject& subject, Random& random) {
  auto& codes = subject.root->tables("operator_codes");
  if (codes.empty()) return false;
  const TablePtr code = random.pick(codes);
  switch (random.below(6)) {
    case 0:
      code->set("version",
                random.once_in(2) ? random.between(1, 12) : odd_integer(random, code->integer("version", 1)));
      break;
    case 1:
      code->set("builtin_code", random.between(0, 220));
      break;
    case 2:
      code->set("deprecated_builtin_code", random.between(-128, 127));
      break;
    case 3: {
      const auto& customs = ops::registry().customs();
      auto it = customs.begin();
      std::advance(it, static_cast<ptrdiff_t>(random.below(customs.size())));
      code->set("builtin_code", 32);
      code->set("deprecated_builtin_code", 32);
      (*code)["custom_code"] = random.once_in(3) ? odd_name(random) : std::string(it->first);
      if (random.once_in(8)) code->clear("custom_code");
      break;
    }
    case 4:
      (*code)["custom_code"] = random.once_in(2) ? std::string("FlexAdd") : odd_name(random);
      break;
    default: {
      const TablePtr node = pick_operator(subject.subgraph(random), random);
      if (node == nullptr) return false;
      node->set("opcode_index", odd_integer(random, node->integer("opcode_index")));
    }
  }
  return true;
}

TablePtr options_of(const Table& node) {
  const TablePtr first = node.table("builtin_options");
  return first != nullptr ? first : node.table("builtin_options_2");
}

bool change_option(Subject& subject, Random& random) {
  const TablePtr node = pick_operator(subject.subgraph(random), random);
  const TablePtr options = node == nullptr ? nullptr : options_of(*node);
  if (options == nullptr || options->fields.empty()) return false;
  const size_t slot = random.below(options->fields.size());
  const FieldType& field = options->type->fields[slot];
  switch (field.kind) {
    case Kind::kScalar:
      if (field.scalar == 'f') {
        options->fields[slot] = uint64_t{std::bit_cast<uint32_t>(odd_float(random))};
      } else if (scalar_size(field.scalar) == 1) {
        options->fields[slot] =
            static_cast<uint64_t>(random.once_in(6) ? odd_integer(random, 0) : random.between(0, 6));
      } else {
        options->set(field.name, odd_integer(random, options->integer(field.name)));
      }
      return true;
    case Kind::kString:
      options->fields[slot] = odd_name(random);
      return true;
    case Kind::kVector: {
      auto values = options->integers(field.name);
      if (values.empty() || random.once_in(4)) {
        values.insert(values.end(), random.pick<size_t>({1, 1, 2, 4, 8, 9, 100}), odd_integer(random, 1));
      } else if (random.once_in(4)) {
        values.pop_back();
      } else {
        int64_t& value = values[random.below(values.size())];
        value = odd_integer(random, value);
      }
      options->set_integers(field.name, values);
      return true;
    }
    default:
      return false;
  }
}

bool change_options_table(Subject& subject, Random& random) {
  const TablePtr subgraph = subject.subgraph(random);
  const TablePtr node = pick_operator(subgraph, random);
  const TablePtr other = pick_operator(subgraph, random);
  if (node == nullptr) return false;
  switch (random.below(5)) {
    case 0:
      node->clear("builtin_options");
      node->clear("builtin_options_2");
      break;
    case 1:
      node->clear("builtin_options_type");
      node->clear("builtin_options");
      break;
    case 2:
      node->set("builtin_options_type", random.between(0, 130));
      break;
    case 3:
      for (const char* field :
           {"builtin_options", "builtin_options_type", "builtin_options_2", "builtin_options_2_type"}) {
        (*node)[field] = (*other)[field];
      }
      break;
    default: {
      const TablePtr options = options_of(*node);
      if (options == nullptr || options->fields.empty()) return false;
      options->fields[random.below(options->fields.size())] = std::monostate();
    }
  }
  return true;
}

bool change_custom_options(Subject& subject, Random& random) {
  const TablePtr node = pick_operator(subject.subgraph(random), random);
  if (node == nullptr || (node->bytes("custom_options").empty() && !random.once_in(16))) return false;
  std::string bytes = node->bytes("custom_options");
  switch (random.below(5)) {
    case 0:
      bytes.resize(random.below(bytes.size() + 2));
      break;
    case 1:
      if (!bytes.empty())
        bytes[bytes.size() - 1 - random.below(std::min<size_t>(bytes.size(), 24))] = static_cast<char>(random.next());
      break;
    case 2:
      node->tail = Tail{.bytes = bytes};
      if (random.once_in(2)) node->tail->offset_delta = static_cast<uint64_t>(odd_integer(random, 0));
      if (random.once_in(2)) node->tail->size_delta = static_cast<uint64_t>(odd_integer(random, 0));
      node->set("large_custom_options_offset", 2);
      node->set("large_custom_options_size", 0);
      break;
    default:
      for (size_t i = 0; i < 1 + random.below(3) && !bytes.empty(); ++i) {
        bytes[random.below(bytes.size())] =
            static_cast<char>(random.pick<int>({0, 1, 2, 127, 128, 255, 64, static_cast<int>(random.below(256))}));
      }
  }
  (*node)["custom_options"] = bytes;
  return true;
}

bool change_intermediates(Subject& subject, Random& random) {
  const TablePtr subgraph = subject.subgraph(random);
  const TablePtr node = pick_operator(subgraph, random);
  if (node == nullptr) return false;
  if (random.once_in(3)) {
    node->set_integers("mutating_variable_inputs", std::vector<int64_t>(random.below(40), 1));
    return true;
  }
  auto list = node->integers("intermediates");
  if (list.empty() && !random.once_in(4)) return false;
  if (random.once_in(3) && !list.empty()) {
    list.pop_back();
  } else if (random.once_in(2) && !list.empty()) {
    list[random.below(list.size())] = odd_tensor(subgraph, random);
  } else {
    list.push_back(odd_tensor(subgraph, random));
  }
  node->set_integers("intermediates", list);
  return true;
}

bool remove_node(Subject& subject, Random& random) {
  const TablePtr subgraph = subject.subgraph(random);
  if (pick_operator(subgraph, random) == nullptr) return false;
  auto& nodes = subgraph->tables("operators");
  const size_t which = random.below(nodes.size());
  if (random.once_in(2) && nodes.size() > 1) {
    std::swap(nodes[which], nodes[random.below(nodes.size())]);
    return true;
  }
  // What it wrote is given from outside, so that the rest still runs.
  if (!random.once_in(4)) {
    auto inputs = subgraph->integers("inputs");
    const auto outputs = nodes[which]->integers("outputs");
    inputs.insert(inputs.end(), outputs.begin(), outputs.end());
    subgraph->set_integers("inputs", inputs);
  }
  nodes.erase(nodes.begin() + static_cast<ptrdiff_t>(which));
  return true;
}

/// The same node once more, with outputs of its own.
bool repeat_node(Subject& subject, Random& random) {
  const TablePtr subgraph = subject.subgraph(random);
  const TablePtr node = pick_operator(subgraph, random);
  if (node == nullptr) return false;
  const TablePtr copy = clone(node);
  auto outputs = copy->integers("outputs");
  auto inputs = copy->integers("inputs");
  auto graph_outputs = subgraph->integers("outputs");
  // Sometimes it reads what the first one wrote.
  if (random.once_in(2) && !inputs.empty() && !outputs.empty()) inputs[random.below(inputs.size())] = outputs[0];
  for (int64_t& v : outputs) {
    if (v < 0 || v >= static_cast<int64_t>(subgraph->count("tensors"))) continue;
    v = add_tensor(subgraph, clone(subgraph->tables("tensors")[static_cast<size_t>(v)]));
    graph_outputs.push_back(v);
  }
  copy->set_integers("inputs", inputs);
  copy->set_integers("outputs", outputs);
  subgraph->set_integers("outputs", graph_outputs);
  subgraph->tables("operators").push_back(copy);
  return true;
}

/// A new node of any op that reads tensors of the graph.
bool append_node(Subject& subject, Random& random) {
  const TablePtr subgraph = subject.subgraph(random);
  if (pick_tensor(subgraph, random) == nullptr) return false;
  const ops::OpDef& row = any_op(random);
  const TablePtr node = new_table("Operator");
  node->set("opcode_index", operator_code(subject, row.id.code(), row.max_version));
  set_options(*node, row, random);
  const int most = row.max_inputs < 0 ? row.min_inputs + 3 : row.max_inputs;
  std::vector<int64_t> inputs(static_cast<size_t>(random.between(row.min_inputs, std::max(most, row.min_inputs))));
  // Results come first as a rule: a tensor near the last is likely one.
  for (int64_t& v : inputs) v = static_cast<int64_t>(random.below(subgraph->count("tensors")));
  node->set_integers("inputs", inputs);
  std::vector<int64_t> outputs;
  auto graph_outputs = subgraph->integers("outputs");
  const int wanted = row.max_outputs < 0 ? 2 : std::max(row.min_outputs, 1);
  for (int i = 0; i < wanted; ++i) {
    const TablePtr like = inputs.empty()
                              ? pick_tensor(subgraph, random)
                              : subgraph->tables("tensors")[static_cast<size_t>(inputs[random.below(inputs.size())])];
    const TablePtr tensor = clone(like);
    tensor->set("buffer", 0);
    tensor->clear("is_variable");
    tensor->clear("sparsity");
    if (random.once_in(3)) tensor->set("type", random.pick<int64_t>({0, 2, 4, 6, 9}));
    outputs.push_back(add_tensor(subgraph, tensor));
    graph_outputs.push_back(outputs.back());
  }
  node->set_integers("outputs", outputs);
  subgraph->set_integers("outputs", graph_outputs);
  subgraph->tables("operators").push_back(node);
  return true;
}

}  // namespace

std::vector<Mutation> node_mutations() {
  return {{"change_operand", 9, change_operand},
          {"change_op", 7, change_op},
          {"change_code", 4, change_code},
          {"change_option", 16, change_option},
          {"change_options_table", 3, change_options_table},
          {"change_custom_options", 5, change_custom_options},
          {"change_intermediates", 3, change_intermediates},
          {"remove_node", 3, remove_node},
          {"repeat_node", 4, repeat_node},
          {"append_node", 5, append_node}};
}

}  // namespace leadline::fuzz
