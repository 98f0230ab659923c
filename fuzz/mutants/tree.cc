// SPDX-License-Identifier: Apache-2.0
#include "tree.h"

#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

#include "ops/registry.h"

namespace leadline::fuzz {
namespace {

using Kind = FieldType::Kind;

// One table per line. Types: a letter is a scalar, [x] a vector of them (with its alignment), s a string, {T} a table,
// [{T}] tables, <U> a union whose member the field before names.
constexpr const char* kFormat = R"(
CustomQuantization custom:[B]16
BlockwiseQuantization scales:i zero_points:i block_size:i
MultiAxisQuantization scales:i zero_points:i block_size:i quantized_dimensions:[i]
QuantizationParameters min:[f] max:[f] scale:[f] zero_point:[q] details_type:B details:<details> quantized_dimension:i
Int32Vector values:[i]
Uint16Vector values:[H]4
Uint8Vector values:[B]4
DimensionMetadata format:b dense_size:i array_segments_type:B array_segments:<indices> array_indices_type:B array_indices:<indices>
SparsityParameters traversal_order:[i] block_map:[i] dim_metadata:[{DimensionMetadata}]
VariantSubType shape:[i] type:b has_rank:B
Tensor shape:[i] type:b buffer:I name:s quantization:{QuantizationParameters} is_variable:B sparsity:{SparsityParameters} shape_signature:[i] has_rank:B variant_tensors:[{VariantSubType}] external_buffer:I
OperatorCode deprecated_builtin_code:b custom_code:s version:i builtin_code:i
Operator opcode_index:I inputs:[i] outputs:[i] builtin_options_type:B builtin_options:<options1> custom_options:[B] custom_options_format:b mutating_variable_inputs:[B] intermediates:[i] large_custom_options_offset:Q large_custom_options_size:Q builtin_options_2_type:B builtin_options_2:<options2> debug_metadata_index:i
SubGraph tensors:[{Tensor}] inputs:[i] outputs:[i] operators:[{Operator}] name:s debug_metadata_index:i
Buffer data:[B]16 offset:Q size:Q
Metadata name:s buffer:I
TensorMap name:s tensor_index:I
SignatureDef inputs:[{TensorMap}] outputs:[{TensorMap}] signature_key:s deprecated_tag:s subgraph_index:I
ExternalBufferGroup name:s
ExternalBuffer id:I group:I offset:Q length:Q packing:s
Model version:I operator_codes:[{OperatorCode}] subgraphs:[{SubGraph}] description:s buffers:[{Buffer}] metadata_buffer:[i] metadata:[{Metadata}] signature_defs:[{SignatureDef}] external_buffer_groups:[{ExternalBufferGroup}] external_buffers:[{ExternalBuffer}]
)";

FieldType parse_field(const std::string& word) {
  const size_t colon = word.find(':');
  FieldType field{.name = word.substr(0, colon), .table = {}};
  const std::string type = word.substr(colon + 1);
  if (type.starts_with("[{")) {
    field.kind = Kind::kTables;
    field.table = type.substr(2, type.size() - 4);
  } else if (type[0] == '[') {
    field.kind = Kind::kVector;
    field.scalar = type[1];
    if (type.size() > 3) field.align = std::stoi(type.substr(3));
  } else if (type[0] == '{') {
    field.kind = Kind::kTable;
    field.table = type.substr(1, type.size() - 2);
  } else if (type[0] == '<') {
    field.kind = Kind::kUnion;
    field.table = type.substr(1, type.size() - 2);
  } else if (type == "s") {
    field.kind = Kind::kString;
    field.scalar = 'B';
  } else {
    field.scalar = type[0];
  }
  return field;
}

/// The slots of an op's options, as its attributes list them.
class SlotCollector final : public ir::FieldVisitor {
 public:
  std::vector<FieldType> fields;
  void field(const char* name, bool&) override { add(name, Kind::kScalar, 'B'); }
  void field(const char* name, int8_t&) override { add(name, Kind::kScalar, 'b'); }
  void field(const char* name, int32_t&) override { add(name, Kind::kScalar, 'i'); }
  void field(const char* name, uint32_t&) override { add(name, Kind::kScalar, 'I'); }
  void field(const char* name, int64_t&) override { add(name, Kind::kScalar, 'q'); }
  void field(const char* name, float&) override { add(name, Kind::kScalar, 'f'); }
  void field(const char* name, std::string&) override { add(name, Kind::kString, 'B'); }
  void field(const char* name, std::vector<uint8_t>&) override { add(name, Kind::kVector, 'B'); }
  void field(const char* name, std::vector<int32_t>&) override { add(name, Kind::kVector, 'i'); }
  void field(const char* name, std::vector<uint32_t>&) override { add(name, Kind::kVector, 'I'); }
  void field(const char* name, std::vector<int64_t>&) override { add(name, Kind::kVector, 'q'); }
  void field(const char* name, std::vector<float>&) override { add(name, Kind::kVector, 'f'); }
  void skip() override { add("unused" + std::to_string(fields.size()), Kind::kScalar, 'b'); }

 private:
  void add(const std::string& name, Kind kind, char scalar) {
    fields.push_back({.name = name, .kind = kind, .scalar = scalar, .table = {}});
  }
};

std::map<std::string, TableType, std::less<>> make_types() {
  std::map<std::string, TableType, std::less<>> types;
  std::istringstream lines(kFormat);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    TableType type;
    if (!(words >> type.name)) continue;
    for (std::string word; words >> word;) type.fields.push_back(parse_field(word));
    types.emplace(type.name, type);
  }
  for (const auto& [code, row] : ops::registry().builtins()) {
    if (!row.options.any()) continue;
    const std::string name =
        "options" + std::to_string(static_cast<int>(row.options.table)) + "." + std::to_string(row.options.member);
    SlotCollector slots;
    ops::new_attributes(row)->visit(slots);
    TableType& type = types[name];
    type.name = name;
    if (slots.fields.size() > type.fields.size()) type.fields = slots.fields;
  }
  return types;
}

TablePtr clone_once(const TablePtr& table, std::map<const Table*, TablePtr>& made) {
  if (table == nullptr) return nullptr;
  TablePtr& copy = made[table.get()];
  if (copy != nullptr) return copy;
  auto result = std::make_shared<Table>(*table);
  for (Field& field : result->fields) {
    if (auto* child = std::get_if<TablePtr>(&field)) *child = clone_once(*child, made);
    if (auto* children = std::get_if<std::vector<TablePtr>>(&field)) {
      for (TablePtr& c : *children) c = clone_once(c, made);
    }
  }
  made[table.get()] = result;
  return result;
}

void collect(const TablePtr& table, std::set<const Table*>& seen, std::vector<TablePtr>& result) {
  if (table == nullptr || !seen.insert(table.get()).second) return;
  result.push_back(table);
  for (const Field& field : table->fields) {
    if (const auto* child = std::get_if<TablePtr>(&field)) collect(*child, seen, result);
    if (const auto* children = std::get_if<std::vector<TablePtr>>(&field)) {
      for (const TablePtr& c : *children) collect(c, seen, result);
    }
  }
}

}  // namespace

int scalar_size(char scalar) {
  switch (scalar) {
    case 'b':
    case 'B':
      return 1;
    case 'h':
    case 'H':
      return 2;
    case 'q':
    case 'Q':
      return 8;
    default:
      return 4;
  }
}

int TableType::slot(std::string_view field) const {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == field) return static_cast<int>(i);
  }
  return -1;
}

const TableType* find_type(std::string_view name) {
  static const std::map<std::string, TableType, std::less<>> types = make_types();
  const auto it = types.find(name);
  return it == types.end() ? nullptr : &it->second;
}

const TableType* union_member(const FieldType& field, int64_t member) {
  static const std::vector<std::string> details = {"CustomQuantization", "BlockwiseQuantization",
                                                   "MultiAxisQuantization"};
  static const std::vector<std::string> indices = {"Int32Vector", "Uint16Vector", "Uint8Vector"};
  if (field.table == "details" || field.table == "indices") {
    const auto& names = field.table == "details" ? details : indices;
    if (member < 1 || member > static_cast<int64_t>(names.size())) return nullptr;
    return find_type(names[static_cast<size_t>(member - 1)]);
  }
  return find_type(field.table + "." + std::to_string(member));
}

TablePtr new_table(std::string_view type) {
  const TableType* found = find_type(type);
  if (found == nullptr) throw std::logic_error("no table type " + std::string(type));
  return std::make_shared<Table>(*found);
}

TablePtr clone(const TablePtr& table) {
  std::map<const Table*, TablePtr> made;
  return clone_once(table, made);
}

std::vector<TablePtr> all_tables(const TablePtr& root) {
  std::set<const Table*> seen;
  std::vector<TablePtr> result;
  collect(root, seen, result);
  return result;
}

const Field& Table::operator[](std::string_view field) const {
  const int slot = type->slot(field);
  if (slot < 0) throw std::logic_error(type->name + " has no field " + std::string(field));
  return fields[static_cast<size_t>(slot)];
}

Field& Table::operator[](std::string_view field) { return const_cast<Field&>(static_cast<const Table&>(*this)[field]); }

int64_t Table::integer(std::string_view field, int64_t fallback) const {
  const auto* value = std::get_if<uint64_t>(&(*this)[field]);
  return value == nullptr ? fallback : static_cast<int64_t>(*value);
}

const std::string& Table::bytes(std::string_view field) const {
  static const std::string none;
  const auto* value = std::get_if<std::string>(&(*this)[field]);
  return value == nullptr ? none : *value;
}

std::vector<int64_t> Table::integers(std::string_view field) const {
  const std::string& raw = bytes(field);
  const char scalar = type->fields[static_cast<size_t>(type->slot(field))].scalar;
  const auto size = static_cast<size_t>(scalar_size(scalar));
  std::vector<int64_t> values;
  for (size_t at = 0; at + size <= raw.size(); at += size) {
    uint64_t value = 0;
    std::memcpy(&value, raw.data() + at, size);
    const unsigned unused = 64 - 8 * static_cast<unsigned>(size);
    const bool is_signed = scalar == 'b' || scalar == 'h' || scalar == 'i' || scalar == 'q';
    values.push_back(is_signed ? static_cast<int64_t>(value << unused) >> unused : static_cast<int64_t>(value));
  }
  return values;
}

void Table::set_integers(std::string_view field, const std::vector<int64_t>& values) {
  const auto size = static_cast<size_t>(scalar_size(type->fields[static_cast<size_t>(type->slot(field))].scalar));
  std::string raw;
  for (int64_t value : values) {
    char part[8];
    std::memcpy(part, &value, 8);
    raw.append(part, size);
  }
  (*this)[field] = std::move(raw);
}

std::vector<float> Table::floats(std::string_view field) const {
  const std::string& raw = bytes(field);
  std::vector<float> values(raw.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), raw.data(), values.size() * sizeof(float));
  return values;
}

void Table::set_floats(std::string_view field, const std::vector<float>& values) {
  std::string raw(values.size() * sizeof(float), '\0');
  if (!values.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  (*this)[field] = std::move(raw);
}

TablePtr Table::table(std::string_view field) const {
  const auto* value = std::get_if<TablePtr>(&(*this)[field]);
  return value == nullptr ? nullptr : *value;
}

std::vector<TablePtr>& Table::tables(std::string_view field) {
  Field& value = (*this)[field];
  if (!std::holds_alternative<std::vector<TablePtr>>(value)) value = std::vector<TablePtr>();
  return std::get<std::vector<TablePtr>>(value);
}

size_t Table::count(std::string_view field) const {
  const auto* value = std::get_if<std::vector<TablePtr>>(&(*this)[field]);
  return value == nullptr ? 0 : value->size();
}

}  // namespace leadline::fuzz
