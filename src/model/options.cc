// SPDX-License-Identifier: Apache-2.0
#include "model/options.h"

#include <cstring>
#include <functional>
#include <vector>

#include "core/error.h"

namespace leadline::model {
namespace {

using flatbuffers::voffset_t;

/// A table keeps slot n's place at byte 4 + 2n of its vtable.
constexpr voffset_t vtable_offset(int slot) { return static_cast<voffset_t>(4 + 2 * slot); }

class Reader final : public ir::FieldVisitor {
 public:
  Reader(const flatbuffers::Table& table, flatbuffers::Verifier& verifier) : table_(table), verifier_(verifier) {}

  void field(const char* name, bool& value) override {
    uint8_t raw = value ? 1 : 0;
    scalar(name, raw);
    value = raw != 0;
  }
  void field(const char* name, int8_t& value) override { scalar(name, value); }
  void field(const char* name, int32_t& value) override { scalar(name, value); }
  void field(const char* name, uint32_t& value) override { scalar(name, value); }
  void field(const char* name, int64_t& value) override { scalar(name, value); }
  void field(const char* name, float& value) override { scalar(name, value); }
  void field(const char* name, std::string& value) override {
    const voffset_t slot = next();
    require(table_.VerifyOffset(verifier_, slot), ErrorCode::kInvalidModel, "option '{}' is damaged", name);
    const auto* text = table_.GetPointer<const flatbuffers::String*>(slot);
    if (text == nullptr) return;
    require(verifier_.VerifyString(text), ErrorCode::kInvalidModel, "option '{}' is damaged", name);
    value = text->str();
    copied_ += static_cast<int64_t>(value.size());
  }
  void field(const char* name, std::vector<uint8_t>& value) override { list(name, value); }
  void field(const char* name, std::vector<int32_t>& value) override { list(name, value); }
  void field(const char* name, std::vector<uint32_t>& value) override { list(name, value); }
  void field(const char* name, std::vector<int64_t>& value) override { list(name, value); }
  void field(const char* name, std::vector<float>& value) override { list(name, value); }
  void skip() override { ++slot_; }
  int64_t copied() const { return copied_; }

 private:
  voffset_t next() { return vtable_offset(slot_++); }

  template <typename T>
  void scalar(const char* name, T& value) {
    const voffset_t slot = next();
    require(table_.VerifyField<T>(verifier_, slot, sizeof(T)), ErrorCode::kInvalidModel, "option '{}' is damaged",
            name);
    value = table_.GetField<T>(slot, value);
  }
  template <typename T>
  void list(const char* name, std::vector<T>& value) {
    const voffset_t slot = next();
    require(table_.VerifyOffset(verifier_, slot), ErrorCode::kInvalidModel, "option '{}' is damaged", name);
    const auto* items = table_.GetPointer<const flatbuffers::Vector<T>*>(slot);
    if (items == nullptr) return;
    require(verifier_.VerifyVector(items), ErrorCode::kInvalidModel, "option '{}' is damaged", name);
    value.resize(items->size());
    // Elements of 8 bytes may lie at any multiple of 4.
    if (!value.empty()) std::memcpy(value.data(), items->data(), value.size() * sizeof(T));
    copied_ += static_cast<int64_t>(value.size() * sizeof(T));
  }

  const flatbuffers::Table& table_;
  flatbuffers::Verifier& verifier_;
  int slot_ = 0;
  int64_t copied_ = 0;
};

/// Strings and vectors must be written before the table that refers to them, so the table's fields are kept as actions.
class Writer final : public ir::FieldVisitor {
 public:
  explicit Writer(flatbuffers::FlatBufferBuilder& builder) : builder_(builder) {}

  void field(const char*, bool& value) override { scalar<uint8_t>(value ? 1 : 0); }
  void field(const char*, int8_t& value) override { scalar(value); }
  void field(const char*, int32_t& value) override { scalar(value); }
  void field(const char*, uint32_t& value) override { scalar(value); }
  void field(const char*, int64_t& value) override { scalar(value); }
  void field(const char*, float& value) override { scalar(value); }
  void field(const char*, std::string& value) override { offset(builder_.CreateString(value).o); }
  void field(const char*, std::vector<uint8_t>& value) override { list(value); }
  void field(const char*, std::vector<int32_t>& value) override { list(value); }
  void field(const char*, std::vector<uint32_t>& value) override { list(value); }
  void field(const char*, std::vector<int64_t>& value) override { list(value); }
  void field(const char*, std::vector<float>& value) override { list(value); }
  void skip() override { ++slot_; }

  flatbuffers::uoffset_t finish() {
    const auto start = builder_.StartTable();
    for (const auto& action : actions_) action();
    return builder_.EndTable(start);
  }

 private:
  template <typename T>
  void scalar(T value) {
    const voffset_t slot = vtable_offset(slot_++);
    actions_.emplace_back([this, slot, value] { builder_.AddElement<T>(slot, value); });
  }
  template <typename T>
  void list(const std::vector<T>& value) {
    offset(builder_.CreateVector(value).o);
  }
  void offset(flatbuffers::uoffset_t where) {
    const voffset_t slot = vtable_offset(slot_++);
    actions_.emplace_back([this, slot, where] { builder_.AddOffset(slot, flatbuffers::Offset<void>(where)); });
  }

  flatbuffers::FlatBufferBuilder& builder_;
  std::vector<std::function<void()>> actions_;
  int slot_ = 0;
};

}  // namespace

int64_t read_options(const flatbuffers::Table* table, flatbuffers::Verifier& verifier, ir::Attributes& attributes) {
  if (table == nullptr) return 0;
  Reader reader(*table, verifier);
  attributes.visit(reader);
  return reader.copied();
}

flatbuffers::uoffset_t write_options(ir::Attributes& attributes, flatbuffers::FlatBufferBuilder& builder) {
  Writer writer(builder);
  attributes.visit(writer);
  return writer.finish();
}

}  // namespace leadline::model
