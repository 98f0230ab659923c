// SPDX-License-Identifier: Apache-2.0
// Mutations of shapes, types and roles of tensors.
#include <algorithm>

#include "leadline/types.h"
#include "mutation.h"

namespace leadline::fuzz {
namespace {

int64_t odd_size(Random& random, int64_t now) {
  if (random.once_in(4)) return random.pick<int64_t>({0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 64});
  if (random.once_in(6)) return random.pick<int64_t>({1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 28, INT32_MAX, -1});
  return random.pick<int64_t>({now + 1, std::max<int64_t>(now - 1, 0), 2 * now, now / 2, 1, 0});
}

bool change_dimension(Subject& subject, Random& random) {
  const TablePtr tensor = pick_tensor(subject.subgraph(random), random);
  if (tensor == nullptr) return false;
  auto shape = tensor->integers("shape");
  if (shape.empty()) return false;
  int64_t& size = shape[random.below(shape.size())];
  size = odd_size(random, size);
  tensor->set_integers("shape", shape);
  if (!random.once_in(4)) refit(subject, *tensor, random);
  return true;
}

bool change_rank(Subject& subject, Random& random) {
  const TablePtr tensor = pick_tensor(subject.subgraph(random), random);
  if (tensor == nullptr) return false;
  auto shape = tensor->integers("shape");
  const size_t place = random.below(shape.size() + 1);
  if (random.once_in(2) && !shape.empty()) {
    shape.erase(shape.begin() + static_cast<ptrdiff_t>(random.below(shape.size())));
  } else if (random.once_in(8)) {
    shape.insert(shape.end(), random.below(10), 1);
  } else {
    shape.insert(shape.begin() + static_cast<ptrdiff_t>(place), random.pick<int64_t>({1, 1, 1, 2, 0}));
  }
  tensor->set_integers("shape", shape);
  if (!random.once_in(4)) refit(subject, *tensor, random);
  return true;
}

bool copy_shape(Subject& subject, Random& random) {
  const TablePtr subgraph = subject.subgraph(random);
  const TablePtr to = pick_tensor(subgraph, random);
  const TablePtr from = pick_tensor(subgraph, random);
  if (to == nullptr || to == from) return false;
  (*to)["shape"] = (*from)["shape"];
  if (!random.once_in(4)) refit(subject, *to, random);
  return true;
}

/// The same size becomes another one wherever it occurs: what fitted together still does.
bool change_size_everywhere(Subject& subject, Random& random) {
  const TablePtr some = pick_tensor(subject.subgraph(random), random);
  if (some == nullptr) return false;
  const auto sizes = some->integers("shape");
  if (sizes.empty()) return false;
  const int64_t from = random.pick(sizes);
  const int64_t to = odd_size(random, from);
  for (const TablePtr& subgraph : subject.subgraphs()) {
    for (const TablePtr& tensor : subgraph->tables("tensors")) {
      auto shape = tensor->integers("shape");
      if (std::find(shape.begin(), shape.end(), from) == shape.end()) continue;
      std::replace(shape.begin(), shape.end(), from, to);
      tensor->set_integers("shape", shape);
      refit(subject, *tensor, random);
    }
  }
  return true;
}

bool change_signature(Subject& subject, Random& random) {
  const TablePtr tensor = pick_tensor(subject.subgraph(random), random);
  if (tensor == nullptr) return false;
  auto shape = tensor->integers("shape");
  for (int64_t& size : shape) {
    if (random.once_in(2)) size = random.once_in(8) ? odd_integer(random, size) : -1;
  }
  if (random.once_in(8)) shape.push_back(-1);
  tensor->set_integers("shape_signature", shape);
  if (random.once_in(8)) tensor->set("has_rank", random.once_in(2) ? 1 : 0);
  return true;
}

int64_t odd_type(Random& random) {
  if (random.once_in(20)) return random.pick<int64_t>({kDTypeCount, 127, -1, -128});
  if (random.once_in(2)) return random.pick<int64_t>({0, 2, 3, 4, 7, 9, 6, 1});
  return static_cast<int64_t>(random.below(kDTypeCount));
}

void give_type(Subject& subject, Table& tensor, int64_t type, Random& random) {
  tensor.set("type", type);
  const bool small_integer = type == 3 || type == 7 || type == 9 || type == 17;
  if (small_integer && !tensor.has("quantization") && !random.once_in(4)) {
    set_per_tensor(tensor, random.pick<float>({0.05F, 1.0F, 0.007F, 1.0F / 256}), type == 3 ? 128 : 0);
  }
  if (type == 0 && random.once_in(2)) tensor.clear("quantization");
  refit(subject, tensor, random);
}

bool change_type(Subject& subject, Random& random) {
  const TablePtr tensor = pick_tensor(subject.subgraph(random), random);
  if (tensor == nullptr) return false;
  if (random.once_in(4)) {
    tensor->set("type", odd_type(random));
  } else {
    give_type(subject, *tensor, odd_type(random), random);
  }
  return true;
}

/// All tensors of a type get another one: the nodes agree about it.
bool change_type_everywhere(Subject& subject, Random& random) {
  const TablePtr some = pick_tensor(subject.subgraph(random), random);
  if (some == nullptr) return false;
  const int64_t from = some->integer("type");
  const int64_t to = odd_type(random);
  for (const TablePtr& subgraph : subject.subgraphs()) {
    for (const TablePtr& tensor : subgraph->tables("tensors")) {
      if (tensor->integer("type") == from) give_type(subject, *tensor, to, random);
    }
  }
  return from != to;
}

/// All tensors of one node get a type.
bool change_type_of_node(Subject& subject, Random& random) {
  const TablePtr subgraph = subject.subgraph(random);
  const TablePtr node = pick_operator(subgraph, random);
  if (node == nullptr) return false;
  const auto& tensors = subgraph->tables("tensors");
  const int64_t to = odd_type(random);
  const int64_t kept = random.pick<int64_t>({-1, 2, 4, 6});  // a type of index tensors is often left alone
  for (const char* list : {"inputs", "outputs"}) {
    for (const int64_t v : node->integers(list)) {
      if (v < 0 || v >= static_cast<int64_t>(tensors.size())) continue;
      Table& tensor = *tensors[static_cast<size_t>(v)];
      if (tensor.integer("type") != kept) give_type(subject, tensor, to, random);
    }
  }
  return true;
}

/// What was known before the run is given for it.
bool constant_becomes_input(Subject& subject, Random& random) {
  const TablePtr subgraph = subject.subgraph(random);
  const TablePtr tensor = pick_tensor(subgraph, random);
  if (tensor == nullptr || !is_constant(subject, *tensor)) return false;
  const auto& tensors = subgraph->tables("tensors");
  const int64_t index = std::find(tensors.begin(), tensors.end(), tensor) - tensors.begin();
  tensor->set("buffer", 0);
  tensor->clear("sparsity");
  auto inputs = subgraph->integers("inputs");
  inputs.push_back(index);
  subgraph->set_integers("inputs", inputs);
  return true;
}

bool input_becomes_constant(Subject& subject, Random& random) {
  const TablePtr subgraph = subject.subgraph(random);
  if (subgraph == nullptr) return false;
  auto inputs = subgraph->integers("inputs");
  if (inputs.empty()) return false;
  const size_t which = random.below(inputs.size());
  const auto& tensors = subgraph->tables("tensors");
  if (inputs[which] < 0 || inputs[which] >= static_cast<int64_t>(tensors.size())) return false;
  Table& tensor = *tensors[static_cast<size_t>(inputs[which])];
  const int64_t wanted = wanted_bytes(tensor);
  if (wanted < 0) return false;
  std::string bytes(static_cast<size_t>(wanted), '\0');
  const bool noise = random.once_in(2);
  for (size_t i = 0; noise && i < bytes.size(); ++i)
    bytes[i] = static_cast<char>(random.below(4) == 0 ? random.next() : 0);
  set_contents(subject, tensor, std::move(bytes));
  if (!random.once_in(8)) inputs.erase(inputs.begin() + static_cast<ptrdiff_t>(which));
  subgraph->set_integers("inputs", inputs);
  return true;
}

bool toggle_variable(Subject& subject, Random& random) {
  const TablePtr tensor = pick_tensor(subject.subgraph(random), random);
  if (tensor == nullptr) return false;
  tensor->set("is_variable", tensor->integer("is_variable") == 0 ? 1 : 0);
  if (random.once_in(2)) tensor->set("buffer", 0);
  return true;
}

bool rename_tensor(Subject& subject, Random& random) {
  const TablePtr tensor = pick_tensor(subject.subgraph(random), random);
  if (tensor == nullptr) return false;
  (*tensor)["name"] = odd_name(random);
  if (random.once_in(8)) tensor->clear("name");
  return true;
}

bool change_variant(Subject& subject, Random& random) {
  const TablePtr tensor = pick_tensor(subject.subgraph(random), random);
  if (tensor == nullptr) return false;
  const TablePtr sub = new_table("VariantSubType");
  sub->set_integers("shape", {odd_size(random, 2), odd_integer(random, 1)});
  sub->set("type", odd_type(random));
  sub->set("has_rank", random.once_in(2) ? 1 : 0);
  tensor->tables("variant_tensors").push_back(sub);
  if (random.once_in(2)) tensor->set("type", random.pick<int64_t>({13, 14}));
  if (random.once_in(4)) tensor->set("external_buffer", odd_integer(random, 0));
  return true;
}

}  // namespace

std::vector<Mutation> tensor_mutations() {
  return {{"change_dimension", 12, change_dimension},
          {"change_rank", 7, change_rank},
          {"copy_shape", 4, copy_shape},
          {"change_size_everywhere", 8, change_size_everywhere},
          {"change_signature", 3, change_signature},
          {"change_type", 6, change_type},
          {"change_type_everywhere", 5, change_type_everywhere},
          {"change_type_of_node", 4, change_type_of_node},
          {"constant_becomes_input", 6, constant_becomes_input},
          {"input_becomes_constant", 4, input_becomes_constant},
          {"toggle_variable", 3, toggle_variable},
          {"rename_tensor", 3, rename_tensor},
          {"change_variant", 1, change_variant}};
}

}  // namespace leadline::fuzz
