// SPDX-License-Identifier: Apache-2.0
// What a Flex node says of itself. Its custom options are a FlexBuffers vector of two texts: the name of an op of
// TensorFlow and the bytes of its NodeDef, a protocol buffer. The attributes in it are read once, with the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attributes.h"
#include "ir/op_id.h"
#include "leadline/types.h"

namespace leadline::ops {

struct OpDef;

/// The attributes of a NodeDef. Damaged options do not make a model unreadable, as a user may have registered an op
/// that reads them in another way: `problem` says what is wrong, and the rows of Flex ops fail with it.
struct NodeDefAttributes : ir::AttributeSet<NodeDefAttributes> {
  struct Entry {
    enum class Kind : uint8_t { kInt, kFloat, kText, kType, kInts, kFloats, kTexts, kShape, kOther };
    std::string name;
    Kind kind = Kind::kOther;
    int64_t integer = 0;  // also booleans; of a type, its number in TensorFlow
    float number = 0.0F;
    std::string text;
    std::vector<int64_t> integers;  // also lists of booleans and of types; the sizes of a shape
    std::vector<float> numbers;
    std::vector<std::string> texts;
    bool unknown_rank = false;
  };
  std::string op;  // TensorFlow's name
  std::string problem;
  std::vector<Entry> entries;

  void fields(ir::FieldVisitor& v);
  int64_t extra_bytes() const override;

  const Entry* find(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t otherwise) const;
  bool flag(std::string_view name, bool otherwise) const { return integer(name, otherwise ? 1 : 0) != 0; }
  float number(std::string_view name, float otherwise) const;
  std::string_view text(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> integers(std::string_view name) const;
  std::vector<float> numbers(std::string_view name) const;
  /// Nothing when it is absent or has a type that .tflite files do not know.
  std::optional<DType> dtype(std::string_view name) const;
};

/// Reads the custom options of a Flex node; never throws for what they hold.
NodeDefAttributes read_node_def(std::span<const std::byte> custom_options);

/// The attributes of a node of a custom op, as its row has them; `row` may be null.
std::shared_ptr<const ir::Attributes> custom_attributes(const OpDef* row, std::span<const std::byte> custom_options);

/// The type that a number of TensorFlow's DataType stands for.
std::optional<DType> type_of_tensorflow(int64_t number);

}  // namespace leadline::ops
