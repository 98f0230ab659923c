// SPDX-License-Identifier: Apache-2.0
// The ops of the format that cannot run yet. They are known by name, arity and options, so that models with them can be
// inspected and written back; an op leaves this list when a family file registers it with a kernel.
#include <algorithm>
#include <map>
#include <variant>

#include "ops/families.h"

namespace leadline::ops {
namespace {

/// Attributes described by a text such as "stride_d:i=1 boundaries:F": field names with a letter for the type and
/// the format's default where it is not zero (one digit).
///   b one byte   i int32   u uint32   l int64   f float   s string   g subgraph index
///   B bytes   I int32s   U uint32s   L int64s   F floats   G subgraph indices
class SlotAttributes final : public ir::Attributes {
 public:
  explicit SlotAttributes(std::string_view spec) {
    while (!spec.empty()) {
      const std::string_view word = spec.substr(0, spec.find(' '));
      const size_t colon = word.find(':');
      const int fallback = word.size() > colon + 3 ? word[colon + 3] - '0' : 0;
      slots_.push_back({std::string(word.substr(0, colon)), word[colon + 1], initial(word[colon + 1], fallback)});
      spec.remove_prefix(std::min(spec.size(), word.size() + 1));
    }
  }

  void visit(ir::FieldVisitor& visitor) override {
    for (Slot& slot : slots_) {
      const char* name = slot.name.c_str();
      if (slot.kind == 'g') {
        visitor.subgraph(name, std::get<int32_t>(slot.value));
      } else if (slot.kind == 'G') {
        visitor.subgraphs(name, std::get<std::vector<int32_t>>(slot.value));
      } else {
        std::visit([&](auto& value) { visitor.field(name, value); }, slot.value);
      }
    }
  }
  std::unique_ptr<ir::Attributes> clone() const override { return std::make_unique<SlotAttributes>(*this); }

 private:
  using SlotValue = std::variant<int8_t, int32_t, uint32_t, int64_t, float, std::string, std::vector<uint8_t>,
                                 std::vector<int32_t>, std::vector<uint32_t>, std::vector<int64_t>, std::vector<float>>;
  struct Slot {
    std::string name;
    char kind;
    SlotValue value;
  };

  static SlotValue initial(char kind, int fallback) {
    switch (kind) {
      case 'b':
        return static_cast<int8_t>(fallback);
      case 'u':
        return uint32_t{0};
      case 'l':
        return int64_t{0};
      case 'f':
        return 0.0F;
      case 's':
        return std::string();
      case 'B':
        return std::vector<uint8_t>();
      case 'I':
      case 'G':
        return std::vector<int32_t>();
      case 'U':
        return std::vector<uint32_t>();
      case 'L':
        return std::vector<int64_t>();
      case 'F':
        return std::vector<float>();
      default:
        return int32_t{fallback};
    }
  }

  std::vector<Slot> slots_;
};

struct NamedRow {
  std::string_view name;
  ir::OpCode code;
  int max_version;
  OptionsTable options;
  std::string_view slots;
};

constexpr NamedRow kRows[] = {
    {"CONCAT_EMBEDDINGS", 29, 1, {1, 3}, "num_channels:i num_columns_per_channel:I embedding_dim_per_channel:I"},
    {"CALL", 31, 1, {1, 16}, "subgraph:g"},
    {"DELEGATE", 51, 1, {}, ""},
    {"PLACEHOLDER_FOR_GREATER_OP_CODES", 127, 1, {}, ""},
    {"STABLEHLO_LOGISTIC", 162, 1, {}, ""},
    {"STABLEHLO_DIVIDE", 164, 1, {}, ""},
    {"STABLEHLO_RESHAPE", 167, 1, {}, ""},
    {"STABLEHLO_CLAMP", 168, 1, {}, ""},
    {"STABLEHLO_CONCATENATE", 169, 1, {2, 1}, "dimension:l"},
    {"STABLEHLO_BROADCAST_IN_DIM", 170, 1, {2, 2}, "broadcast_dimensions:L"},
    {"STABLEHLO_CONVOLUTION",
     171,
     1,
     {2, 4},
     "window_strides:L padding:L lhs_dilation:L rhs_dilation:L window_reversal:B input_batch_dimension:l "
     "input_feature_dimension:l input_spatial_dimensions:L kernel_input_feature_dimension:l "
     "kernel_output_feature_dimension:l kernel_spatial_dimensions:L output_batch_dimension:l "
     "output_feature_dimension:l output_spatial_dimensions:L feature_group_count:l batch_group_count:l "
     "precision_config:U"},
    {"STABLEHLO_SLICE", 172, 1, {2, 3}, "start_indices:L limit_indices:L strides:L"},
    {"STABLEHLO_CUSTOM_CALL",
     173,
     1,
     {2, 5},
     "call_target_name:s has_side_effect:b backend_config:s api_version:i called_computations:G custom_attributes:B"},
    {"STABLEHLO_REDUCE", 174, 1, {2, 6}, "dimensions:L body_subgraph_index:g"},
    {"STABLEHLO_ABS", 175, 1, {}, ""},
    {"STABLEHLO_COSINE", 177, 1, {}, ""},
    {"STABLEHLO_EXPONENTIAL", 178, 1, {}, ""},
    {"STABLEHLO_FLOOR", 179, 1, {}, ""},
    {"STABLEHLO_LOG", 180, 1, {}, ""},
    {"STABLEHLO_NEGATE", 182, 1, {}, ""},
    {"STABLEHLO_OR", 183, 1, {}, ""},
    {"STABLEHLO_POWER", 184, 1, {}, ""},
    {"STABLEHLO_REMAINDER", 185, 1, {}, ""},
    {"STABLEHLO_RSQRT", 186, 1, {}, ""},
    {"STABLEHLO_SELECT", 187, 1, {}, ""},
    {"STABLEHLO_SUBTRACT", 188, 1, {}, ""},
    {"STABLEHLO_TANH", 189, 1, {}, ""},
    {"STABLEHLO_COMPARE", 191, 1, {2, 8}, "comparison_direction:u compare_type:u"},
    {"STABLEHLO_CONVERT", 192, 1, {}, ""},
    {"STABLEHLO_DYNAMIC_SLICE", 193, 1, {2, 9}, "slice_sizes:L"},
    {"STABLEHLO_DYNAMIC_UPDATE_SLICE", 194, 1, {}, ""},
    {"STABLEHLO_IOTA", 196, 1, {2, 11}, "iota_dimension:l"},
    {"STABLEHLO_DOT_GENERAL",
     197,
     1,
     {2, 12},
     "lhs_batching_dimensions:L rhs_batching_dimensions:L lhs_contracting_dimensions:L rhs_contracting_dimensions:L "
     "precision_config:U"},
    {"STABLEHLO_SORT", 199, 1, {2, 14}, "dimension:l is_stable:b comparator_subgraph_index:g"},
    {"STABLEHLO_WHILE", 200, 1, {2, 15}, "cond_subgraph_index:g body_subgraph_index:g"},
    {"STABLEHLO_TRANSPOSE", 202, 1, {2, 17}, "permutation:L"},
    {"STABLEHLO_CBRT", 208, 1, {}, ""},
};

/// Why the op does not run, where that is no gap of Leadline's.
std::string_view reason_of(std::string_view name) {
  if (name == "CONCAT_EMBEDDINGS" || name == "CALL") return "never executable in LiteRT, which has no kernel for it";
  if (name == "DELEGATE") return "stands for nodes that a delegate took over; LiteRT has no kernel for it";
  if (name == "PLACEHOLDER_FOR_GREATER_OP_CODES") return "no op: marks codes above 127 in an old field of the format";
  if (name.starts_with("STABLEHLO_")) return "StableHLO op that LiteRT does not execute either";
  return {};
}

}  // namespace

std::unique_ptr<ir::Attributes> new_attributes(const OpDef& op) {
  if (op.make_attributes != nullptr) return op.make_attributes();
  if (op.slots.empty()) return std::make_unique<ir::NoAttributes>();
  return std::make_unique<SlotAttributes>(op.slots);
}

void register_named_only(Registry& registry) {
  for (const NamedRow& row : kRows) {
    registry.add({.name = row.name,
                  .code = row.code,
                  .max_version = row.max_version,
                  .max_inputs = -1,
                  .min_outputs = 0,
                  .max_outputs = -1,
                  .options = row.options,
                  .slots = row.slots,
                  .reason = reason_of(row.name)});
  }
}

}  // namespace leadline::ops
