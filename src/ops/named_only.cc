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
  const void* type() const override { return nullptr; }  // no struct has these fields

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
  ir::OpId id;
  OptionsTable options = {};
  std::string_view slots = {};
};

constexpr NamedRow kRows[] = {
    {.id = op::kConcatEmbeddings,
     .options = builtin_options(3),
     .slots = "num_channels:i num_columns_per_channel:I embedding_dim_per_channel:I"},
    {.id = op::kCall, .options = builtin_options(16), .slots = "subgraph:g"},
    {.id = op::kDelegate},
    {.id = op::kPlaceholderForGreaterOpCodes},
    {.id = op::kStablehloLogistic},
    {.id = op::kStablehloDivide},
    {.id = op::kStablehloReshape},
    {.id = op::kStablehloClamp},
    {.id = op::kStablehloConcatenate, .options = builtin_options_2(1), .slots = "dimension:l"},
    {.id = op::kStablehloBroadcastInDim, .options = builtin_options_2(2), .slots = "broadcast_dimensions:L"},
    {.id = op::kStablehloConvolution,
     .options = builtin_options_2(4),
     .slots = "window_strides:L padding:L lhs_dilation:L rhs_dilation:L window_reversal:B input_batch_dimension:l "
              "input_feature_dimension:l input_spatial_dimensions:L kernel_input_feature_dimension:l "
              "kernel_output_feature_dimension:l kernel_spatial_dimensions:L output_batch_dimension:l "
              "output_feature_dimension:l output_spatial_dimensions:L feature_group_count:l batch_group_count:l "
              "precision_config:U"},
    {.id = op::kStablehloSlice, .options = builtin_options_2(3), .slots = "start_indices:L limit_indices:L strides:L"},
    {.id = op::kStablehloCustomCall,
     .options = builtin_options_2(5),
     .slots = "call_target_name:s has_side_effect:b backend_config:s api_version:i called_computations:G "
              "custom_attributes:B"},
    {.id = op::kStablehloReduce, .options = builtin_options_2(6), .slots = "dimensions:L body_subgraph_index:g"},
    {.id = op::kStablehloAbs},
    {.id = op::kStablehloCosine},
    {.id = op::kStablehloExponential},
    {.id = op::kStablehloFloor},
    {.id = op::kStablehloLog},
    {.id = op::kStablehloNegate},
    {.id = op::kStablehloOr},
    {.id = op::kStablehloPower},
    {.id = op::kStablehloRemainder},
    {.id = op::kStablehloRsqrt},
    {.id = op::kStablehloSelect},
    {.id = op::kStablehloSubtract},
    {.id = op::kStablehloTanh},
    {.id = op::kStablehloCompare, .options = builtin_options_2(8), .slots = "comparison_direction:u compare_type:u"},
    {.id = op::kStablehloConvert},
    {.id = op::kStablehloDynamicSlice, .options = builtin_options_2(9), .slots = "slice_sizes:L"},
    {.id = op::kStablehloDynamicUpdateSlice},
    {.id = op::kStablehloIota, .options = builtin_options_2(11), .slots = "iota_dimension:l"},
    {.id = op::kStablehloDotGeneral,
     .options = builtin_options_2(12),
     .slots = "lhs_batching_dimensions:L rhs_batching_dimensions:L lhs_contracting_dimensions:L "
              "rhs_contracting_dimensions:L "
              "precision_config:U"},
    {.id = op::kStablehloSort,
     .options = builtin_options_2(14),
     .slots = "dimension:l is_stable:b comparator_subgraph_index:g"},
    {.id = op::kStablehloWhile,
     .options = builtin_options_2(15),
     .slots = "cond_subgraph_index:g body_subgraph_index:g"},
    {.id = op::kStablehloTranspose, .options = builtin_options_2(17), .slots = "permutation:L"},
    {.id = op::kStablehloCbrt},
};

/// Why the op does not run, where that is not a gap of Leadline's.
std::string_view reason_of(const ir::OpId& op) {
  if (is_one_of(op, {op::kConcatEmbeddings, op::kCall}))
    return "never executable in LiteRT, which has no kernel for it";
  if (op == op::kDelegate) return "stands for nodes that a delegate took over; LiteRT has no kernel for it";
  if (op == op::kPlaceholderForGreaterOpCodes) return "no op: marks codes above 127 in an old field of the format";
  return "StableHLO op that LiteRT does not execute either";
}

}  // namespace

std::unique_ptr<ir::Attributes> new_attributes(const OpDef& op) {
  if (op.make_attributes != nullptr) return op.make_attributes();
  if (op.slots.empty()) return std::make_unique<ir::NoAttributes>();
  return std::make_unique<SlotAttributes>(op.slots);
}

void register_named_only(Registry& registry) {
  for (const NamedRow& row : kRows) {
    registry.add({.id = row.id,
                  .max_inputs = -1,
                  .min_outputs = 0,
                  .max_outputs = -1,
                  .options = row.options,
                  .slots = row.slots,
                  .reason = reason_of(row.id)});
  }
}

}  // namespace leadline::ops
