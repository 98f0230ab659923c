// SPDX-License-Identifier: Apache-2.0
// A .tflite file as a tree of tables with every field the schema has, legal or not. It knows which field has which type
// and nothing about what the fields mean: whatever is put into it can be written as a well-formed flatbuffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace leadline::fuzz {

struct TableType;

/// `scalar` is one of b B h H i I q Q f (as in Python's struct): the type of the field or of its elements.
struct FieldType {
  enum class Kind : uint8_t { kScalar, kString, kVector, kTable, kTables, kUnion };
  std::string name;
  Kind kind = Kind::kScalar;
  char scalar = 'i';
  int align = 0;  // of a vector, where the format asks for more than an element's
  std::string table;
};

struct TableType {
  std::string name;
  std::vector<FieldType> fields;
  int slot(std::string_view field) const;  // -1: no such field
};

struct Table;
using TablePtr = std::shared_ptr<Table>;
/// Nothing, a scalar (integers sign-extended, floats as their bits), bytes of a string or vector, one or more tables.
using Field = std::variant<std::monostate, uint64_t, std::string, TablePtr, std::vector<TablePtr>>;

/// Bytes behind the flatbuffer that `offset` and `size` of the table point to. The deltas make them point elsewhere.
struct Tail {
  std::string bytes;
  uint64_t offset_delta = 0;
  uint64_t size_delta = 0;
};

struct Table {
  explicit Table(const TableType& t) : type(&t), fields(t.fields.size()) {}

  Field& operator[](std::string_view field);  // throws std::logic_error for a field that the type does not have
  const Field& operator[](std::string_view field) const;
  bool has(std::string_view field) const { return (*this)[field].index() != 0; }
  void clear(std::string_view field) { (*this)[field] = std::monostate(); }

  int64_t integer(std::string_view field, int64_t fallback = 0) const;
  void set(std::string_view field, int64_t value) { (*this)[field] = static_cast<uint64_t>(value); }
  /// Bytes of a string or vector; empty when absent.
  const std::string& bytes(std::string_view field) const;
  std::vector<int64_t> integers(std::string_view field) const;
  void set_integers(std::string_view field, const std::vector<int64_t>& values);
  std::vector<float> floats(std::string_view field) const;
  void set_floats(std::string_view field, const std::vector<float>& values);
  /// Null when absent.
  TablePtr table(std::string_view field) const;
  /// Absent or of another kind: an empty list, which becomes part of the table.
  std::vector<TablePtr>& tables(std::string_view field);
  size_t count(std::string_view field) const;

  const TableType* type;
  std::vector<Field> fields;
  std::optional<Tail> tail;
};

/// The type called so; option tables are called "options1.NUMBER" and "options2.NUMBER" after their union and member.
/// Null: there is none.
const TableType* find_type(std::string_view name);
/// The type of a union's table when the union's type field says `member`; null: unknown.
const TableType* union_member(const FieldType& field, int64_t member);
TablePtr new_table(std::string_view type);
TablePtr clone(const TablePtr& table);
int scalar_size(char scalar);

/// Every table below `root` (itself included), parents first.
std::vector<TablePtr> all_tables(const TablePtr& root);

/// Throws std::runtime_error when the bytes are not a flatbuffer of this format. Fields the schema does not have are
/// lost.
TablePtr read_file(std::span<const std::byte> file);
/// Tables that occur twice in the tree are written once. 16-byte alignment of the result is up to the caller.
std::vector<std::byte> write_file(const TablePtr& root);

/// A readable text, which parse_text() takes back (what is shared becomes copies).
std::string print_text(const TablePtr& root);
/// Throws std::runtime_error with the line of the mistake.
TablePtr parse_text(std::string_view text);

}  // namespace leadline::fuzz
