// SPDX-License-Identifier: Apache-2.0
// Mutations that know nothing but the schema, and those of what surrounds the graph: metadata, versions, external data.
#include <algorithm>
#include <bit>

#include "mutation.h"

namespace leadline::fuzz {
namespace {

using Kind = FieldType::Kind;

TablePtr pick_table(Subject& subject, Random& random) {
  const auto tables = all_tables(subject.root);
  // A large model is mostly tensors; a type first, then a table of it, gives the rare ones their share.
  std::vector<const TableType*> types;
  for (const TablePtr& table : tables) {
    if (std::find(types.begin(), types.end(), table->type) == types.end()) types.push_back(table->type);
  }
  const TableType* type = random.pick(types);
  std::vector<TablePtr> of_type;
  for (const TablePtr& table : tables) {
    if (table->type == type) of_type.push_back(table);
  }
  return random.pick(of_type);
}

bool change_any_scalar(Subject& subject, Random& random) {
  const TablePtr table = pick_table(subject, random);
  if (table->fields.empty()) return false;
  const size_t slot = random.below(table->fields.size());
  const FieldType& field = table->type->fields[slot];
  if (field.kind != Kind::kScalar) return false;
  if (field.scalar == 'f') {
    table->fields[slot] = uint64_t{std::bit_cast<uint32_t>(odd_float(random))};
  } else {
    table->set(field.name, odd_integer(random, table->integer(field.name)));
  }
  return true;
}

bool change_any_list(Subject& subject, Random& random) {
  const TablePtr table = pick_table(subject, random);
  if (table->fields.empty()) return false;
  const size_t slot = random.below(table->fields.size());
  const FieldType& field = table->type->fields[slot];
  if (field.kind == Kind::kString) {
    table->fields[slot] = odd_name(random);
    return true;
  }
  if (field.kind == Kind::kVector) {
    auto values = table->integers(field.name);
    if (values.empty() || random.once_in(3)) {
      values.insert(values.end(), random.pick<size_t>({1, 1, 2, 16, 1000}), odd_integer(random, 1));
    } else if (random.once_in(3)) {
      values.erase(values.begin() + static_cast<ptrdiff_t>(random.below(values.size())));
    } else {
      int64_t& value = values[random.below(values.size())];
      value = odd_integer(random, value);
    }
    table->set_integers(field.name, values);
    return true;
  }
  if (field.kind == Kind::kTables) {
    auto& items = table->tables(field.name);
    if (items.empty()) {
      items.push_back(new_table(field.table));
    } else if (random.once_in(2)) {
      items.erase(items.begin() + static_cast<ptrdiff_t>(random.below(items.size())));
    } else if (random.once_in(2)) {
      items.push_back(clone(random.pick(items)));
    } else {
      std::swap(items[random.below(items.size())], items[random.below(items.size())]);
    }
    return true;
  }
  return false;
}

bool drop_any_field(Subject& subject, Random& random) {
  const TablePtr table = pick_table(subject, random);
  std::vector<size_t> present;
  for (size_t slot = 0; slot < table->fields.size(); ++slot) {
    if (table->fields[slot].index() != 0) present.push_back(slot);
  }
  if (present.empty()) return false;
  table->fields[random.pick(present)] = std::monostate();
  return true;
}

/// Many places of the file point to one table: a small file that describes a large graph.
bool multiply_table(Subject& subject, Random& random) {
  const TablePtr subgraph = subject.subgraph(random);
  if (subgraph == nullptr) return false;
  auto& items = subgraph->tables(random.once_in(2) ? "tensors" : "operators");
  if (items.empty()) return false;
  const TablePtr item = random.pick(items);
  items.insert(items.end(), random.pick<size_t>({2, 10, 100, 1000, 20000}), item);
  return true;
}

bool change_metadata(Subject& subject, Random& random) {
  auto& entries = subject.root->tables("metadata");
  if (entries.empty() || random.once_in(2)) {
    const TablePtr entry = new_table("Metadata");
    (*entry)["name"] =
        random.once_in(2)
            ? random.pick<std::string>({"min_runtime_version", "TFLITE_METADATA", "model_control_dependencies",
                                        "CONVERSION_METADATA", "reduced_precision_support", "buffer_location"})
            : odd_name(random);
    const TablePtr buffer = new_table("Buffer");
    std::string bytes(random.pick<size_t>({0, 1, 4, 16, 100}), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.once_in(3) ? random.next() : 0);
    (*buffer)["data"] = bytes;
    entry->set("buffer", random.once_in(3) ? odd_integer(random, 1) : static_cast<int64_t>(subject.buffers().size()));
    subject.buffers().push_back(buffer);
    entries.push_back(entry);
    return true;
  }
  const TablePtr entry = random.pick(entries);
  if (random.once_in(2)) {
    entry->set("buffer", odd_integer(random, entry->integer("buffer")));
  } else {
    (*entry)["name"] = odd_name(random);
  }
  return true;
}

bool change_model(Subject& subject, Random& random) {
  switch (random.below(5)) {
    case 0:
      subject.root->set("version", random.between(0, 4));
      break;
    case 1:
      (*subject.root)["description"] = odd_name(random);
      break;
    case 2:
      subject.root->set_integers("metadata_buffer", {odd_integer(random, 0), 1});
      break;
    case 3: {
      const TablePtr external = new_table("ExternalBuffer");
      external->set("id", 1);
      external->set("group", odd_integer(random, 0));
      external->set("offset", odd_integer(random, 0));
      external->set("length", odd_integer(random, 16));
      (*external)["packing"] = odd_name(random);
      subject.root->tables("external_buffers").push_back(external);
      const TablePtr group = new_table("ExternalBufferGroup");
      (*group)["name"] = random.once_in(2) ? std::string("/etc/passwd") : odd_name(random);
      subject.root->tables("external_buffer_groups").push_back(group);
      const TablePtr tensor = pick_tensor(subject.subgraph(random), random);
      if (tensor != nullptr) tensor->set("external_buffer", 1);
      break;
    }
    default: {
      const TablePtr subgraph = subject.subgraph(random);
      if (subgraph == nullptr) return false;
      subgraph->set("debug_metadata_index", odd_integer(random, 0));
    }
  }
  return true;
}

}  // namespace

std::vector<Mutation> file_mutations() {
  return {{"change_any_scalar", 6, change_any_scalar}, {"change_any_list", 5, change_any_list},
          {"drop_any_field", 4, drop_any_field},       {"multiply_table", 1, multiply_table},
          {"change_metadata", 2, change_metadata},     {"change_model", 1, change_model}};
}

}  // namespace leadline::fuzz
