// SPDX-License-Identifier: Apache-2.0
// Trees of tables from and to the bytes of .tflite files.
#include <flatbuffers/flatbuffers.h>

#include <bit>
#include <cstring>
#include <map>
#include <stdexcept>

#include "tree.h"

namespace leadline::fuzz {
namespace {

using Kind = FieldType::Kind;
constexpr int kMaxDepth = 16;

class FileReader {
 public:
  explicit FileReader(std::span<const std::byte> file) : file_(file) {}

  TablePtr read_root() {
    const TableType* model = find_type("Model");
    return read_table(*model, follow(0), 0);
  }

 private:
  template <typename T>
  T read(uint64_t at) const {
    if (at > file_.size() || sizeof(T) > file_.size() - at) throw std::runtime_error("an offset leaves the file");
    T value;
    std::memcpy(&value, file_.data() + at, sizeof(T));
    return value;
  }
  uint64_t follow(uint64_t at) const { return at + read<uint32_t>(at); }
  std::string take(uint64_t at, uint64_t bytes) const {
    if (at > file_.size() || bytes > file_.size() - at) throw std::runtime_error("a vector leaves the file");
    return {reinterpret_cast<const char*>(file_.data()) + at, bytes};
  }

  uint64_t read_scalar(char scalar, uint64_t at) const {
    switch (scalar) {
      case 'b':
        return static_cast<uint64_t>(int64_t{read<int8_t>(at)});
      case 'B':
        return read<uint8_t>(at);
      case 'h':
        return static_cast<uint64_t>(int64_t{read<int16_t>(at)});
      case 'H':
        return read<uint16_t>(at);
      case 'i':
        return static_cast<uint64_t>(int64_t{read<int32_t>(at)});
      case 'q':
      case 'Q':
        return read<uint64_t>(at);
      default:
        return read<uint32_t>(at);
    }
  }

  TablePtr read_table(const TableType& type, uint64_t at, int depth) {
    if (depth > kMaxDepth) throw std::runtime_error("tables are nested too deep");
    auto table = std::make_shared<Table>(type);
    const uint64_t vtable = at - static_cast<uint64_t>(int64_t{read<int32_t>(at)});
    const uint16_t vtable_size = read<uint16_t>(vtable);
    for (size_t slot = 0; slot < type.fields.size(); ++slot) {
      const uint64_t entry = 4 + 2 * slot;
      const uint16_t place = entry + 2 <= vtable_size ? read<uint16_t>(vtable + entry) : 0;
      if (place == 0) continue;
      table->fields[slot] = read_field(*table, slot, at + place, depth);
    }
    if (type.name == "Buffer") take_tail(*table, "offset", "size");
    if (type.name == "Operator") take_tail(*table, "large_custom_options_offset", "large_custom_options_size");
    return table;
  }

  Field read_field(const Table& table, size_t slot, uint64_t at, int depth) {
    const FieldType& field = table.type->fields[slot];
    switch (field.kind) {
      case Kind::kScalar:
        return read_scalar(field.scalar, at);
      case Kind::kString:
      case Kind::kVector: {
        const uint64_t vector = follow(at);
        return take(vector + 4, uint64_t{read<uint32_t>(vector)} * static_cast<uint64_t>(scalar_size(field.scalar)));
      }
      case Kind::kTable:
        return read_table(*find_type(field.table), follow(at), depth + 1);
      case Kind::kUnion: {
        const auto* member = std::get_if<uint64_t>(&table.fields[slot - 1]);
        const TableType* type = member == nullptr ? nullptr : union_member(field, static_cast<int64_t>(*member));
        if (type == nullptr) return {};
        return read_table(*type, follow(at), depth + 1);
      }
      case Kind::kTables: {
        const uint64_t vector = follow(at);
        const uint64_t count = read<uint32_t>(vector);
        if (count > file_.size()) throw std::runtime_error("a vector leaves the file");
        std::vector<TablePtr> items;
        for (uint64_t i = 0; i < count; ++i) {
          items.push_back(read_table(*find_type(field.table), follow(vector + 4 + 4 * i), depth + 1));
        }
        return items;
      }
    }
    return {};
  }

  void take_tail(Table& table, std::string_view offset, std::string_view size) const {
    const auto at = static_cast<uint64_t>(table.integer(offset));
    if (at <= 1) return;
    table.tail = Tail{.bytes = take(at, static_cast<uint64_t>(table.integer(size)))};
  }

  std::span<const std::byte> file_;
};

class FileWriter {
 public:
  std::vector<std::byte> write(const TablePtr& root) {
    const auto at = write_table(root);
    builder_.Finish(flatbuffers::Offset<void>(at), "TFL3");
    const auto* data = reinterpret_cast<const std::byte*>(builder_.GetBufferPointer());
    std::vector<std::byte> file(data, data + builder_.GetSize());
    for (const auto& [table, position] : tails_) append_tail(file, *table, position);
    return file;
  }

 private:
  flatbuffers::uoffset_t write_table(const TablePtr& table) {
    const auto found = written_.find(table.get());
    if (found != written_.end()) return found->second;
    const std::vector<FieldType>& types = table->type->fields;
    std::vector<flatbuffers::uoffset_t> offsets(types.size());
    for (size_t slot = 0; slot < types.size(); ++slot) offsets[slot] = write_child(types[slot], table->fields[slot]);
    const auto start = builder_.StartTable();
    for (size_t slot = 0; slot < types.size(); ++slot) {
      const auto place = static_cast<flatbuffers::voffset_t>(4 + 2 * slot);
      if (offsets[slot] != 0) builder_.AddOffset(place, flatbuffers::Offset<void>(offsets[slot]));
      const auto* scalar = std::get_if<uint64_t>(&table->fields[slot]);
      if (types[slot].kind == Kind::kScalar && scalar != nullptr) add_scalar(types[slot].scalar, place, *scalar);
    }
    const auto at = builder_.EndTable(start);
    written_[table.get()] = at;
    if (table->tail) tails_.emplace_back(table.get(), at);
    return at;
  }

  void add_scalar(char scalar, flatbuffers::voffset_t place, uint64_t value) {
    switch (scalar_size(scalar)) {
      case 1:
        return builder_.AddElement(place, static_cast<uint8_t>(value));
      case 2:
        return builder_.AddElement(place, static_cast<uint16_t>(value));
      case 4:
        return builder_.AddElement(place, static_cast<uint32_t>(value));
      default:
        return builder_.AddElement(place, value);
    }
  }

  flatbuffers::uoffset_t write_child(const FieldType& type, const Field& field) {
    if (const auto* bytes = std::get_if<std::string>(&field)) {
      if (type.kind == Kind::kString) return builder_.CreateString(*bytes).o;
      if (type.kind != Kind::kVector) return 0;
      const auto size = static_cast<size_t>(scalar_size(type.scalar));
      const size_t count = bytes->size() / size;
      if (type.align > 0) builder_.ForceVectorAlignment(count, size, static_cast<size_t>(type.align));
      builder_.StartVector(count, size);
      builder_.PushBytes(reinterpret_cast<const uint8_t*>(bytes->data()), count * size);
      return builder_.EndVector(count);
    }
    if (const auto* table = std::get_if<TablePtr>(&field)) return *table == nullptr ? 0 : write_table(*table);
    if (const auto* tables = std::get_if<std::vector<TablePtr>>(&field)) {
      std::vector<flatbuffers::Offset<void>> items;
      for (const TablePtr& table : *tables) items.emplace_back(write_table(table));
      return builder_.CreateVector(items).o;
    }
    return 0;
  }

  /// `position` counts from the end of the flatbuffer, as the builder does.
  void append_tail(std::vector<std::byte>& file, const Table& table, flatbuffers::uoffset_t position) {
    const bool buffer = table.type->name == "Buffer";
    const size_t size_of_flatbuffer = builder_.GetSize();
    while (file.size() % 16 != 0) file.emplace_back();
    const uint64_t offset = file.size() + table.tail->offset_delta;
    const uint64_t size = table.tail->bytes.size() + table.tail->size_delta;
    const auto* bytes = reinterpret_cast<const std::byte*>(table.tail->bytes.data());
    file.insert(file.end(), bytes, bytes + table.tail->bytes.size());
    const auto patch = [&](std::string_view field, uint64_t value) {
      const size_t at = size_of_flatbuffer - position;
      int32_t back = 0;
      std::memcpy(&back, file.data() + at, sizeof(back));
      const size_t entry =
          at - static_cast<size_t>(int64_t{back}) + 4 + 2 * static_cast<size_t>(table.type->slot(field));
      uint16_t place = 0;
      if (table.has(field)) std::memcpy(&place, file.data() + entry, sizeof(place));
      if (place != 0) std::memcpy(file.data() + at + place, &value, sizeof(value));
    };
    patch(buffer ? "offset" : "large_custom_options_offset", offset);
    patch(buffer ? "size" : "large_custom_options_size", size);
  }

  flatbuffers::FlatBufferBuilder builder_;
  std::map<const Table*, flatbuffers::uoffset_t> written_;
  std::vector<std::pair<const Table*, flatbuffers::uoffset_t>> tails_;
};

}  // namespace

TablePtr read_file(std::span<const std::byte> file) { return FileReader(file).read_root(); }

std::vector<std::byte> write_file(const TablePtr& root) { return FileWriter().write(root); }

}  // namespace leadline::fuzz
