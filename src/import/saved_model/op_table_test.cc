// SPDX-License-Identifier: Apache-2.0
// Every row of the table of ops with wrong numbers of inputs, ranks, types and attributes: errors, and nothing else.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "core/error.h"
#include "import/saved_model/import.h"
#include "import/saved_model/op_rows.h"
#include "ir/sources.h"

namespace leadline::saved_model {
namespace {

constexpr std::string_view kAttrNames[] = {"padding",
                                           "strides",
                                           "dilations",
                                           "ksize",
                                           "axis",
                                           "num",
                                           "num_split",
                                           "keep_dims",
                                           "begin_mask",
                                           "end_mask",
                                           "ellipsis_mask",
                                           "new_axis_mask",
                                           "shrink_axis_mask",
                                           "equation",
                                           "transpose_a",
                                           "transpose_b",
                                           "adj_x",
                                           "adj_y",
                                           "data_format",
                                           "block_size",
                                           "squeeze_dims",
                                           "DstT",
                                           "dtype",
                                           "out_type",
                                           "type",
                                           "element_dtype",
                                           "boundaries",
                                           "explicit_paddings",
                                           "is_training",
                                           "epsilon",
                                           "batch_dims",
                                           "seq_dim",
                                           "batch_dim",
                                           "mode",
                                           "num_bits",
                                           "min",
                                           "max",
                                           "narrow_range",
                                           "depth_radius",
                                           "output_type",
                                           "index_type",
                                           "out_idx",
                                           "exclusive",
                                           "reverse",
                                           "align_corners",
                                           "half_pixel_centers",
                                           "output_shapes",
                                           "pad_to_max_output_size",
                                           "alpha",
                                           "seed",
                                           "resize_if_index_out_of_bounds",
                                           "output_dtype",
                                           "shape_type"};
constexpr std::string_view kTexts[] = {"SAME",      "VALID",   "EXPLICIT",   "NHWC",       "NCHW",  "",
                                       "ab,bc->ac", "ij->",    "...i->i...", "a,b,c->abc", "aa->a", ",->",
                                       "->",        "REFLECT", "SYMMETRIC",  "NDHWC"};

class Maker {
 public:
  explicit Maker(uint32_t seed) : random_(seed) {}

  FlatModel model(const OpRow& row) {
    FlatModel model;
    model.functions.resize(3);
    model.signatures.emplace_back("serving_default", 0);
    FlatFunction& main = model.functions[0];
    main.inputs = {{"a", type(), {false, dims()}}, {"b", type(), {false, dims()}}};
    FlatNode node;
    node.op = row.op;
    node.name = "scope/node";
    node.outputs = number(0, 3);
    const int count = number(0, 6);
    for (int i = 0; i < count; ++i) node.inputs.push_back(operand(model));
    const int attrs = number(0, 12);
    for (int i = 0; i < attrs; ++i) node.attrs.push_back(attr());
    const int functions = number(0, 3);
    for (int i = 0; i < functions; ++i) node.functions.push_back(number(1, 2));
    main.nodes.push_back(std::move(node));
    main.outputs = {{"y", TfType::kFloat, {true, {}}}};
    main.output_values = {{ValueRef::Kind::kNode, 0, number(0, 1)}};
    for (size_t f : {1U, 2U}) body(model.functions[f]);
    return model;
  }

 private:
  int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  void body(FlatFunction& function) {
    const int count = number(0, 5);
    for (int i = 0; i < count; ++i) function.inputs.push_back({"in", type(), {true, {}}});
    for (int i = 0; i < count; ++i) {
      function.outputs.push_back({"out", TfType::kFloat, {true, {}}});
      function.output_values.push_back({ValueRef::Kind::kInput, number(0, count - 1), 0});
    }
  }
  TfType type() {
    static constexpr TfType kTypes[] = {TfType::kFloat, TfType::kFloat, TfType::kFloat,  TfType::kInt32,
                                        TfType::kInt64, TfType::kBool,  TfType::kString, TfType::kComplex64,
                                        TfType::kUInt8, TfType::kHalf};
    return kTypes[number(0, 9)];
  }
  std::vector<int64_t> dims() {
    std::vector<int64_t> result;
    const int rank = number(0, 5);
    for (int i = 0; i < rank; ++i) result.push_back(number(-1, 4));
    return result;
  }
  int64_t whole() {
    static constexpr int64_t kOdd[] = {INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, -1, 0, 1, 2, 4096, 1 << 20};
    return number(0, 3) == 0 ? kOdd[number(0, 9)] : number(-2, 5);
  }
  ValueRef operand(FlatModel& model) {
    const int kind = number(0, 3);
    if (kind == 0) return {ValueRef::Kind::kInput, number(0, 1), 0};
    FlatConstant constant;
    constant.name = "const";
    int64_t count = 1;
    const int rank = number(0, 4);
    for (int i = 0; i < rank; ++i) {
      constant.shape.dims.push_back(number(0, 4));
      count *= constant.shape.dims.back();
    }
    std::vector<std::byte> bytes;
    const auto append = [&](const auto& value) {
      const auto raw = std::as_bytes(std::span(&value, 1));
      bytes.insert(bytes.end(), raw.begin(), raw.end());
    };
    constant.dtype = kind == 1 ? TfType::kFloat : number(0, 1) == 0 ? TfType::kInt32 : TfType::kInt64;
    for (int64_t i = 0; i < count; ++i) {
      if (kind == 1) append(static_cast<float>(number(-3, 3)));
      if (kind != 1 && constant.dtype == TfType::kInt32) append(static_cast<int32_t>(whole()));
      if (kind != 1 && constant.dtype == TfType::kInt64) append(whole());
    }
    constant.source = ir::owned_source(std::move(bytes));
    model.constants.push_back(std::move(constant));
    return {ValueRef::Kind::kConstant, static_cast<int>(model.constants.size()) - 1, 0};
  }
  Attr attr() {
    AttrValue value;
    value.kind = static_cast<AttrValue::Kind>(number(0, 10));
    value.b = number(0, 1) == 1;
    value.f = static_cast<float>(number(-3, 300));
    value.i = whole();
    value.s = kTexts[static_cast<size_t>(number(0, static_cast<int>(std::size(kTexts)) - 1))];
    auto parts = std::make_shared<AttrParts>();
    const int count = number(0, 6);
    for (int i = 0; i < count; ++i) {
      parts->ints.push_back(whole());
      parts->floats.push_back(static_cast<float>(i));
      parts->shapes.push_back({number(0, 2) == 0, dims()});
    }
    value.parts = parts;
    return {kAttrNames[static_cast<size_t>(number(0, static_cast<int>(std::size(kAttrNames)) - 1))], value};
  }

  std::mt19937 random_;
};

TEST(OpTable, WrongNodesGiveErrorsOnly) {
  const int rounds = std::getenv("LEADLINE_LONG") != nullptr ? 3000 : 60;
  int imported = 0;
  for (const OpRow& row : op_rows()) {
    Maker maker(static_cast<uint32_t>(std::hash<std::string_view>()(row.op)));
    for (int i = 0; i < rounds; ++i) {
      const FlatModel model = maker.model(row);
      try {
        import_flat_model(model);
        ++imported;
      } catch (const Error& error) {
        EXPECT_NE(error.code(), ErrorCode::kInternal) << row.op << ": " << error.what();
      }
    }
  }
  EXPECT_GT(imported, 0);
}

TEST(OpTable, HasEachOpOnce) {
  for (const OpRow& row : op_rows()) EXPECT_EQ(find_op(row.op), &row) << row.op;
}

}  // namespace
}  // namespace leadline::saved_model
