// SPDX-License-Identifier: Apache-2.0
// Mutations of subgraphs, calls, signatures, and parts taken from other models.
#include <algorithm>
#include <map>

#include "bases.h"
#include "mutation.h"

namespace leadline::fuzz {
namespace {

constexpr int64_t kIf = 118;
constexpr int64_t kWhile = 119;
constexpr int64_t kCallOnce = 129;

int64_t odd_subgraph(Subject& subject, Random& random) {
  if (random.once_in(8)) return odd_integer(random, static_cast<int64_t>(subject.subgraphs().size()));
  return static_cast<int64_t>(random.below(subject.subgraphs().size()));
}

/// Another subgraph is called: itself, one with other inputs, one that does not exist.
bool change_call(Subject& subject, Random& random) {
  std::vector<std::pair<TablePtr, std::string>> calls;
  for (const TablePtr& subgraph : subject.subgraphs()) {
    for (const TablePtr& node : subgraph->tables("operators")) {
      for (const char* name : {"builtin_options", "builtin_options_2"}) {
        const TablePtr options = node->table(name);
        if (options == nullptr) continue;
        for (const FieldType& field : options->type->fields) {
          if (field.name.find("subgraph") != std::string::npos && field.kind == FieldType::Kind::kScalar) {
            calls.emplace_back(options, field.name);
          }
        }
      }
    }
  }
  if (calls.empty()) return false;
  const auto& [options, field] = random.pick(calls);
  options->set(field, odd_subgraph(subject, random));
  return true;
}

TablePtr new_options(Table& node, int64_t member) {
  const TablePtr options = new_table("options1." + std::to_string(member));
  node.set("builtin_options_type", member);
  node["builtin_options"] = options;
  return options;
}

/// A node that calls subgraphs of the model, with operands that look like theirs.
bool add_call(Subject& subject, Random& random) {
  const TablePtr subgraph = subject.subgraph(random);
  if (pick_tensor(subgraph, random) == nullptr) return false;
  if (random.once_in(3)) subject.subgraphs().push_back(clone(subgraph));
  const TablePtr node = new_table("Operator");
  const int64_t first = odd_subgraph(subject, random);
  const int64_t second = random.once_in(2) ? first : odd_subgraph(subject, random);
  std::vector<int64_t> inputs;
  std::vector<int64_t> outputs;
  const auto new_like = [&](const TablePtr& other, int64_t v) {
    const auto& tensors = other->tables("tensors");
    const TablePtr tensor = v >= 0 && v < static_cast<int64_t>(tensors.size()) ? clone(tensors[static_cast<size_t>(v)])
                                                                               : new_table("Tensor");
    tensor->set("buffer", 0);
    tensor->clear("is_variable");
    return add_tensor(subgraph, tensor);
  };
  auto graph_inputs = subgraph->integers("inputs");
  auto graph_outputs = subgraph->integers("outputs");
  const bool exists = first >= 0 && first < static_cast<int64_t>(subject.subgraphs().size());
  const TablePtr callee = exists ? subject.subgraphs()[static_cast<size_t>(first)] : subgraph;
  const int64_t op = random.pick<int64_t>({kIf, kWhile, kCallOnce});
  if (op == kIf) {
    const TablePtr condition = new_table("Tensor");
    condition->set("type", 6);
    inputs.push_back(add_tensor(subgraph, condition));
  }
  if (op != kCallOnce) {
    for (const int64_t v : callee->integers("inputs")) inputs.push_back(new_like(callee, v));
    for (const int64_t v : callee->integers(op == kIf ? "outputs" : "inputs")) outputs.push_back(new_like(callee, v));
  }
  graph_inputs.insert(graph_inputs.end(), inputs.begin(), inputs.end());
  graph_outputs.insert(graph_outputs.end(), outputs.begin(), outputs.end());
  if (op == kCallOnce) {
    new_options(*node, 103)->set("init_subgraph_index", first);
  } else if (op == kIf) {
    const TablePtr options = new_options(*node, 92);
    options->set("then_subgraph_index", first);
    options->set("else_subgraph_index", second);
  } else {
    const TablePtr options = new_options(*node, 93);
    options->set("cond_subgraph_index", second);
    options->set("body_subgraph_index", first);
  }
  node->set("opcode_index", operator_code(subject, op, 1));
  node->set_integers("inputs", inputs);
  node->set_integers("outputs", outputs);
  subgraph->set_integers("inputs", graph_inputs);
  subgraph->set_integers("outputs", graph_outputs);
  auto& nodes = subgraph->tables("operators");
  nodes.insert(random.once_in(2) ? nodes.begin() : nodes.end(), node);
  return true;
}

bool change_subgraph_lists(Subject& subject, Random& random) {
  const TablePtr subgraph = subject.subgraph(random);
  if (subgraph == nullptr || subgraph->count("tensors") == 0) return false;
  const char* field = random.once_in(2) ? "inputs" : "outputs";
  auto list = subgraph->integers(field);
  const auto any = static_cast<int64_t>(random.below(subgraph->count("tensors")));
  switch (random.below(5)) {
    case 0:
      if (list.empty()) return false;
      list.erase(list.begin() + static_cast<ptrdiff_t>(random.below(list.size())));
      break;
    case 1:
      list.push_back(any);
      break;
    case 2:
      if (list.empty()) return false;
      list.push_back(random.pick(list));
      break;
    case 3:
      if (list.empty()) return false;
      list[random.below(list.size())] = random.once_in(3) ? odd_integer(random, any) : any;
      break;
    default:
      // All tensors that nodes write are results.
      list = subgraph->integers("outputs");
      field = "outputs";
      for (const TablePtr& node : subgraph->tables("operators")) {
        for (const int64_t v : node->integers("outputs")) {
          if (std::find(list.begin(), list.end(), v) == list.end()) list.push_back(v);
        }
      }
  }
  subgraph->set_integers(field, list);
  return true;
}

bool change_subgraphs(Subject& subject, Random& random) {
  auto& subgraphs = subject.subgraphs();
  if (subgraphs.empty()) return false;
  switch (random.below(4)) {
    case 0:
      subgraphs.push_back(clone(random.pick(subgraphs)));
      break;
    case 1:
      std::swap(subgraphs[random.below(subgraphs.size())], subgraphs[random.below(subgraphs.size())]);
      break;
    case 2:
      (*random.pick(subgraphs))["name"] = odd_name(random);
      break;
    default:
      if (subgraphs.size() < 2) return false;
      subgraphs.pop_back();
  }
  return true;
}

TablePtr tensor_map(const std::string& name, int64_t index) {
  const TablePtr map = new_table("TensorMap");
  (*map)["name"] = name;
  map->set("tensor_index", index);
  return map;
}

bool change_signatures(Subject& subject, Random& random) {
  auto& signatures = subject.root->tables("signature_defs");
  if (signatures.empty() || random.once_in(4)) {
    const int64_t index = odd_subgraph(subject, random);
    const TablePtr signature = new_table("SignatureDef");
    (*signature)["signature_key"] = random.once_in(2) ? odd_name(random) : "key" + std::to_string(random.below(3));
    signature->set("subgraph_index", index);
    if (index >= 0 && index < static_cast<int64_t>(subject.subgraphs().size())) {
      const TablePtr& subgraph = subject.subgraphs()[static_cast<size_t>(index)];
      for (const char* list : {"inputs", "outputs"}) {
        for (const int64_t v : subgraph->integers(list)) {
          signature->tables(list).push_back(
              tensor_map(random.once_in(4) ? odd_name(random) : std::string(list) + std::to_string(v), v));
        }
      }
    }
    signatures.push_back(signature);
    return true;
  }
  const TablePtr signature = random.pick(signatures);
  auto& maps = signature->tables(random.once_in(2) ? "inputs" : "outputs");
  switch (random.below(6)) {
    case 0:
      signature->clear("signature_key");
      break;
    case 1:
      (*signature)["signature_key"] = odd_name(random);
      break;
    case 2:
      signature->set("subgraph_index", odd_integer(random, 0));
      break;
    case 3:
      maps.push_back(tensor_map(odd_name(random), odd_integer(random, 1)));
      break;
    default:
      if (maps.empty()) return false;
      if (random.once_in(2)) {
        random.pick(maps)->set("tensor_index", odd_integer(random, 1));
      } else {
        random.pick(maps)->clear("name");
      }
  }
  return true;
}

/// A node of another model with all its tensors, beside or behind the nodes of this one.
bool splice_node(Subject& subject, Random& random) {
  if (subject.donors == nullptr) return false;
  const TablePtr donor = subject.donors->pick(random).read();
  const TablePtr to = subject.subgraph(random);
  if (to == nullptr || donor->count("subgraphs") == 0) return false;
  Subject other{donor};
  const TablePtr from = other.subgraphs().front();
  const TablePtr source = pick_operator(from, random);
  if (source == nullptr) return false;
  const auto code_index = static_cast<uint64_t>(source->integer("opcode_index"));
  if (code_index >= donor->count("operator_codes")) return false;
  const TablePtr node = clone(source);
  subject.root->tables("operator_codes").push_back(clone(donor->tables("operator_codes")[code_index]));
  node->set("opcode_index", static_cast<int64_t>(subject.root->count("operator_codes")) - 1);
  auto graph_inputs = to->integers("inputs");
  auto graph_outputs = to->integers("outputs");
  std::map<int64_t, int64_t> moved;
  const auto& tensors = from->tables("tensors");
  for (const char* list : {"inputs", "outputs", "intermediates"}) {
    auto operands = node->integers(list);
    for (int64_t& v : operands) {
      if (v < 0 || v >= static_cast<int64_t>(tensors.size())) continue;
      if (!moved.contains(v)) {
        const TablePtr tensor = clone(tensors[static_cast<size_t>(v)]);
        const std::string bytes = contents(other, *tensor);
        if (bytes.size() > 1 << 16) return false;
        tensor->set("buffer", 0);
        if (!bytes.empty()) set_contents(subject, *tensor, bytes);
        moved[v] = add_tensor(to, tensor);
        const bool given = list[0] == 'i' && list[2] == 'p' && bytes.empty() && tensor->integer("is_variable") == 0;
        if (given) graph_inputs.push_back(moved[v]);
      }
      v = moved[v];
      if (list[0] == 'o') graph_outputs.push_back(v);
    }
    if (!operands.empty()) node->set_integers(list, operands);
  }
  // Joined to the graph: it reads what is there already.
  if (!random.once_in(3)) {
    auto operands = node->integers("inputs");
    if (!operands.empty()) {
      const size_t place = random.once_in(3) ? random.below(operands.size()) : 0;
      const auto& here = to->tables("tensors");
      operands[place] = static_cast<int64_t>(random.below(here.size()));
      node->set_integers("inputs", operands);
    }
  }
  to->set_integers("inputs", graph_inputs);
  to->set_integers("outputs", graph_outputs);
  to->tables("operators").push_back(node);
  return true;
}

/// Calls in calls: a chain, or a tree that doubles at every level.
bool nest_calls(Subject& subject, Random& random) {
  if (subject.subgraphs().empty() || !random.once_in(2)) return false;
  const int64_t code = operator_code(subject, kCallOnce, 1);
  const size_t levels = random.pick<size_t>({2, 5, 20, 40, 200});
  const size_t each = random.pick<size_t>({1, 1, 2, 3});
  for (size_t level = 0; level < levels; ++level) {
    const TablePtr caller = level == 0 ? subject.subgraphs()[0] : subject.subgraphs().back();
    const auto next = static_cast<int64_t>(subject.subgraphs().size());
    for (size_t i = 0; i < each; ++i) {
      const TablePtr node = new_table("Operator");
      node->set("opcode_index", code);
      new_options(*node, 103)->set("init_subgraph_index", next);
      caller->tables("operators").push_back(node);
    }
    subject.subgraphs().push_back(new_table("SubGraph"));
  }
  return true;
}

}  // namespace

std::vector<Mutation> graph_mutations() {
  return {{"change_call", 5, change_call},
          {"add_call", 4, add_call},
          {"change_subgraph_lists", 5, change_subgraph_lists},
          {"change_subgraphs", 2, change_subgraphs},
          {"change_signatures", 3, change_signatures},
          {"splice_node", 7, splice_node},
          {"nest_calls", 1, nest_calls}};
}

}  // namespace leadline::fuzz
