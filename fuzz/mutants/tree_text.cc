// SPDX-License-Identifier: Apache-2.0
// Trees of tables from and to text: what the fuzzer found is kept in this form.
//
//   Model {
//     version = 3
//     subgraphs = [
//       SubGraph { ... }
//     ]
//   }
#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "tree.h"

namespace leadline::fuzz {
namespace {

using Kind = FieldType::Kind;

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7F || c == '"' || c == '\\') {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string number(char scalar, uint64_t value) {
  if (scalar == 'f') return fmt::format("{}", std::bit_cast<float>(static_cast<uint32_t>(value)));
  if (scalar == 'Q') return fmt::format("{}", value);
  return fmt::format("{}", static_cast<int64_t>(value));
}

/// Repeated numbers are written as NUMBER*TIMES.
std::string numbers(const Table& table, const FieldType& field) {
  const auto values = table.integers(field.name);
  std::string result = "[";
  for (size_t i = 0; i < values.size();) {
    size_t end = i + 1;
    while (end < values.size() && values[end] == values[i]) ++end;
    if (i > 0) result += ' ';
    result += number(field.scalar, static_cast<uint64_t>(values[i]));
    if (end - i > 1) result += fmt::format("*{}", end - i);
    i = end;
  }
  return result + "]";
}

void print_table(const Table& table, int indent, std::string& out) {
  const std::string space(static_cast<size_t>(indent), ' ');
  out += table.type->name + " {\n";
  for (size_t slot = 0; slot < table.fields.size(); ++slot) {
    const FieldType& type = table.type->fields[slot];
    const Field& field = table.fields[slot];
    if (field.index() == 0) continue;
    out += fmt::format("{}  {} = ", space, type.name);
    if (const auto* value = std::get_if<uint64_t>(&field)) {
      out += number(type.scalar, *value);
    } else if (const auto* bytes = std::get_if<std::string>(&field)) {
      out += type.kind == Kind::kString ? quoted(*bytes) : numbers(table, type);
    } else if (const auto* child = std::get_if<TablePtr>(&field)) {
      print_table(**child, indent + 2, out);
    } else if (const auto* children = std::get_if<std::vector<TablePtr>>(&field)) {
      out += "[";
      for (const TablePtr& c : *children) {
        out += fmt::format("\n{}    ", space);
        print_table(*c, indent + 4, out);
      }
      out += "]";
    }
    out += "\n";
  }
  if (table.tail) {
    out += fmt::format("{}  tail = {} {} {}\n", space, quoted(table.tail->bytes), table.tail->offset_delta,
                       table.tail->size_delta);
  }
  out += space + "}";
}

class TextParser {
 public:
  explicit TextParser(std::string_view text) : text_(text) {}

  TablePtr parse() {
    TablePtr root = parse_table();
    skip_space();
    if (at_ != text_.size()) fail("more text than one table");
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    size_t line = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n' ? 1 : 0;
    throw std::runtime_error(fmt::format("line {}: {}", line, what));
  }
  void skip_space() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        ++at_;
      } else {
        return;
      }
    }
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}'", c));
  }
  std::string word() {
    skip_space();
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  std::string_view("_.+-").find(text_[at_]) != std::string_view::npos)) {
      ++at_;
    }
    if (at_ == start) fail("expected a word");
    return std::string(text_.substr(start, at_ - start));
  }
  std::string string() {
    expect('"');
    std::string result;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_.substr(at_, 2) == "\\x" && at_ + 4 <= text_.size()) {
        result += static_cast<char>(std::stoi(std::string(text_.substr(at_ + 2, 2)), nullptr, 16));
        at_ += 4;
      } else {
        result += text_[at_++];
      }
    }
    expect('"');
    return result;
  }
  uint64_t scalar(char type) {
    const std::string text = word();
    try {
      if (type == 'f') return std::bit_cast<uint32_t>(std::strtof(text.c_str(), nullptr));
      if (type == 'Q') return std::stoull(text);
      return static_cast<uint64_t>(std::stoll(text));
    } catch (const std::exception&) {
      fail("'" + text + "' is not a number");
    }
  }
  std::string vector(char type) {
    constexpr uint64_t kMost = 1 << 26;
    expect('[');
    std::string raw;
    while (!accept(']')) {
      const uint64_t value = scalar(type);
      const uint64_t times = accept('*') ? scalar('Q') : 1;
      if (times > kMost) fail("too many elements");
      char part[8];
      std::memcpy(part, &value, 8);
      for (uint64_t i = 0; i < times; ++i) raw.append(part, static_cast<size_t>(scalar_size(type)));
    }
    return raw;
  }
  TablePtr parse_table() {
    const std::string name = word();
    const TableType* type = find_type(name);
    if (type == nullptr) fail("there is no table " + name);
    auto table = std::make_shared<Table>(*type);
    expect('{');
    while (!accept('}')) {
      const std::string field = word();
      expect('=');
      if (field == "tail") {
        Tail tail;
        tail.bytes = string();
        tail.offset_delta = scalar('Q');
        tail.size_delta = scalar('Q');
        table->tail = std::move(tail);
        continue;
      }
      const int slot = type->slot(field);
      if (slot < 0) fail(name + " has no field " + field);
      table->fields[static_cast<size_t>(slot)] = parse_field(type->fields[static_cast<size_t>(slot)]);
    }
    return table;
  }
  Field parse_field(const FieldType& type) {
    switch (type.kind) {
      case Kind::kScalar:
        return scalar(type.scalar);
      case Kind::kString:
        return string();
      case Kind::kVector:
        return vector(type.scalar);
      case Kind::kTable:
      case Kind::kUnion:
        return parse_table();
      case Kind::kTables: {
        std::vector<TablePtr> items;
        expect('[');
        while (!accept(']')) items.push_back(parse_table());
        return items;
      }
    }
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string print_text(const TablePtr& root) {
  std::string out;
  print_table(*root, 0, out);
  return out + "\n";
}

TablePtr parse_text(std::string_view text) { return TextParser(text).parse(); }

}  // namespace leadline::fuzz
