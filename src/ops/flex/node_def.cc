// SPDX-License-Identifier: Apache-2.0
#include "ops/flex/node_def.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "io/flexbuffer_reader.h"
#include "ops/op.h"

namespace leadline::ops {
namespace {

using Bytes = std::span<const std::byte>;
using Entry = NodeDefAttributes::Entry;
using Kind = Entry::Kind;

// More than any op of TensorFlow has; what is copied of a hostile file stays small.
constexpr size_t kMostEntries = 64;
constexpr size_t kMostElements = 4096;
constexpr size_t kLongestText = 1 << 16;

/// Thrown and caught in this file: why a message cannot be read.
struct Damage {
  const char* why;
};

/// Steps through the fields of a protocol buffer in memory.
class Fields {
 public:
  explicit Fields(Bytes bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool next() {
    if (at_ == end_) return false;
    const uint64_t tag = varint();
    number = static_cast<uint32_t>(tag >> 3);
    wire = static_cast<int>(tag & 7);
    switch (wire) {
      case 0:
        value = varint();
        break;
      case 1:
        payload = take(8);
        break;
      case 2:
        payload = take(varint());
        break;
      case 5:
        payload = take(4);
        break;
      default:
        throw Damage{"it has a field of a kind that protocol buffers do not have"};
    }
    return true;
  }

  Bytes bytes() const {
    if (wire != 2) throw Damage{"a field has another kind than its number says"};
    return payload;
  }
  std::string text() const {
    const Bytes from = bytes();
    if (from.size() > kLongestText) throw Damage{"a text in it is longer than 65536 bytes"};
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  int64_t integer() const {
    if (wire != 0) throw Damage{"a field has another kind than its number says"};
    return static_cast<int64_t>(value);
  }
  float float32() const {
    if (wire != 5) throw Damage{"a field has another kind than its number says"};
    return load_float(payload.data());
  }
  void append_integers(std::vector<int64_t>& to) const {
    if (wire == 0) return push(to, static_cast<int64_t>(value));
    Fields packed(bytes());
    while (packed.at_ != packed.end_) push(to, static_cast<int64_t>(packed.varint()));
  }
  void append_floats(std::vector<float>& to) const {
    if (wire == 5) return push(to, load_float(payload.data()));
    const Bytes packed = bytes();
    if (packed.size() % 4 != 0) throw Damage{"a list of numbers in it is cut off"};
    for (size_t i = 0; i < packed.size(); i += 4) push(to, load_float(packed.data() + i));
  }
  template <typename T>
  static void push(std::vector<T>& to, T item) {
    if (to.size() == kMostElements) throw Damage{"a list in it has more than 4096 elements"};
    to.push_back(std::move(item));
  }

  uint32_t number = 0;
  int wire = 0;
  uint64_t value = 0;
  Bytes payload;

 private:
  static float load_float(const std::byte* from) {
    float result = 0;
    std::memcpy(&result, from, sizeof(result));
    return result;
  }
  uint64_t varint() {
    uint64_t result = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) throw Damage{"it is cut off"};
      const auto byte = std::to_integer<uint64_t>(*at_++);
      result |= (byte & 0x7F) << shift;
      if (byte < 0x80) return result;
    }
    throw Damage{"a number in it has more than 64 bits"};
  }
  Bytes take(uint64_t size) {
    if (size > static_cast<uint64_t>(end_ - at_)) throw Damage{"it is cut off"};
    const Bytes taken(at_, static_cast<size_t>(size));
    at_ += size;
    return taken;
  }

  const std::byte* at_;
  const std::byte* end_;
};

/// TensorShapeProto.
void read_shape(Bytes message, Entry& entry) {
  Fields shape(message);
  while (shape.next()) {
    if (shape.number == 3) entry.unknown_rank = shape.integer() != 0;
    if (shape.number != 2) continue;
    int64_t size = 0;
    Fields dimension(shape.bytes());
    while (dimension.next()) {
      if (dimension.number == 1) size = dimension.integer();
    }
    Fields::push(entry.integers, size);
  }
}

/// AttrValue.ListValue: of one kind in practice.
void read_list(Bytes message, Entry& entry) {
  entry.kind = Kind::kInts;  // also of an empty list
  Fields list(message);
  while (list.next()) {
    switch (list.number) {
      case 2:
        entry.kind = Kind::kTexts;
        Fields::push(entry.texts, list.text());
        break;
      case 3:
      case 5:
      case 6:
        list.append_integers(entry.integers);
        break;
      case 4:
        entry.kind = Kind::kFloats;
        list.append_floats(entry.numbers);
        break;
      default:
        entry.kind = Kind::kOther;
        break;
    }
  }
}

/// AttrValue.
void read_value(Bytes message, Entry& entry) {
  Fields value(message);
  while (value.next()) {
    switch (value.number) {
      case 1:
        read_list(value.bytes(), entry);
        break;
      case 2:
        entry.kind = Kind::kText;
        entry.text = value.text();
        break;
      case 3:
      case 5:
        entry.kind = Kind::kInt;
        entry.integer = value.integer();
        break;
      case 4:
        entry.kind = Kind::kFloat;
        entry.number = value.float32();
        break;
      case 6:
        entry.kind = Kind::kType;
        entry.integer = value.integer();
        break;
      case 7:
        entry.kind = Kind::kShape;
        read_shape(value.bytes(), entry);
        break;
      default:
        break;
    }
  }
}

void read_entry(Bytes message, NodeDefAttributes& into) {
  Entry entry;
  Bytes value;
  Fields pair(message);
  while (pair.next()) {
    if (pair.number == 1) entry.name = pair.text();
    if (pair.number == 2) value = pair.bytes();
  }
  if (entry.name.starts_with('_')) return;  // notes of TensorFlow's own passes
  read_value(value, entry);
  if (into.entries.size() == kMostEntries) throw Damage{"it has more than 64 attributes"};
  into.entries.push_back(std::move(entry));
}

/// The second text of the vector, or nothing.
std::optional<Bytes> node_def_bytes(Bytes options) {
  using namespace flexbuffer;
  const Reader reader(options);
  if (options.size() < 3) return std::nullopt;
  const auto root_width = std::to_integer<size_t>(options[options.size() - 1]);
  const auto root_type = std::to_integer<uint64_t>(options[options.size() - 2]);
  if (!std::has_single_bit(root_width) || root_width > 8 || root_width > options.size() - 2) return std::nullopt;
  const auto kind = static_cast<uint8_t>(root_type >> 2);
  if (kind != kFlexVector && kind != kFlexVectorString) return std::nullopt;
  const auto first = reader.target_at(options.size() - 2 - root_width, root_width);
  const size_t width = width_of(root_type);
  const auto list = first ? vector_at(reader, *first, width) : std::nullopt;
  if (!list || list->count != 2) return std::nullopt;
  const auto text = reader.target_at(list->first + width, width);
  size_t text_width = width;
  if (kind == kFlexVector) {  // the types follow the elements
    const auto type = reader.unsigned_at(list->first + 2 * width + 1, 1);
    if (!type || static_cast<uint8_t>(*type >> 2) != kFlexString) return std::nullopt;
    text_width = width_of(*type);
  }
  if (!text || *text < text_width) return std::nullopt;
  // The number of its bytes stands before it, as wide as the slot's type says.
  const auto size = reader.unsigned_at(*text - text_width, text_width);
  if (!size || *size > options.size() - std::min(*text, options.size())) return std::nullopt;
  return options.subspan(*text, static_cast<size_t>(*size));
}

}  // namespace

NodeDefAttributes read_node_def(std::span<const std::byte> custom_options) {
  NodeDefAttributes result;
  const auto bytes = node_def_bytes(custom_options);
  if (!bytes) {
    result.problem =
        "its custom options are not a FlexBuffers vector of the name of an op of TensorFlow and its NodeDef";
    return result;
  }
  try {
    Fields node(*bytes);
    while (node.next()) {
      if (node.number == 2) result.op = node.text();
      if (node.number == 5) read_entry(node.bytes(), result);
    }
  } catch (const Damage& damage) {
    result.entries.clear();
    result.problem = fmt::format("the NodeDef in its custom options is damaged: {}", damage.why);
  }
  return result;
}

std::shared_ptr<const ir::Attributes> custom_attributes(const OpDef* row, std::span<const std::byte> custom_options) {
  if (row == nullptr) return std::make_shared<ir::NoAttributes>();
  std::unique_ptr<ir::Attributes> attributes = new_attributes(*row);
  if (attributes->type() == NodeDefAttributes::tag()) {
    ir::attributes_as<NodeDefAttributes>(*attributes) = read_node_def(custom_options);
  }
  return attributes;
}

void NodeDefAttributes::fields(ir::FieldVisitor& v) {
  for (Entry& entry : entries) {
    const char* name = entry.name.c_str();
    switch (entry.kind) {
      case Kind::kInt:
        v.field(name, entry.integer);
        break;
      case Kind::kFloat:
        v.field(name, entry.number);
        break;
      case Kind::kText:
        v.field(name, entry.text);
        break;
      case Kind::kType: {
        const auto known = type_of_tensorflow(entry.integer);
        std::string type = known ? dtype_name(*known) : fmt::format("type {} of TensorFlow", entry.integer);
        v.field(name, type);
        break;
      }
      case Kind::kInts:
      case Kind::kShape:
        v.field(name, entry.integers);
        break;
      case Kind::kFloats:
        v.field(name, entry.numbers);
        break;
      case Kind::kTexts:
      case Kind::kOther:
        break;
    }
  }
}

int64_t NodeDefAttributes::extra_bytes() const {
  size_t bytes = op.size() + problem.size() + entries.capacity() * sizeof(Entry);
  for (const Entry& entry : entries) {
    bytes += entry.name.size() + entry.text.size() + entry.integers.size() * sizeof(int64_t) +
             entry.numbers.size() * sizeof(float);
    for (const std::string& text : entry.texts) bytes += sizeof(text) + text.size();
  }
  return static_cast<int64_t>(bytes);
}

const Entry* NodeDefAttributes::find(std::string_view name) const {
  for (const Entry& entry : entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

int64_t NodeDefAttributes::integer(std::string_view name, int64_t otherwise) const {
  const Entry* entry = find(name);
  return entry != nullptr && entry->kind == Kind::kInt ? entry->integer : otherwise;
}

float NodeDefAttributes::number(std::string_view name, float otherwise) const {
  const Entry* entry = find(name);
  return entry != nullptr && entry->kind == Kind::kFloat ? entry->number : otherwise;
}

std::string_view NodeDefAttributes::text(std::string_view name, std::string_view otherwise) const {
  const Entry* entry = find(name);
  return entry != nullptr && entry->kind == Kind::kText ? std::string_view(entry->text) : otherwise;
}

std::vector<int64_t> NodeDefAttributes::integers(std::string_view name) const {
  const Entry* entry = find(name);
  return entry != nullptr ? entry->integers : std::vector<int64_t>();
}

std::vector<float> NodeDefAttributes::numbers(std::string_view name) const {
  const Entry* entry = find(name);
  return entry != nullptr ? entry->numbers : std::vector<float>();
}

std::optional<DType> NodeDefAttributes::dtype(std::string_view name) const {
  const Entry* entry = find(name);
  return entry != nullptr && entry->kind == Kind::kType ? type_of_tensorflow(entry->integer) : std::nullopt;
}

std::optional<DType> type_of_tensorflow(int64_t number) {
  switch (number) {
    case 1:
      return DType::kFloat32;
    case 2:
      return DType::kFloat64;
    case 3:
      return DType::kInt32;
    case 4:
      return DType::kUInt8;
    case 5:
      return DType::kInt16;
    case 6:
      return DType::kInt8;
    case 7:
      return DType::kString;
    case 8:
      return DType::kComplex64;
    case 9:
      return DType::kInt64;
    case 10:
      return DType::kBool;
    case 14:
      return DType::kBFloat16;
    case 17:
      return DType::kUInt16;
    case 18:
      return DType::kComplex128;
    case 19:
      return DType::kFloat16;
    case 20:
      return DType::kResource;
    case 21:
      return DType::kVariant;
    case 22:
      return DType::kUInt32;
    case 23:
      return DType::kUInt64;
    default:
      return std::nullopt;
  }
}

}  // namespace leadline::ops
